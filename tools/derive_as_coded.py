"""Derive outputs and gradients of the authors' public semantics on a small graph: tests/models/as_coded.npz.

    python tools/derive_as_coded.py

Dense matrices in float64, written from a description of what the public code of KuramotoGNN, GRAND, GraphCON and GCNII
computes; nothing of this library is used. Each case stores its weights, the logits and the gradient of a loss.
"""

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

OUT = Path(__file__).parent.parent / "tests" / "models" / "as_coded.npz"
NODES, FEATURES, HIDDEN, CLASSES, HEADS = 10, 6, 4, 3, 2
STEPS, TIME = 5, 1.0
Weights = dict[str, Tensor]


def graph() -> Tensor:
    """``[N, N]`` ones where row i receives from column j; a self-loop everywhere, not symmetric."""
    generator = torch.Generator().manual_seed(0)
    return ((torch.rand(NODES, NODES, generator=generator) < 0.3) | torch.eye(NODES, dtype=torch.bool)).double()


def weights(shapes: dict[str, tuple[int, ...]], seed: int) -> Weights:
    generator = torch.Generator().manual_seed(seed)
    return {
        name: (0.7 * torch.randn(shape, generator=generator, dtype=torch.float64)).requires_grad_()
        for name, shape in shapes.items()
    }


def attention(x: Tensor, w: Weights, mask: Tensor, score: str, squash: str, over: str) -> Tensor:
    """``[N, N]`` mean over heads; the receiving node is projected by Q, the sending one by K."""
    width = w["q.weight"].size(0) // HEADS
    q = (x @ w["q.weight"].T + w["q.bias"]).view(NODES, HEADS, width)
    k = (x @ w["k.weight"].T + w["k.bias"]).view(NODES, HEADS, width)
    if score == "pearson":
        q, k = q - q.mean(-1, keepdim=True), k - k.mean(-1, keepdim=True)
    dots = torch.einsum("ihc,jhc->ijh", q, k)
    if score == "scaled-dot":
        s = dots / math.sqrt(width)
    elif score == "exp-kernel":
        distance = (q[:, None] - k[None]).square().sum(-1)
        s = w["sigma"] ** 2 * torch.exp(-distance / (2 * w["length"] ** 2))
    else:
        s = dots / (q.norm(dim=-1).clamp(min=1e-5)[:, None] * k.norm(dim=-1).clamp(min=1e-5)[None])
    present = mask.bool()[..., None]
    if squash == "squareplus":
        s = s - s[mask.bool()].max()
        value = (s + torch.sqrt(s**2 + 4)) / 2
    else:
        value = torch.exp(s)
    value = torch.where(present, value, 0.0)
    return (value / value.sum(dim=1 if over == "row" else 0, keepdim=True)).mean(dim=-1)


def kuramoto(score: str, squash: str, over: str) -> Callable[[Tensor, Weights, Tensor], Tensor]:
    """Clamped start, detached frequencies, K R sin(A x − x), ReLU before the decoder; Euler steps."""

    def model(v: Tensor, w: Weights, mask: Tensor) -> Tensor:
        x = (v @ w["enc.weight"].T + w["enc.bias"]).clamp(0, math.pi)
        omega, a, h = x.detach(), attention(x, w, mask, score, squash, over), TIME / STEPS
        for _ in range(STEPS):
            order = torch.sqrt((a @ x.cos()) ** 2 + (a @ x.sin()) ** 2)
            x = x + h * (omega + 1.3 * order * torch.sin(a @ x - x))
        return x.relu() @ w["dec.weight"].T + w["dec.bias"]

    return model


def grand(v: Tensor, w: Weights, mask: Tensor) -> Tensor:
    """sigmoid(α)(A x − x) + β x0, x0 detached; squareplus over columns; Euler steps."""
    x = v @ w["enc.weight"].T + w["enc.bias"]
    x0, a, h = x.detach(), attention(x, w, mask, "scaled-dot", "squareplus", "column"), TIME / STEPS
    for _ in range(STEPS):
        x = x + h * (w["alpha"].sigmoid() * (a @ x - x) + w["beta"] * x0)
    return x.relu() @ w["dec.weight"].T + w["dec.bias"]


def graphcon_homophilic(v: Tensor, w: Weights, mask: Tensor) -> Tensor:
    """Gated sources, no activation and no transform; velocity first, then the position with the new velocity."""
    x = v @ w["enc.weight"].T + w["enc.bias"]
    x0, a, h = x.detach(), attention(x, w, mask, "scaled-dot", "squareplus", "column"), TIME / STEPS
    y = x
    beta, delta, epsilon = (w[name].sigmoid() for name in ("beta", "delta", "epsilon"))
    for _ in range(STEPS):
        y = y + h * ((1 - beta) * (a @ x - x - y) + beta * x0)
        x = x + h * ((1 - delta) * epsilon * y + delta * x0)
    return x.relu() @ w["dec.weight"].T + w["dec.bias"]


def graphcon_heterophilic(version: int) -> Callable[[Tensor, Weights, Tensor], Tensor]:
    """ReLU after the encoder, a graph convolution with a residual inside the ReLU, two layers of step 1."""

    def model(v: Tensor, w: Weights, mask: Tensor) -> Tensor:
        scale = mask.sum(dim=1).rsqrt()
        p = scale[:, None] * mask * scale[None]
        x = y = (v @ w["enc.weight"].T + w["enc.bias"]).relu()
        for _ in range(2):
            mapped = x @ w["conv.weight"].T
            residual = -(mapped if version == 1 else x) @ w["res.weight"].T - w["res.bias"]
            residual = residual if version == 1 else -mapped - residual
            y = y + (p @ mapped + w["conv.bias"] + residual).relu() - 0.3 * y - 0.2 * x
            x = x + y
        return x @ w["dec.weight"].T + w["dec.bias"]

    return model


def gcnii(v: Tensor, w: Weights, mask: Tensor) -> Tensor:
    """Two layers: ReLU(θ S W + (1 − θ) S) with S = (1 − α) P x + α x0 and θ = log(λ / l + 1)."""
    scale = mask.sum(dim=1).rsqrt()
    p = scale[:, None] * mask * scale[None]
    x = x0 = (v @ w["enc.weight"].T + w["enc.bias"]).relu()
    for layer in (1, 2):
        theta = math.log(0.5 / layer + 1)
        support = 0.9 * (p @ x) + 0.1 * x0
        x = (theta * support @ w[f"w{layer}"] + (1 - theta) * support).relu()
    return x @ w["dec.weight"].T + w["dec.bias"]


ENDS = {
    "enc.weight": (HIDDEN, FEATURES),
    "enc.bias": (HIDDEN,),
    "dec.weight": (CLASSES, HIDDEN),
    "dec.bias": (CLASSES,),
}
ATTENTION = {
    name: (HIDDEN, HIDDEN) if "weight" in name else (HIDDEN,) for name in ("q.weight", "q.bias", "k.weight", "k.bias")
}
CONV = {"conv.weight": (HIDDEN, HIDDEN), "conv.bias": (HIDDEN,), "res.weight": (HIDDEN, HIDDEN), "res.bias": (HIDDEN,)}
CASES = {
    "kuramotognn-scaled-dot-squareplus-column": (kuramoto("scaled-dot", "squareplus", "column"), ENDS | ATTENTION),
    "kuramotognn-exp-kernel-squareplus-column": (
        kuramoto("exp-kernel", "squareplus", "column"),
        ENDS | ATTENTION | {"sigma": (), "length": ()},
    ),
    "kuramotognn-cosine-squareplus-row": (kuramoto("cosine", "squareplus", "row"), ENDS | ATTENTION),
    "kuramotognn-pearson-softmax-row": (kuramoto("pearson", "softmax", "row"), ENDS | ATTENTION),
    "grand-l": (grand, ENDS | ATTENTION | {"alpha": (), "beta": ()}),
    "graphcon-homophilic": (graphcon_homophilic, ENDS | ATTENTION | {"beta": (), "delta": (), "epsilon": ()}),
    "graphcon-heterophilic-1": (graphcon_heterophilic(1), ENDS | CONV),
    "graphcon-heterophilic-2": (graphcon_heterophilic(2), ENDS | CONV),
    "gcnii": (gcnii, ENDS | {"w1": (HIDDEN, HIDDEN), "w2": (HIDDEN, HIDDEN)}),
}


def main() -> None:
    mask, generator = graph(), torch.Generator().manual_seed(1)
    v = torch.randn(NODES, FEATURES, generator=generator, dtype=torch.float64)
    arrays: dict[str, np.ndarray] = {"features": v.numpy(), "mask": mask.numpy()}
    for seed, (name, (model, shapes)) in enumerate(CASES.items()):
        w = weights(shapes, seed + 2)
        logits = model(v, w, mask)
        logits.square().sum().backward()
        arrays[f"{name}/logits"] = logits.detach().numpy()
        for key, value in w.items():
            arrays[f"{name}/weight/{key}"] = value.detach().numpy()
            arrays[f"{name}/gradient/{key}"] = (torch.zeros_like(value) if value.grad is None else value.grad).numpy()
    np.savez_compressed(OUT, **arrays)
    print(f"wrote {OUT.name}: {len(CASES)} cases, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
