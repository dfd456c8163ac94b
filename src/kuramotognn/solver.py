"""How to integrate: methods, steps and tolerances. A fixed-step Runge–Kutta method is a tableau."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from kuramotognn.checks import check_choice, check_number, check_whole
from kuramotognn.typing import Bytes, PositiveFloat, PositiveInt


@dataclass(frozen=True)
class Tableau:
    """Explicit Runge–Kutta: stage times, stage weights, step weights (Butcher's c, A without its first row, b)."""

    times: tuple[float, ...]
    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    @property
    def evaluations(self) -> int:
        """Evaluations of the right-hand side a step."""
        return len(self.weights)

    def coefficients(self, h: float) -> list[float]:
        """Flat square table of step ``h``: row ``s`` weighs the slopes in the state that follows stage ``s``."""
        rows = (*self.stages, self.weights)
        return [h * weight for row in rows for weight in (*row, *[0.0] * (len(rows) - len(row)))]


TABLEAUX = {
    "euler": Tableau((), (), (1.0,)),
    "midpoint": Tableau((0.5,), ((0.5,),), (0.0, 1.0)),
    "heun": Tableau((1.0,), ((1.0,),), (0.5, 0.5)),
    "rk4": Tableau((0.5, 0.5, 1.0), ((0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), (1 / 6, 1 / 3, 1 / 3, 1 / 6)),
}
ADAPTIVE = ("dopri5", "dopri8", "bosh3", "fehlberg2", "adaptive_heun")
IMEX = "imex"
DEFAULT_STEP_SIZE = 0.5
DEFAULT_TOLERANCE = 1e-4
AUTO_MEMORY = 2 << 30
"""Bytes that a fused integration may keep for its gradient unless set."""


@dataclass(frozen=True)
class Solver:
    """How to integrate.

    Args:
        method: fixed steps by ``euler``, ``midpoint``, ``heun`` or ``rk4``; ``imex``, the implicit–explicit step of
            GraphCON for second-order fields (the velocity first, then the position with the new velocity); steps
            adapted to the tolerances by ``dopri5``, ``dopri8``, ``bosh3``, ``fehlberg2`` or ``adaptive_heun``.
        step_size: largest step of a fixed-step method (default 0.5); the interval is cut into equal steps.
        steps: number of steps, instead of ``step_size``.
        rtol: relative tolerance of an adaptive method (default 1e-4).
        atol: absolute tolerance of an adaptive method (default 1e-4).
        adjoint: gradients of an adaptive method by the adjoint equation (constant memory, approximate) instead of
            backpropagation through the steps.
        max_evaluations: stop with an error when one integration needs more evaluations of the right-hand side.
        memory: bytes that a fused integration may keep for its gradient (``auto``: 2 GiB). What does not fit is
            recomputed from checkpoints; the result is the same to the last bit.
    """

    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012 -- read by pydantic where settings are validated

    method: str = "euler"
    step_size: PositiveFloat | None = None
    steps: PositiveInt | None = None
    rtol: PositiveFloat | None = None
    atol: PositiveFloat | None = None
    adjoint: bool = False
    max_evaluations: PositiveInt = 10_000
    memory: Bytes | Literal["auto"] = "auto"

    def __post_init__(self) -> None:
        check_choice("method", self.method, (*TABLEAUX, IMEX, *ADAPTIVE))
        check_whole("max_evaluations", self.max_evaluations)
        if self.steps is not None:
            check_whole("steps", self.steps)
        if self.memory != "auto":
            check_whole("memory", self.memory)
        for name in ("step_size", "rtol", "atol"):
            if (value := getattr(self, name)) is not None:
                check_number(name, value)
        if self.adaptive:
            self._refuse(("step_size", "steps"), "adapts its steps; give rtol and atol instead")
            return
        self._refuse(("rtol", "atol"), "has fixed steps; give step_size or steps instead")
        if self.step_size is not None and self.steps is not None:
            raise ValueError(f"{self.method} takes step_size or steps, not both, got {self.step_size=}, {self.steps=}")
        if self.adjoint:
            raise ValueError(f"adjoint is for {', '.join(ADAPTIVE)}; the gradients of {self.method} are exact")

    def _refuse(self, names: tuple[str, ...], remedy: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ValueError(f"{name} cannot be combined with {self.method}, which {remedy}")

    @property
    def adaptive(self) -> bool:
        """Whether the steps follow the tolerances."""
        return self.method in ADAPTIVE

    def num_steps(self, time: float) -> int:
        """Equal steps that a fixed-step method takes to ``time``."""
        if self.steps is not None:
            return self.steps
        step_size = DEFAULT_STEP_SIZE if self.step_size is None else self.step_size
        # A time that is a multiple of the step up to rounding, such as 1.2 / 0.1, must not get an extra step.
        return max(1, math.ceil(time / step_size * (1 - 1e-9)))

    def repeated(self, time: float, times: int) -> Solver:
        """The solver of ``times`` intervals of length ``time`` each, with the same steps in each of them."""
        return (
            self if self.adaptive or times == 1 else replace(self, step_size=None, steps=times * self.num_steps(time))
        )
