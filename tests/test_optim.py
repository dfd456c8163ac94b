"""Our Adam against torch's, bit by bit."""

import copy
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from kuramotognn.optim import Adam
from tests.kernels.comparing import normal

Optimiser = torch.optim.Optimizer
PAIR: list[Callable[..., Optimiser]] = [Adam, lambda params, **kw: torch.optim.Adam(params, fused=True, **kw)]


def parameters() -> list[nn.Parameter]:
    shapes = [(5, 3), (5,), (2, 5)]
    return [nn.Parameter(normal(seed, *shape, dtype=torch.float32)) for seed, shape in enumerate(shapes)]


def steps(optimiser: Optimiser, params: list[nn.Parameter], first: int, last: int, skip: int | None = None) -> None:
    """Steps with the same gradients for whoever asks; parameter 1 has none in step ``skip``."""
    for step in range(first, last):
        for number, parameter in enumerate(params):
            gradient = normal(100 * step + number, *parameter.shape, dtype=torch.float32)
            parameter.grad = None if step == skip and number == 1 else gradient
        optimiser.step()


def assert_same(one: list[nn.Parameter], other: list[nn.Parameter]) -> None:
    for mine, theirs in zip(one, other, strict=True):
        assert mine.equal(theirs)


@pytest.mark.parametrize("skip", [None, 0, 3], ids=["all have gradients", "not at first", "not later"])
@pytest.mark.parametrize("weight_decay", [0.0, 0.1])
def test_steps_are_torchs(skip: int | None, weight_decay: float) -> None:
    mine, theirs = parameters(), parameters()
    for params, make in zip((mine, theirs), PAIR, strict=True):
        steps(make(params, lr=0.05, weight_decay=weight_decay), params, 0, 7, skip)
    assert_same(mine, theirs)


@pytest.mark.parametrize("skip", [None, 2])
def test_either_goes_on_from_the_others_state(skip: int | None) -> None:
    ends = []
    for first, second in (PAIR, PAIR[::-1]):
        params = parameters()
        before, after = first(params, lr=0.05), second(params, lr=0.05)
        steps(before, params, 0, 4, skip)
        after.load_state_dict(copy.deepcopy(before.state_dict()))
        steps(after, params, 4, 8)
        ends.append(params)
    assert_same(*ends)


def test_a_saved_state_shares_no_memory_and_is_not_touched_by_later_steps() -> None:
    params = parameters()
    optimiser = Adam(params, lr=0.05)
    steps(optimiser, params, 0, 3)
    counts: list[Tensor] = [state["step"] for state in optimiser.state_dict()["state"].values()]
    assert len({count.data_ptr() for count in counts}) == len(params)
    steps(optimiser, params, 3, 5)
    assert [float(count) for count in counts] == [3.0] * len(params)


def test_a_changed_learning_rate_counts() -> None:
    mine, theirs = parameters(), parameters()
    for params, make in zip((mine, theirs), PAIR, strict=True):
        optimiser = make(params, lr=0.05)
        steps(optimiser, params, 0, 3)
        optimiser.param_groups[0]["lr"] = 0.2
        steps(optimiser, params, 3, 6)
    assert_same(mine, theirs)


def test_groups_and_closures_are_left_to_torch() -> None:
    mine, theirs = parameters(), parameters()
    for params, make in zip((mine, theirs), PAIR, strict=True):
        optimiser = make([{"params": params[:1], "lr": 0.5}, {"params": params[1:]}], lr=0.05)
        steps(optimiser, params, 0, 4)
        assert optimiser.step(lambda: torch.tensor(7.0)) == 7.0
    assert_same(mine, theirs)
