from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn.simulate import Oscillators, Simulation, simulate


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
@pytest.mark.parametrize("keep_phases", [False, True])
@pytest.mark.parametrize("settings", [{}, {"inertia": 1.0}])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_save_and_load(tmp_path: Path, suffix: str, keep_phases: bool, settings: dict, dtype: str) -> None:
    run = simulate(Oscillators(11, **settings), 1.0, samples=4, keep_phases=keep_phases, dtype=dtype)
    run.save(tmp_path / f"run{suffix}")
    again = Simulation.load(tmp_path / f"run{suffix}")
    for name, value in vars(run).items():
        other = getattr(again, name)
        if isinstance(value, np.ndarray):
            assert other.dtype == value.dtype
            np.testing.assert_array_equal(other, value)
        else:
            assert other == value
    assert again.mean_order == run.mean_order


def test_columns_of_parquet_files(tmp_path: Path) -> None:
    simulate(Oscillators(11), 1.0, samples=4).save(tmp_path / "run.parquet")
    assert pl.read_parquet(tmp_path / "run.parquet").columns == ["time", "order", "angle"]
    assert len(pl.read_parquet(tmp_path / "run.oscillators.parquet")) == 11


@given(content=st.binary(max_size=40), suffix=st.sampled_from([".npz", ".parquet"]))
def test_invalid_files(tmp_path_factory: pytest.TempPathFactory, content: bytes, suffix: str) -> None:
    file = tmp_path_factory.mktemp("bad") / f"run{suffix}"
    file.write_bytes(content)
    with pytest.raises(ValueError, match="is not a saved simulation"):
        Simulation.load(file)


def test_pickles_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "run.npz", settings=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="is not a saved simulation"):
        Simulation.load(tmp_path / "run.npz")


def test_wrong_file_names(tmp_path: Path) -> None:
    run = simulate(Oscillators(3), 1.0, samples=1)
    with pytest.raises(ValueError, match=r"must end in .npz or .parquet"):
        run.save(tmp_path / "run.txt")
    with pytest.raises(ValueError, match="does not exist"):
        Simulation.load(tmp_path / "run.npz")
