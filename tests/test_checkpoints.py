import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kuramotognn.checkpoints import Checkpoint, CheckpointError, CheckpointFolder, read_tensors, write_tensors


def checkpoint(value: float) -> Checkpoint:
    return Checkpoint({"w": torch.full((3, 2), value), "step": torch.tensor(value)}, {"epoch": value})


def test_write_and_read_are_exact(tmp_path: Path) -> None:
    tensors = {"a": torch.randn(4, 5), "b": torch.tensor(3, dtype=torch.int64), "c": torch.get_rng_state()}
    facts = {"loss": 0.1 + 0.2, "names": ["ω"]}
    write_tensors(tmp_path / "x.safetensors", tensors, facts)
    found, found_facts = read_tensors(tmp_path / "x.safetensors")
    assert found_facts == facts
    assert found.keys() == tensors.keys()
    assert all(found[name].equal(tensors[name]) for name in tensors)


def test_the_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    tensors = {"b": torch.ones(2), "a": torch.zeros(3)}
    for name in ("one", "two"):
        write_tensors(tmp_path / name, tensors, {"z": 1, "a": [2.5]})
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    script = (
        "import sys, torch; from pathlib import Path; from kuramotognn.checkpoints import write_tensors;"
        "write_tensors(Path(sys.argv[1]), {'b': torch.ones(2), 'a': torch.zeros(3)}, {'z': 1, 'a': [2.5]})"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path / "three")], check=True)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "three").read_bytes()


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path)
    assert folder.load_latest() is None
    for epoch in (20, 40, 60):
        folder.save(epoch, checkpoint(epoch))
    assert [path.name for path in sorted(tmp_path.iterdir())] == [
        "checkpoint-000040.safetensors",
        "checkpoint-000060.safetensors",
    ]
    assert folder.load_latest().facts == {"epoch": 60}  # type: ignore[union-attr]
    folder.clear()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "text"])
def test_a_corrupted_checkpoint_is_skipped(tmp_path: Path, damage: str) -> None:
    folder = CheckpointFolder(tmp_path)
    folder.save(20, checkpoint(20))
    folder.save(40, checkpoint(40))
    path = tmp_path / "checkpoint-000040.safetensors"
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[-5] ^= 1
    damaged = {"truncate": content[:-7], "flip": content, "empty": b"", "text": b"not a checkpoint at all"}[damage]
    path.write_bytes(bytes(damaged))
    assert folder.load_latest().facts == {"epoch": 20}  # type: ignore[union-attr]
    (sentence,) = folder.rejected
    assert sentence.startswith("checkpoint-000040.safetensors is corrupted")
    assert sentence.endswith("the one before it is used")
    assert (tmp_path / "checkpoint-000040.corrupted").exists(), "renamed, not deleted"


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"model\.safetensors is missing"):
        read_tensors(tmp_path / "model.safetensors")


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.safetensors"
    write_tensors(path, {"a": torch.ones(1)}, {})
    before = path.read_bytes()

    def full_disk(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_tensors(path, {"a": torch.zeros(1)}, {})
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["x.safetensors"]
