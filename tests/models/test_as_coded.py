"""The authors' semantics, against outputs and gradients that tools/derive_as_coded.py derived without this library."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kuramotognn import GCNII, GRAND, Attention, Graph, GraphCON, Kuramoto, KuramotoGNN, Solver
from kuramotognn.models import Encoder

STORED = np.load(Path(__file__).parent / "as_coded.npz")
EULER, IMEX = Solver("euler", steps=5), Solver("imex", steps=5)
SIZES = (6, 4, 3)
ENDS = {"encoder.linear": "enc", "decoder.2": "dec"}
ATTENTION = {"field.adjacency.key": "q", "field.adjacency.query": "k"}
COLUMN = {"attention_squash": "squareplus", "attention_normalise": "column"}


def kuramoto(**attention: Any) -> nn.Module:
    return KuramotoGNN(
        *SIZES,
        equation=Kuramoto("local-order"),
        coupling=1.3,
        frequencies="detached",
        phase_range=(0.0, torch.pi),
        decoder_activation="relu",
        time=1.0,
        heads=2,
        solver=EULER,
        **attention,
    )


def graphcon_heterophilic(residual: str) -> nn.Module:
    options = {"residual": residual, "encoder_activation": "relu", "stiffness": 0.2, "damping": 0.3}
    return GraphCON(*SIZES, time=2.0, solver=Solver("imex", step_size=1.0), **options)


CASES: dict[str, tuple[Callable[[], nn.Module], dict[str, str]]] = {
    "kuramotognn-scaled-dot-squareplus-column": (lambda: kuramoto(**COLUMN), ENDS | ATTENTION),
    "kuramotognn-exp-kernel-squareplus-column": (
        lambda: kuramoto(attention_score="exp-kernel", **COLUMN),
        ENDS | ATTENTION | {"field.adjacency.sigma": "sigma", "field.adjacency.length": "length"},
    ),
    "kuramotognn-cosine-squareplus-row": (
        lambda: kuramoto(attention_score="cosine", attention_squash="squareplus"),
        ENDS | ATTENTION,
    ),
    "kuramotognn-pearson-softmax-row": (lambda: kuramoto(attention_score="pearson"), ENDS | ATTENTION),
    "grand-l": (
        lambda: GRAND(
            *SIZES,
            source_gradient="detached",
            decoder_activation="relu",
            time=1.0,
            heads=2,
            solver=EULER,
            **COLUMN,
        ),
        ENDS | ATTENTION | {"field.alpha": "alpha", "field.beta": "beta"},
    ),
    "graphcon-homophilic": (
        lambda: GraphCON(
            *SIZES,
            adjacency="attention",
            activation="identity",
            transform=False,
            source="mixed",
            source_gradient="detached",
            decoder_activation="relu",
            time=1.0,
            heads=2,
            solver=IMEX,
            **COLUMN,
        ),
        ENDS | ATTENTION | {f"field.{name}": name for name in ("beta", "delta", "epsilon")},
    ),
    "graphcon-heterophilic-1": (
        lambda: graphcon_heterophilic("composed"),
        {"encoder.linear": "enc", "decoder.1": "dec", "field.transform": "conv", "field.residual": "res"},
    ),
    "graphcon-heterophilic-2": (
        lambda: graphcon_heterophilic("difference"),
        {"encoder.linear": "enc", "decoder.1": "dec", "field.transform": "conv", "field.residual": "res"},
    ),
    "gcnii": (
        lambda: GCNII(6, 4, 2, 3),
        {"encoder": "enc", "decoder": "dec", "convs.0.weight1": "w1", "convs.1.weight1": "w2"},
    ),
}


def stored(case: str, kind: str, name: str, names: dict[str, str]) -> Tensor:
    """The stored array of one of our parameters."""
    if name in names:
        return torch.from_numpy(STORED[f"{case}/{kind}/{names[name]}"])
    module, _, leaf = name.rpartition(".")
    return torch.from_numpy(STORED[f"{case}/{kind}/{names[module]}.{leaf}"])


@pytest.mark.parametrize("case", CASES)
def test_outputs_and_gradients_are_those_of_the_public_semantics(case: str) -> None:
    make, names = CASES[case]
    model = make().double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(stored(case, "weight", name, names))
    mask = torch.from_numpy(STORED["mask"])
    target, source = mask.nonzero().t()
    graph = Graph.from_edge_index(torch.stack([source, target]), 10, dtype=torch.float64)
    logits = model(torch.from_numpy(STORED["features"]), graph)
    torch.testing.assert_close(logits, torch.from_numpy(STORED[f"{case}/logits"]), atol=1e-12, rtol=1e-12)
    logits.square().sum().backward()
    for name, parameter in model.named_parameters():
        expected = stored(case, "gradient", name, names)
        actual = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        torch.testing.assert_close(
            actual, expected, atol=1e-10, rtol=1e-10, msg=lambda text, name=name: f"{name}: {text}"
        )


def test_the_mlp_encoder_is_that_of_the_public_semantics() -> None:
    encoder = Encoder(6, 4, kind="mlp").double()
    x = torch.from_numpy(STORED["features"])
    first, (second, third) = encoder.linear, encoder.layers
    state = first(x)
    state = state + second(F.relu(state))
    torch.testing.assert_close(encoder(x), state + third(F.relu(state)), atol=1e-12, rtol=1e-12)


def test_batch_norm_comes_before_phases_are_clamped() -> None:
    encoder = Encoder(6, 4, batch_norm=True, phase_range=(0.0, torch.pi)).double()
    x = torch.from_numpy(STORED["features"])
    state = encoder.linear(x)
    state = (state - state.mean(dim=0)) / torch.sqrt(state.var(dim=0, correction=0) + 1e-5)
    torch.testing.assert_close(encoder(x), state.clamp(0, torch.pi), atol=1e-12, rtol=1e-12)


def test_initial_weights_are_those_of_the_public_codes() -> None:
    """GCNII's have a standard deviation of 0.072 at a width of 64, where PyG's have 0.125; the attention's are 1e-5."""
    for init, deviation in (("uniform", 0.072), ("glorot", 0.125)):
        model = GCNII(6, 64, 8, 3, init=init)
        for _ in range(2):
            weights = torch.cat([conv.weight1.flatten() for conv in model.convs])
            assert weights.std().item() == pytest.approx(deviation, abs=2e-3)
            model.reset_parameters()
    attention = Attention(4, init="constant", heads=2)
    for _ in range(2):
        assert all((linear.weight == 1e-5).all() for linear in (attention.key, attention.query))
        attention.reset_parameters()
