from collections.abc import Iterator

import pytest
import torch

from kuramotognn import KuramotoDynamics, Solver, integrate
from kuramotognn.kernels import CoupledSystem, backend, backend_in_use, fused, runs_fused, set_backend, use_backend
from tests.conftest import ring


@pytest.fixture(autouse=True)
def backend_as_before() -> Iterator[None]:
    before = backend._chosen
    yield
    backend._chosen = before


@pytest.fixture
def without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "why_not_fused", lambda: "numba cannot be imported (not here)")


def test_an_unknown_backend_names_the_choices() -> None:
    with pytest.raises(ValueError, match="backend must be one of auto, fused, torch, got 'nonsense'"):
        set_backend("nonsense")  # type: ignore[arg-type]


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(ValueError, match="did you mean 'fused'"):
        set_backend("fusd")  # type: ignore[arg-type]


@pytest.mark.usefixtures("without_numba")
def test_fused_without_numba_says_why_and_what_to_take() -> None:
    message = r"backend 'fused' cannot be used here: numba cannot be imported \(not here\); take 'auto' or 'torch'"
    with pytest.raises(ValueError, match=message):
        set_backend("fused")


@pytest.mark.usefixtures("without_numba")
def test_a_refused_backend_leaves_the_old_one() -> None:
    set_backend("torch")
    with pytest.raises(ValueError, match="cannot be used here"):
        set_backend("fused")
    assert backend._chosen == "torch"


@pytest.mark.usefixtures("without_numba")
def test_auto_without_numba_is_torch() -> None:
    set_backend("auto")
    assert (backend_in_use("cpu"), runs_fused(torch.zeros(1))) == ("torch", False)


@pytest.mark.usefixtures("without_numba")
def test_a_flow_without_numba_never_asks_for_a_fused_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fused, "flow", None)
    graph, x0 = ring(4), torch.ones(4, 2, dtype=torch.float64)
    final = integrate(KuramotoDynamics(graph.pattern, graph.weight, x0, 1.0), x0, 1.0, Solver("rk4", steps=2)).final
    torch.testing.assert_close(final, 2 * x0)


def test_auto_is_fused_here() -> None:
    set_backend("auto")
    assert backend_in_use("cpu") == "fused"


def test_other_devices_are_torchs() -> None:
    assert [backend_in_use(device) for device in ("cuda", "meta", torch.device("mps"))] == ["torch"] * 3


def test_a_block_has_its_own_backend_and_gives_the_old_one_back() -> None:
    set_backend("fused")
    with use_backend("torch"):
        inside = backend_in_use("cpu")
    assert (inside, backend._chosen) == ("torch", "fused")


def test_a_block_that_fails_gives_the_old_backend_back() -> None:
    set_backend("fused")
    with pytest.raises(ZeroDivisionError), use_backend("torch"):
        raise ZeroDivisionError
    assert backend._chosen == "fused"


@pytest.mark.parametrize(
    ("tensor", "fused_takes_it"),
    [
        (torch.zeros(1), True),
        (torch.zeros(1, dtype=torch.float64), True),
        (torch.zeros(1, dtype=torch.float16), False),
        (torch.zeros(1, dtype=torch.bfloat16), False),
        (torch.zeros(1, dtype=torch.complex64), False),
        (torch.zeros(1, device="meta"), False),
    ],
    ids=lambda value: f"{value.dtype} {value.device}" if isinstance(value, torch.Tensor) else "",
)
def test_which_tensors_are_fused(tensor: torch.Tensor, fused_takes_it: bool) -> None:
    assert runs_fused(tensor) is fused_takes_it


def test_no_tensor_is_fused_once_torch_is_chosen() -> None:
    with use_backend("torch"):
        assert not runs_fused(torch.zeros(1))


@pytest.mark.parametrize("which", ["a", "drive", "x"])
def test_a_system_of_mixed_types_is_torchs(which: str) -> None:
    graph = ring(4, torch.float32)
    tensors = {"a": graph.weight, "drive": torch.ones(4, 2), "x": torch.ones(4, 2)}
    tensors[which] = tensors[which].double()
    assert not CoupledSystem(graph.pattern, tensors["a"], tensors["drive"], 1.0).fits(tensors["x"])
