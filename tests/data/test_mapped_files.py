"""Feature matrices in npy, safetensors and Parquet files."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.numpy import save_file

from kuramotognn import DataError
from kuramotognn.data import mapped_files
from kuramotognn.data.mapped_files import open_features
from tests.data.limits import make_pipe

ARRAY = np.random.RandomState(0).randn(23, 4)


def write_parquet(path: Path, array: np.ndarray) -> None:
    pl.DataFrame(array, schema=[f"c{column}" for column in range(array.shape[1])]).write_parquet(path)


WRITERS: dict[str, Callable[[Path, np.ndarray], None]] = {
    "npy": lambda path, array: np.save(path, array),
    "safetensors": lambda path, array: save_file({"ids": np.arange(len(array)), "x": array}, path),
    "parquet": write_parquet,
}


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int16, np.bool_])
@pytest.mark.parametrize("suffix", WRITERS)
def test_rows_are_those_of_the_array(suffix: str, kind: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_files, "ROWS_AT_ONCE", 5)
    array = (3 * ARRAY).astype(kind)
    WRITERS[suffix](path := tmp_path / f"x.{suffix}", array)
    features = open_features(path)
    assert features.shape == array.shape
    assert np.array_equal(features.to_dense().numpy(), array.astype(np.float32))
    index = torch.tensor([22, 0, 7, 7])
    assert np.array_equal(features.rows(index).numpy(), array[index].astype(np.float32))


def test_files_without_a_matrix_of_numbers_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "flat.npy", np.arange(3.0))
    np.save(tmp_path / "text.npy", np.array([["a"]]))
    np.save(tmp_path / "objects.npy", np.array([[{}]]), allow_pickle=True)
    np.save(tmp_path / "short.npy", ARRAY)
    with (tmp_path / "short.npy").open("r+b") as file:
        file.truncate(300)
    save_file({"a": ARRAY, "b": ARRAY}, tmp_path / "two.safetensors")
    save_file({"a": ARRAY}, tmp_path / "cut.safetensors")
    with (tmp_path / "cut.safetensors").open("r+b") as file:
        file.truncate(200)
    pl.DataFrame({"word": ["a"]}).write_parquet(tmp_path / "text.parquet")
    (tmp_path / "wrong.parquet").write_text("no parquet", encoding="utf-8")
    make_pipe(tmp_path / "pipe.npy")
    sentences = {
        "flat.npy": "1 dimensions",
        "text.npy": "not numbers",
        "objects.npy": "cannot be read",
        "short.npy": "cannot be read",
        "two.safetensors": "must hold one matrix; it holds a, b",
        "cut.safetensors": "cannot be read",
        "text.parquet": "column 'word' holds String",
        "wrong.parquet": "cannot be read",
        "pipe.npy": "not a regular file",
        "absent.npy": "does not exist",
        "x.csv": "must end with .npy",
    }
    for name, sentence in sentences.items():
        with pytest.raises(DataError, match=sentence) as caught:
            open_features(tmp_path / name)
        assert "\n" not in str(caught.value)
