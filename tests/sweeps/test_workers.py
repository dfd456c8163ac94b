import contextlib
import errno
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kuramotognn.config.resolve import ConfigError, resolve
from kuramotognn.sweeps import workers
from kuramotognn.sweeps.cells import Case, Cell, load, store
from kuramotognn.sweeps.work_claims import Claims
from kuramotognn.sweeps.worker_process import how_it_ended
from kuramotognn.sweeps.workers import SweepObserver, run_cells
from tests.sweeps.small_sweep import small_jobs

ROOT = Path(__file__).parent.parent.parent
WALL_CLOCK = ("seconds",)


def outcomes(folder: Path) -> dict[str, Any]:
    """Every result, by file, without what the clock says."""
    found = {}
    for path in sorted(folder.rglob("*.json")):
        result = load(path).get("result", {})
        found[str(path.relative_to(folder))] = {key: value for key, value in result.items() if key not in WALL_CLOCK}
    return found


def start_sweep(folder: Path, processes: int, splits: int) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.sweeps.small_sweep", str(folder), str(processes), str(splits)]
    return subprocess.Popen(command, cwd=ROOT, env=os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"})


class Listener(SweepObserver):
    def __init__(self) -> None:
        self.told: list[str] = []

    def counted(self, done: int, total: int) -> None:
        self.told.append(f"{done}/{total}")

    def started(self, cell: Cell) -> None:
        self.told.append(f"started {cell.split}")

    def finished(self, cell: Cell, record: dict[str, Any]) -> None:
        self.told.append(f"finished {cell.split}")

    def lost(self, cell: Cell | None) -> None:
        self.told.append("lost")

    def given_up(self, cell: Cell, reason: str) -> None:
        self.told.append(f"given up: {reason}")


def bad_job() -> Cell:
    """A cell that cannot be done."""
    small = {"recommended": False, "model": {"hidden_channels": 4}}
    return Cell(Case(resolve({"data.per_class": 400}, small).config), 0)


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    run_cells([bad_job(), *small_jobs(2)], folder)
    return folder


def test_there_is_one_file_a_job_and_its_name_says_which(swept: Path) -> None:
    names = sorted(str(path.relative_to(swept)) for path in swept.rglob("*.json"))
    assert names == sorted(f"{cell.name}.json" for cell in [bad_job(), *small_jobs(2)])
    assert all(name.startswith(("accuracy/cora/kuramotognn/", "accuracy/cora/gcn/")) for name in names)


def test_a_record_holds_what_a_number_must_be_read_with(swept: Path) -> None:
    cell = small_jobs(2)[0]
    record = load(cell.path(swept))
    assert record["config"]["seed"] == record["seed"] == 0
    assert record["result"]["protocol"] == "random-per-class"
    assert {"kuramotognn", "commit", "python", "packages", "machine"} <= record["provenance"].keys()
    assert record["provenance"]["machine"]["threads"] == 1


def test_what_is_done_is_not_done_again_and_the_rest_is(swept: Path, tmp_path: Path) -> None:
    folder = tmp_path / "some"
    for cell in small_jobs(2)[1:]:
        store(load(cell.path(swept)), cell.path(folder))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json")}
    listener = Listener()
    records = run_cells(small_jobs(2), folder, observer=listener)
    assert before == {path: path.stat().st_mtime_ns for path in before}
    assert listener.told == ["3/4", "started 0", "finished 0", "4/4"]
    assert outcomes(folder) == {name: outcomes(swept)[name] for name in outcomes(folder)}
    assert [record["split"] for record in records] == [0, 0, 1, 1]


def test_the_hash_names_all_that_decides_the_number() -> None:
    base = resolve({}).config
    assert Case(base).digest == Case(resolve({"splits": 9, "first_split": 3, "seed": 5}).config).digest
    for change in (
        {"model": {"time": 3.0}},
        {"training": {"epochs": 7}},
        {"data": {"per_class": 5}},
        {"solver": {"step_size": 0.1}},
        {"backend": "torch"},
    ):
        assert Case(resolve(change).config).digest != Case(base).digest
    assert Case(base, "timing").digest != Case(base).digest


def test_a_job_that_fails_is_recorded_with_its_reason_and_the_rest_go_on(swept: Path) -> None:
    record = load(bad_job().path(swept))
    assert "fewer than the 400 asked for" in record["failed"]
    assert "result" not in record
    assert all("result" in load(cell.path(swept)) for cell in small_jobs(2))


class Kill(Listener):
    """Kill the worker whenever it begins a cell."""

    def __init__(self) -> None:
        super().__init__()
        self.others = set(multiprocessing.active_children())

    def started(self, cell: Cell) -> None:
        super().started(cell)
        for child in set(multiprocessing.active_children()) - self.others:
            os.kill(child.pid or 0, signal.SIGKILL)


@pytest.mark.slow
def test_a_job_that_kills_its_process_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "MOST_DEATHS", 2)
    killer = Kill()
    assert run_cells(small_jobs(1)[:1], tmp_path, observer=killer) == []
    assert killer.told[-1] == "given up: its process ended 2 times (SIGKILL; out of memory?)"
    assert killer.told.count("lost") == 2
    assert len(run_cells(small_jobs(1)[:1], tmp_path)) == 1, "the same command runs it again"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("os.kill(os.getpid(), 15)", "SIGTERM"),
        ("os.kill(os.getpid(), 9)", "SIGKILL; out of memory?"),
        ("os._exit(3)", "exit code 3"),
    ],
)
def test_how_a_process_ended_is_named(end: str, words: str) -> None:
    process = multiprocessing.get_context("fork").Process(target=exec, args=(f"import os; {end}",))
    process.start()
    process.join()
    assert how_it_ended(process) == words


def test_what_the_machine_lacks_is_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    cells = [Cell(Case(resolve({"dataset": "citeseer", "model": {"hidden_channels": 4}}).config), 0)]
    monkeypatch.setenv("KURAMOTOGNN_DATA", str(tmp_path / "nothing"))
    monkeypatch.setenv("KURAMOTOGNN_OFFLINE", "1")
    assert run_cells(cells, tmp_path / "out", observer=listener) == []
    assert listener.told[-1].startswith("given up: ")
    assert "ind.citeseer.x" in listener.told[-1]
    assert not list((tmp_path / "out").rglob("*.json"))


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("[enforce fail] can't allocate memory: 9 bytes")])
def test_memory_that_ran_out_is_no_result(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise error

    monkeypatch.setattr("kuramotognn.sweeps.cells.OUTCOMES", {"accuracy": fail})
    with pytest.raises(OSError, match="memory"):
        small_jobs(1)[0].perform()


def test_workers_of_a_killed_runner_end_within_two_seconds(tmp_path: Path) -> None:
    runner = start_sweep(tmp_path, 1, 200)
    wait_for_results(tmp_path, 1, runner)
    worker = first_child(runner.pid)
    runner.kill()
    runner.wait()
    deadline = time.monotonic() + 2
    while is_running(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_claim_is_held_by_one_process_and_dropped_when_it_is_killed(tmp_path: Path) -> None:
    hold = (
        "import sys, time; from pathlib import Path; from kuramotognn.sweeps.work_claims import Claims\n"
        f"with Claims(Path({str(tmp_path)!r})) as claims, claims.claim('cell') as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    with Claims(tmp_path) as claims:
        holder = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE, text=True)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "True\n"
        with claims.claim("cell") as mine, claims.claim("another") as other:
            assert (mine, other) == (False, True)
        holder.kill()
        holder.wait()
        holder.stdout.close()
        with claims.claim("cell") as mine:
            assert mine
    assert [path.name for path in tmp_path.iterdir()] == [".claims"]


def test_a_full_disk_stops_with_a_sentence_and_loses_nothing(swept: Path, small_disk: Path) -> None:
    with pytest.raises(OSError, match=r"results cannot be kept in .*No space left.* results are there; make room"):
        run_cells(small_jobs(10), small_disk)
    kept = outcomes(small_disk)
    assert not [path for path in small_disk.rglob(".*") if path.name != ".claims"], "nothing half-written"
    assert 0 < len(kept) < 20
    shared = outcomes(swept)
    assert {name: kept[name] for name in kept if name in shared} == {n: shared[n] for n in shared if n in kept}


def test_a_write_that_fails_leaves_the_folder_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("kuramotognn.atomic_write.os.fsync", full)
    cell = small_jobs(1)[0]
    with pytest.raises(OSError, match="No space left"):
        store(cell.failure("for a test"), cell.path(tmp_path))
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("content", ["", "{", "[]", '{"case": "x"}', "\x00\xff"])
def test_a_broken_result_file_is_named(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(ConfigError, match=r"x\.json' is not a result file.*remove it to have it made again"):
        load(path)


def test_ctrl_c_ends_the_processes_and_keeps_what_is_done(tmp_path: Path) -> None:
    class Interrupt(Listener):
        def finished(self, cell: Cell, record: dict[str, Any]) -> None:
            raise KeyboardInterrupt

    before = set(multiprocessing.active_children())  # Other tests keep processes for a whole session.
    with pytest.raises(KeyboardInterrupt):
        run_cells(small_jobs(3), tmp_path, observer=Interrupt())
    assert set(multiprocessing.active_children()) == before
    assert len(outcomes(tmp_path)) >= 1


@pytest.mark.slow
def test_killed_twenty_times_every_run_is_there_once_and_equal(tmp_path: Path) -> None:
    """kill -9 of the runner and of workers at random moments, then run again to the end."""
    splits, chance = 120, random.Random(0)
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert start_sweep(whole, 2, splits).wait() == 0
    done = 0
    for turn in range(10):
        runner = start_sweep(killed, 2, splits)
        wait_for_results(killed, done + 1, runner)
        for victim in (first_child(runner.pid), runner.pid):
            time.sleep(chance.uniform(0.0, 0.6))
            with contextlib.suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
        runner.wait()
        wait_until_alone(killed)
        done = len(outcomes(killed))
        assert done < 2 * splits, f"over after {turn + 1} turns: give it more to do"
    assert start_sweep(killed, 2, splits).wait() == 0
    assert outcomes(killed) == outcomes(whole)
    assert len(outcomes(killed)) == 2 * splits
    assert not [path for path in killed.rglob(".*") if path.name != ".claims"], "nothing half-written"


@pytest.mark.slow
def test_two_runners_share_a_folder_and_do_nothing_twice(tmp_path: Path) -> None:
    runners = [start_sweep(tmp_path, 1, 25) for _ in range(2)]
    assert [runner.wait() for runner in runners] == [0, 0]
    assert len(outcomes(tmp_path)) == 50
    # Each record names the process that made it; a cell done twice would have been written twice.
    logs = [line for path in tmp_path.glob("*.log") for line in path.read_text().splitlines()]
    assert sorted(logs) == sorted(cell.name for cell in small_jobs(25))
    assert all(path.read_text() for path in tmp_path.glob("*.log")), "both had a share"


def is_running(pid: int) -> bool:
    """Whether a process runs; one that ended and that nobody waits for stays in the table as a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def first_child(pid: int) -> int:
    """A worker of a runner."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            fields = path.read_text().rsplit(")", 1)[1].split()
            command = (path.parent / "cmdline").read_bytes()
            if int(fields[1]) == pid and b"spawn_main" in command:
                return int(path.parent.name)
    raise AssertionError("the runner has no worker")


def wait_for_results(folder: Path, count: int, runner: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.rglob("*.json"))) < count:
        assert runner.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)


def wait_until_alone(folder: Path) -> None:
    """Workers of a killed runner notice and end."""
    deadline = time.monotonic() + 20
    while True:
        held = []
        for link in Path("/proc").glob("[0-9]*/fd/*"):
            with contextlib.suppress(OSError):
                if str(link.readlink()) == str(folder / ".claims"):
                    held.append(link)
        if not held:
            return
        assert time.monotonic() < deadline, f"still at work: {held}"
        time.sleep(0.1)


def test_a_stale_result_is_set_aside_and_run_again(swept: Path, tmp_path: Path) -> None:
    cell = small_jobs(1)[0]
    stale = load(cell.path(swept)) | {"fingerprint": [1.0] * 6}
    store(stale, cell.path(tmp_path))
    assert not cell.case.is_current(stale)
    (record,) = run_cells([cell], tmp_path)
    assert cell.case.is_current(record)
    assert record["result"]["test_accuracy"] == load(cell.path(swept))["result"]["test_accuracy"]
    assert load(cell.path(tmp_path).with_suffix(workers.STALE)) == stale
