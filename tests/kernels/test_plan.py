"""How much of an integration is kept."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kuramotognn.kernels.flow.operator import UNIT, Plan


def plan(n: int, d: int, steps: int, stages: int, linear: bool, memory: int) -> Plan:
    return Plan.of(torch.empty(n, d), linear, [0.1] * stages**2, steps, memory)


@given(
    st.integers(1, 50),
    st.integers(1, 40),
    st.integers(1, 300),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
    st.sampled_from([1, 1 << 20, 1 << 40]),
)
def test_the_tape_has_room_for_what_is_kept(n: int, d: int, steps: int, stages: int, linear: bool, memory: int) -> None:
    made = plan(n, d, steps, stages, linear, memory)
    columns = -(-d // 8) * 8
    rows = steps * stages * (1 if linear else 2) if made.segment == steps else -(-steps // made.segment)
    assert made.kept == rows * n * columns


@pytest.mark.parametrize("linear", [False, True])
@given(memory=st.integers(1, 10**7), steps=st.integers(4, 2000))
def test_checkpoints_stay_within_the_memory_asked_for_where_they_can(linear: bool, memory: int, steps: int) -> None:
    """Unless the least that checkpoints can do with is more."""
    made, least = (plan(50, 40, steps, 2, linear, size) for size in (memory, 1))

    def most(made: Plan) -> int:
        """Bytes of the tape, and of two tiles' segments while they are recomputed."""
        again = 0 if made.segment == steps else 2 * made.segment * 2 * (1 if linear else 2) * 50 * 3 * UNIT
        return 4 * made.kept + again

    assert most(made) <= max(memory, most(least))


@pytest.mark.parametrize("linear", [False, True])
def test_everything_that_fits_is_kept(linear: bool) -> None:
    size = 4 * plan(10, 20, 50, 4, linear, 1 << 40).kept
    assert [plan(10, 20, 50, 4, linear, size - less).segment == 50 for less in (0, 1)] == [True, False]
