"""Which code runs, and how that is chosen."""

import threading
import warnings
from collections.abc import Iterator

import pytest
import torch

from kuramotognn import KuramotoGNN, Solver, integrate
from kuramotognn.fields import CoupledDynamics, Couplings
from kuramotognn.graph import Pattern
from kuramotognn.kernels import (
    Backend,
    CoupledSystem,
    affine,
    attention,
    backend,
    backend_in_use,
    library,
    set_backend,
    spmm,
    use_backend,
)
from kuramotognn.kernels.flow import system
from tests.conftest import ring
from tests.kernels.comparing import leaves, normal, random_graph


@pytest.fixture(autouse=True)
def backend_as_before() -> Iterator[None]:
    before = backend.chosen_backend()
    yield
    set_backend(before)


@pytest.fixture
def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "PROBLEM", "the compiled kernels are missing (not here)")
    backend._tell_once.cache_clear()


def test_an_unknown_backend_names_the_choices() -> None:
    with pytest.raises(ValueError, match="backend must be one of auto, fused, torch, got 'nonsense'"):
        set_backend("nonsense")  # type: ignore[arg-type]


def test_a_near_miss_is_suggested() -> None:
    with pytest.raises(ValueError, match="did you mean 'fused'"), use_backend("fusd"):  # type: ignore[arg-type]
        pass


@pytest.mark.usefixtures("without_library")
def test_fused_without_the_library_says_why_and_what_to_take() -> None:
    message = r"'fused' cannot be used here: the compiled kernels are missing \(not here\); take 'auto' or 'torch'"
    set_backend("torch")
    with pytest.raises(ValueError, match=message):
        set_backend("fused")
    assert backend.chosen_backend() == "torch"


@pytest.mark.usefixtures("without_library")
def test_auto_without_the_library_is_torch_and_says_so_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "flow", None)
    graph, x0 = ring(4), torch.ones(4, 2, dtype=torch.float64)
    dynamics = CoupledDynamics(Couplings(graph.pattern, graph.weight), x0, 1.0)
    with pytest.warns(UserWarning, match="computing with torch.*the compiled kernels are missing") as told:
        final = integrate(dynamics, x0, 1.0, Solver("rk4", steps=2)).final
    assert (len(told), backend_in_use("cpu")) == (1, "torch")
    torch.testing.assert_close(final, 2 * x0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not backend.runs_fused(x0)


def test_auto_is_fused_here() -> None:
    set_backend("auto")
    assert backend_in_use("cpu") == "fused"


def test_other_devices_are_torchs() -> None:
    assert [backend_in_use(device) for device in ("cuda", "meta", torch.device("mps"))] == ["torch"] * 3


def test_a_block_has_its_own_backend_and_gives_the_old_one_back() -> None:
    set_backend("fused")
    with use_backend("torch"):
        inside = backend_in_use("cpu")
    assert (inside, backend_in_use("cpu")) == ("torch", "fused")


def test_a_block_that_fails_gives_the_old_backend_back() -> None:
    with use_backend("fused"):
        with pytest.raises(ZeroDivisionError), use_backend("torch"):
            raise ZeroDivisionError
        assert backend.chosen_backend() == "fused"


def test_a_block_leaves_other_threads_alone() -> None:
    seen: list[str] = []
    with use_backend("torch"):
        thread = threading.Thread(target=lambda: seen.append(backend_in_use("cpu")))
        thread.start()
        thread.join()
    assert seen == ["fused"]


@pytest.mark.parametrize(
    ("tensor", "fused_takes_it"),
    [
        (torch.zeros(1), True),
        (torch.zeros(1, dtype=torch.float64), True),
        (torch.zeros(1, dtype=torch.float16), False),
        (torch.zeros(1, dtype=torch.complex64), False),
        (torch.zeros(1, device="meta"), False),
    ],
    ids=lambda value: f"{value.dtype} {value.device}" if isinstance(value, torch.Tensor) else "",
)
def test_which_tensors_are_fused(tensor: torch.Tensor, fused_takes_it: bool) -> None:
    assert backend.runs_fused(tensor) is fused_takes_it


def test_no_tensor_is_fused_once_torch_is_chosen() -> None:
    with use_backend("torch"):
        assert not backend.runs_fused(torch.zeros(1))


@pytest.mark.parametrize("which", ["a", "source", "x"])
def test_a_system_of_mixed_types_is_torchs(which: str) -> None:
    graph = ring(4, torch.float32)
    tensors = {"a": graph.weight, "source": torch.ones(4, 2), "x": torch.ones(4, 2)}
    tensors[which] = tensors[which].double()
    assert not CoupledSystem(graph.pattern, tensors["a"], tensors["source"], 1.0).fits(tensors["x"])


def test_a_pattern_too_large_for_32_bits_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kuramotognn.kernels.pattern_layout.LARGEST", 3)
    graph, x = ring(4, torch.float32), torch.ones(4, 2)
    assert not CoupledSystem(graph.pattern, graph.weight, x, 1.0).fits(x)
    torch.testing.assert_close(spmm(graph.pattern, graph.weight, x), 2 * x)


LOW = pytest.mark.parametrize("low", [torch.float16, torch.bfloat16], ids=str)
BOTH = pytest.mark.parametrize("chosen", ["fused", "torch"])


def everything(pattern: Pattern, x: torch.Tensor, a: torch.Tensor, key: torch.Tensor) -> list[torch.Tensor]:
    system = CoupledSystem(pattern, a, x, 0.5)
    return [
        system(x),
        system.flow(x, [0.1], 3, 1 << 20) if system.fits(x) else system(x),
        spmm(pattern, a, x),
        affine(pattern, a, x.t(), x[0]),
        attention(pattern, x, key, key, key[:, 0], a, 2),
    ]


@LOW
@BOTH
def test_low_precision_is_computed_in_float32(low: torch.dtype, chosen: Backend) -> None:
    graph = random_graph(9, 30, torch.float32)
    x, a, key = (tensor.to(low) for tensor in (normal(0, 9, 4), graph.weight, normal(1, 4, 4)))
    with use_backend(chosen):
        ours = everything(graph.pattern, *leaves(x, a, key))
        exact = everything(graph.pattern, x.float(), a.float(), key.float())
        sum(each.float().sum() for each in ours).backward()
    for mine, theirs in zip(ours, exact, strict=True):
        assert mine.dtype == low
        torch.testing.assert_close(mine.float(), theirs, atol=0.05, rtol=2 * torch.finfo(low).eps)


@LOW
@BOTH
def test_autocast(low: torch.dtype, chosen: Backend) -> None:
    graph, x = random_graph(30, 90, torch.float32), normal(0, 30, 12, dtype=torch.float32)
    torch.manual_seed(0)
    model = KuramotoGNN(12, 16, 3, time=1.0, solver=Solver("euler", steps=4)).eval()
    exact = model(x, graph)
    with use_backend(chosen), torch.autocast("cpu", dtype=low):
        logits = model(x, graph)
        logits.float().sum().backward()
    torch.testing.assert_close(logits.float(), exact, atol=0.05, rtol=0.05)
    assert all(torch.isfinite(parameter.grad).all() for parameter in model.parameters() if parameter.grad is not None)
