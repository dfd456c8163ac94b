"""Parts of the CPU engine that no public function shows by itself."""

import multiprocessing
import os
import random
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

from kuramotognn.kernels.cpu import FlowPlan, balanced_chunks, plan_flow, team
from kuramotognn.kernels.cpu.elementary import exp, half_turns, sincos, sincos_pi
from kuramotognn.kernels.cpu.flow import integrate_tiles
from kuramotognn.kernels.cpu.jit import inner, source_digest
from kuramotognn.kernels.cpu.lanes import four_totals, rows, unit
from kuramotognn.kernels.cpu.memory import at, increase_two, pointer, put, put_lanes, until_here
from kuramotognn.kernels.cpu.team import share
from kuramotognn.kernels.cpu.workspace import Workspace, workspace

kernel = njit(nogil=True)  # Not cached: numba would not see a change of what the kernel is made of.
SinCos: TypeAlias = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
PRECISIONS = pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 3e-7), (np.float64, 1e-15)])


@kernel
def _directly(phases, sines, cosines):
    for i in range(phases.size):
        sin, cos = sincos(at(pointer(phases), i))
        put(pointer(sines), i, sin)
        put(pointer(cosines), i, cos)


@kernel
def _by_half_turns(phases, sines, cosines):
    for i in range(phases.size):
        sin, cos = sincos_pi(half_turns(at(pointer(phases), i)))
        put(pointer(sines), i, sin)
        put(pointer(cosines), i, cos)


@pytest.fixture(params=[_directly, _by_half_turns], ids=["directly", "by half turns"])
def sine_and_cosine(request: pytest.FixtureRequest) -> SinCos:
    """Sine and cosine as a kernel computes them; all lanes hold the same phase."""

    def compute(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        width = 2 * unit(x.dtype.type)
        phases = np.repeat(x[:, None], width, axis=1)
        out = np.empty_like(phases), np.empty_like(phases)
        request.param(rows(phases, width), *(rows(values, width) for values in out))
        for values in out:
            assert np.array_equal(values[:, :1].repeat(width, axis=1), values, equal_nan=True)
        return out[0][:, 0], out[1][:, 0]

    return compute


@PRECISIONS
@pytest.mark.parametrize("reach", [1e-3, 1.0, 100.0, 1e4])
def test_sine_and_cosine_are_numpys(sine_and_cosine: SinCos, dtype: type, bound: float, reach: float) -> None:
    x = np.linspace(-reach, reach, 40_011).astype(dtype)
    for ours, numpys in zip(sine_and_cosine(x), (np.sin, np.cos), strict=True):
        assert np.abs(ours - numpys(x.astype(np.float64))).max() <= bound


@PRECISIONS
def test_sine_and_cosine_at_multiples_of_a_quarter_turn(sine_and_cosine: SinCos, dtype: type, bound: float) -> None:
    """Where the reduction of the argument cancels most."""
    quarters = (np.arange(-6366, 6367) * (np.pi / 2)).astype(dtype)
    x = np.concatenate([quarters, np.nextafter(quarters, dtype(np.inf)), np.nextafter(quarters, dtype(-np.inf))])
    for ours, numpys in zip(sine_and_cosine(x), (np.sin, np.cos), strict=True):
        assert np.abs(ours - numpys(x.astype(np.float64))).max() <= bound


@PRECISIONS
def test_sine_of_a_small_phase_is_exact_to_a_relative_error(sine_and_cosine: SinCos, dtype: type, bound: float) -> None:
    x = np.logspace(-30, -3, 500).astype(dtype)
    assert np.abs(sine_and_cosine(x)[0] / np.sin(x.astype(np.float64)) - 1).max() <= bound


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sine_and_cosine_of_no_number_are_no_number(sine_and_cosine: SinCos, dtype: type) -> None:
    x = np.array([np.nan, np.inf, -np.inf], dtype)
    assert np.isnan(sine_and_cosine(x)).all()


@pytest.mark.parametrize("function", [sincos, sincos_pi, half_turns, exp])
def test_trigonometry_outside_a_kernel_says_so(function: Callable[[float], object]) -> None:
    with pytest.raises(TypeError, match="works on lanes inside compiled kernels, got float"):
        function(1.0)


@kernel
def _half_turns_of(phases, out):
    for i in range(phases.size):
        put(pointer(out), i, half_turns(at(pointer(phases), i)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_half_turns_are_the_phase_without_whole_turns(dtype: type) -> None:
    width, pi = unit(dtype), Fraction("3.14159265358979323846264338327950288419716939937510")
    x = np.random.default_rng(0).uniform(-1e4, 1e4, 50 * width).astype(dtype)
    out = np.empty_like(x)
    _half_turns_of(rows(x, width), rows(out, width))
    exact = [(Fraction(float(phase)) / pi + 1) % 2 - 1 for phase in x]
    errors = [abs(Fraction(float(ours)) - half_turns) for ours, half_turns in zip(out, exact, strict=True)]
    assert max(min(error, 2 - error) for error in errors) <= np.finfo(dtype).eps


@kernel
def _exponentials(exponents, out):
    for i in range(exponents.size):
        put(pointer(out), i, exp(at(pointer(exponents), i)))


@pytest.mark.parametrize(("dtype", "bound"), [(np.float32, 2e-7), (np.float64, 4e-16)])
def test_the_exponential_is_numpys(dtype: type, bound: float) -> None:
    width, least = unit(dtype), -86 if dtype is np.float32 else -700
    x = np.concatenate([np.linspace(least, 0, 40_000), -np.logspace(-30, 0, 400)]).astype(dtype)
    bad = np.array([-1e30, -np.inf, np.nan, 1.05 * least] * (width // 4), dtype)
    given, out = np.concatenate([x, bad]), np.empty(x.size + bad.size, dtype)
    _exponentials(rows(given, width), rows(out, width))
    assert np.abs(out[: x.size] / np.exp(x.astype(np.float64)) - 1).max() <= bound
    assert np.array_equal(out[x.size :][:4], np.array([0, 0, np.nan, 0]), equal_nan=True)


@kernel
def _sum_of_two_arrays(count):
    """Looks at the first array through a pointer after the second was made."""
    first = np.empty(64)
    items = pointer(first)
    put(items, 0, 1.0)
    second = np.empty(64)
    second[0] = 7.0
    out = second[0]
    for _ in range(count):
        out += at(items, 0)
    until_here(first)
    return out


def test_an_array_made_in_a_kernel_lives_until_it_is_let_go() -> None:
    assert _sum_of_two_arrays(3) == 10.0


@kernel
def _add_twos(products, out):
    lanes, sums = pointer(products), pointer(out)
    for first in range(0, products.size, 2):
        increase_two(sums, first, at(lanes, first), at(lanes, first + 1))


@kernel
def _add_fours(products, out):
    lanes, sums = pointer(products), pointer(out)
    for first in range(0, products.size, 4):
        four = four_totals(at(lanes, first), at(lanes, first + 1), at(lanes, first + 2), at(lanes, first + 3))
        put_lanes(sums, first, four)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("units", [1, 2, 3])
@pytest.mark.parametrize(("add", "before"), [(_add_twos, 1), (_add_fours, 0)], ids=["two", "four"])
def test_several_rows_are_added_up_at_once(dtype: type, units: int, add: Callable[..., None], before: int) -> None:
    width = units * unit(dtype)
    products = np.random.default_rng(0).integers(-9, 10, (40, width)).astype(dtype)  # Sums are exact in any order.
    out = np.arange(40, dtype=dtype)
    add(rows(products, width), out)
    assert np.array_equal(out, before * np.arange(40) + products.sum(1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_workspace_cuts_one_buffer_into_aligned_parts(dtype: type) -> None:
    pool = Workspace()
    parts = pool.several(dtype, 5, 0, 17, 1)
    assert [part.size for part in parts] == [5, 0, 17, 1]
    assert [part.ctypes.data % 64 for part in parts if part.size] == [0, 0, 0]
    for number, part in enumerate(parts):
        part.fill(number)
    assert [set(part) for part in parts] == [{0}, set(), {2}, {3}]
    assert len(pool.buffers) == 1


def test_workspace_never_lends_a_buffer_twice() -> None:
    pool = Workspace()
    first, second = pool.empty((1000,), np.float32), pool.empty((1000,), np.float32)
    assert not np.shares_memory(first, second)


def test_workspace_respects_a_tensor_made_from_a_view() -> None:
    pool = Workspace()
    array = pool.empty((1000,), np.float32)
    view = torch.from_numpy(array[10:])[5:]
    del array
    assert not np.shares_memory(view.numpy(), pool.empty((1000,), np.float32))


def test_workspace_lends_again_what_was_dropped() -> None:
    pool = Workspace()
    array = pool.empty((1000,), np.float32)
    address = array.ctypes.data
    del array
    assert pool.empty((1000,), np.float32).ctypes.data == address


@pytest.mark.parametrize("shape", [(), (7,), (5, 3, 2)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_workspace_arrays_are_aligned_and_of_the_shape_asked_for(shape: tuple[int, ...], dtype: type) -> None:
    array = Workspace().empty(shape, dtype)
    assert (array.shape, array.dtype, array.flags.c_contiguous, array.ctypes.data % 64) == (shape, dtype, True, 0)


@pytest.mark.parametrize("shape", [(0,), (3, 0)])
def test_workspace_arrays_may_be_empty(shape: tuple[int, ...]) -> None:
    assert Workspace().empty(shape, np.float32).shape == shape


def test_workspace_zeros_are_zero_in_a_used_buffer() -> None:
    pool = Workspace()
    array = pool.empty((1000,), np.float32)
    array.fill(7)
    del array
    assert not pool.zeros((1000,), np.float32).any()


def test_workspace_retains_no_more_than_told() -> None:
    pool = Workspace(retain_bytes=100_000)
    for size in range(1_000, 90_000, 7_000):
        pool.empty((size,), np.uint8)
    assert pool.size <= 100_000


def test_workspace_forgets_only_what_is_free() -> None:
    pool = Workspace()
    taken, free = pool.empty((1000,), np.float32), pool.empty((3000,), np.float32)
    del free
    pool.clear()
    assert [np.shares_memory(kept.buffer, taken) for kept in pool.buffers] == [True]


def test_workspace_forgets_first_what_was_not_used_for_long() -> None:
    pool = Workspace(retain_bytes=110_000)
    for size in (40_000, 30_000, 40_000, 60_000):
        pool.empty((size,), np.uint8)
    assert [kept.size // 10_000 for kept in pool.buffers] == [4, 6], "the one in the middle was used last before"


def test_workspace_never_lends_a_buffer_twice_to_four_threads() -> None:
    pool = Workspace()

    def work(owner: int) -> bool:
        """Whether every array kept the mark of its owner for as long as it was held."""
        draw, held, intact = random.Random(owner), [], True
        for mark in range(1500):
            array = pool.empty((draw.choice([10, 100, 101, 1000]),), np.int64)
            array.fill(10_000 * owner + mark)
            held.append((array, 10_000 * owner + mark))
            if len(held) > 5:
                old, written = held.pop(draw.randrange(6))
                intact = intact and bool((old == written).all())
        return intact

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(work, range(1, 5))) == [True] * 4


def exit_with_lock_state() -> None:
    sys.exit(int(workspace._lock.locked()))


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded, use of fork:DeprecationWarning")
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system cannot fork")
def test_a_child_forked_while_a_buffer_is_taken_finds_the_workspace_open() -> None:
    with workspace._lock:
        child = multiprocessing.get_context("fork").Process(target=exit_with_lock_state)
        child.start()
    child.join(20)
    assert child.exitcode == 0


@given(st.lists(st.integers(0, 500), max_size=200))
def test_chunks_cover_every_row_once(degrees: list[int]) -> None:
    bounds = balanced_chunks(np.concatenate([[0], np.cumsum(degrees)]).astype(np.int32))
    assert (bounds[0], bounds[-1], bool((np.diff(bounds) >= 0).all())) == (0, len(degrees), True)


def test_chunks_have_about_equal_work() -> None:
    degrees = np.random.RandomState(0).randint(0, 20, 10_000)
    rowptr = np.concatenate([[0], np.cumsum(degrees)])
    work = np.diff(rowptr[balanced_chunks(rowptr)])
    assert work.max() < 1.2 * work.mean()


@given(
    st.integers(1, 50),
    st.integers(1, 40),
    st.integers(1, 300),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.booleans(),
)
def test_segments_cover_every_step_once(n: int, d: int, steps: int, stages: int, linear: bool, tight: bool) -> None:
    plan = plan_flow(n, d, steps, stages, linear=linear, memory=1 if tight else None)
    taken = [step for first, last in plan.segments for step in range(first, last)]
    assert taken == list(range(steps))


@given(st.integers(1, 400), st.sampled_from([np.float32, np.float64]))
def test_tiles_cover_every_column_once_and_two_threads_share_them_evenly(d: int, dtype: type) -> None:
    plan = plan_flow(3, d, 1, 1, dtype=dtype)
    columns = [c for tile in plan.cut.tiles for c in range(tile.start, tile.start + tile.width)]
    assert columns == list(range(plan.columns))
    assert d <= plan.columns < d + unit(dtype)
    loads = [0, 0]
    for tile in plan.cut.tiles:  # Whoever is free takes the next one.
        loads[loads.index(min(loads))] += tile.width
    assert max(loads) - min(loads) <= unit(dtype)


@pytest.mark.parametrize("linear", [False, True])
@given(memory=st.integers(1, 10**7), steps=st.integers(4, 2000))
def test_checkpoints_stay_within_the_memory_asked_for_where_they_can(linear: bool, memory: int, steps: int) -> None:
    """Unless the least that checkpoints can do with is more."""
    plan, least = (plan_flow(50, 40, steps, 2, linear=linear, memory=size) for size in (memory, 1))

    def most(plan: FlowPlan) -> int:
        """Bytes of the tape, and of two tiles' segments while they are recomputed."""
        again = 0 if plan.keeps_all else 2 * plan.tape_rows(plan.segment) * plan.n * 2 * plan.unit
        return 4 * (plan.tape_size + again)

    assert most(plan) <= max(memory, most(least))


@pytest.mark.parametrize("linear", [False, True])
def test_a_plan_keeps_everything_that_fits(linear: bool) -> None:
    whole = plan_flow(10, 20, 50, 4, linear=linear)
    size = whole.tape_size * 4
    assert [plan_flow(10, 20, 50, 4, linear=linear, memory=size - less).keeps_all for less in (0, 1)] == [True, False]


@inner
def _leave_marks(number, worker, factor, workers, out):
    out[number] += factor * number
    workers[number] = worker


@kernel
def _mark(team, *operands):
    share(team, operands[2].size, _leave_marks, operands)


@inner
def _mark_inside(number, worker, crew, workers, out):
    share(crew, out.shape[1], _leave_marks, (2, workers[number], out[number]))


@kernel
def _mark_twice(team, *operands):
    share(team, operands[2].shape[0], _mark_inside, operands)


@pytest.fixture(params=["torch's threads", "threads of ours"])
def launch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    if request.param == "threads of ours":
        monkeypatch.setattr(team, "_launchers", launchers := team._Launchers())
        launchers.use(None)
    elif team._launchers.gomp is None:
        pytest.skip("torch came without GNU OpenMP")
    return team.team_for().launch


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("count", [0, 1, 2, 1000])
def test_every_share_is_done_once_by_a_worker_of_the_team(launch: int, threads: int, count: int) -> None:
    workers, out = np.full(count, -1), np.zeros(count)
    for _ in range(20):
        out[:] = 0
        _mark(team.Team(launch, threads), 0.5, workers, out)
        assert np.array_equal(out, 0.5 * np.arange(count))
        assert ((workers >= 0) & (workers < threads)).all()


@inner
def _fail_at(number, worker, failing, out):
    if number == failing:
        raise ZeroDivisionError
    out[number] = 1


@kernel
def _fail(team, *operands):
    share(team, operands[1].size, _fail_at, operands)


@inner
def _fail_inside(number, worker, crew, *operands):
    share(crew, operands[1].size, _fail_at, operands)


@kernel
def _fail_twice(team, *operands):
    share(team, 3, _fail_inside, operands)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("failing", [0, 3])
def test_an_error_in_a_share_reaches_the_caller(launch: int, threads: int, failing: int) -> None:
    crew, out = team.Team(launch, threads), np.zeros(5)
    with pytest.raises(RuntimeError, match="a kernel could not finish its work; memory may have run out"):
        _fail(crew, failing, out)
    with pytest.raises(RuntimeError, match="could not finish"):
        _fail_twice(crew, crew, failing, out)
    _fail(crew, 5, out)
    assert out.all(), "the next call is sound"


def test_a_share_may_share_its_own_work(launch: int) -> None:
    workers, out = np.zeros((5, 70), np.int64), np.zeros((5, 70))
    _mark_twice(team.Team(launch, 2), team.Team(launch, 2), workers, out)
    assert np.array_equal(out, np.tile(2.0 * np.arange(70), (5, 1)))


def test_teams_of_several_threads_do_not_disturb_each_other(launch: int) -> None:
    def work(_: int) -> bool:
        workers, out = np.zeros(300, np.int64), np.zeros(300)
        for _ in range(50):
            _mark(team.Team(launch, 2), 1.0, workers, out)
        return np.array_equal(out, 50.0 * np.arange(300))

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(work, range(8)))


@pytest.mark.parametrize(("work", "threads"), [(team.WORTH_SHARING, 1), (team.WORTH_SHARING + 1, 2)])
def test_little_work_wakes_nobody(work: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "thread_count", lambda: 2)
    assert team.team_for(work).threads == threads


def test_cached_kernels_are_not_used_after_a_change_of_what_they_are_made_of(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1")
    (tmp_path / "b.py").write_text("y = 1")
    before = source_digest(tmp_path)
    source_digest.cache_clear()
    assert source_digest(tmp_path) == before
    source_digest.cache_clear()
    (tmp_path / "b.py").write_text("y = 2")
    assert source_digest(tmp_path) != before
    stamp = integrate_tiles._cache._cache_file._source_stamp
    assert stamp[1] == source_digest(Path(team.__file__).parent)


def test_kernels_are_compiled_once_and_cached_on_disk(tmp_path: Path) -> None:
    code = "from kuramotognn.kernels import warm_up; print(warm_up())"
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (
        float(subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True).stdout)
        for _ in range(2)
    )
    assert first > 0, "an empty cache means compiling"
    assert second == 0, "the second process finds the kernels on disk"
