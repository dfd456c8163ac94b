"""Simulate oscillators over time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from kuramotognn.checks import check_choice, check_positive
from kuramotognn.errors import SolverError
from kuramotognn.simulate import oscillator_kernels as kernels
from kuramotognn.simulate.arrays import Array
from kuramotognn.simulate.model import Oscillators
from kuramotognn.simulate.natural_frequencies import Frequencies
from kuramotognn.simulate.result import Simulation

METHODS = {
    "euler": ([0.0], [1.0]),
    "heun": ([1.0, 0.0], [1 / 2, 1 / 2]),
    "rk4": ([1 / 2, 1 / 2, 1.0, 0.0], [1 / 6, 1 / 3, 1 / 3, 1 / 6]),
}
"""Runge–Kutta methods: how far each stage's slope carries to the next one, and the weights of the slopes."""

DTYPES = ("float64", "float32")
HISTORIES = ("constant", "uncoupled")
LARGEST_NETWORK = 2**30  # oscillators: where their sines and cosines stand is counted in 32 bits
BLOCK = {kernels.MEAN_FIELD: 4096, kernels.SPARSE: 4096, kernels.DENSE: 64}
"""Oscillators that are summed up and handed to a thread at once; it must not depend on the number of threads."""
NOISE_AT_ONCE = 1 << 20
MEMORY = 8 << 30
AT_ONCE = 0.25
"""Longest time that a kernel advances in one call; samples are taken and phases are wrapped between calls."""
SUMS_AT_ONCE = 1 << 26
"""Bytes of order-parameter sums that one call may fill."""


def simulate(
    model: Oscillators,
    time: float = 50.0,
    *,
    step: float = 0.05,
    samples: int = 200,
    method: str | None = None,
    seed: int = 0,
    dtype: str = "float64",
    initial_phases: Array | None = None,
    initial_velocities: Array | None = None,
    history: str = "constant",
    keep_phases: bool = False,
    transient: float | None = None,
    on_sample: Callable[[int, int], None] | None = None,
) -> Simulation:
    """Integrate the model from 0 to ``time`` and record the order parameter at equal distances.

    Args:
        model: what to simulate.
        time: length of the run.
        step: the longest step allowed. Steps are equal and meet the samples. With a delay they divide the delay instead
            and the run ends at the first sample not before ``time``.
        samples: how many times r and ψ are recorded after the start.
        method: ``"rk4"`` (default), ``"heun"`` or ``"euler"``. Noise needs ``"euler"``, which is Euler–Maruyama.
        seed: of frequencies, initial phases and noise. The same seed gives the same bits for any number of threads.
        dtype: ``"float64"`` or ``"float32"``.
        initial_phases: ``[N]``; uniform on the circle unless given.
        initial_velocities: ``[N]`` for a model with inertia; the natural frequencies unless given.
        history: for a delay, the phases before 0: ``"constant"``, or ``"uncoupled"``: θ(0) + ω t.
        keep_phases: keep the phases of every sample, ``(samples + 1) * N`` numbers.
        transient: mean frequencies (and mean order) are taken from here on; half of ``time`` unless given.
        on_sample: called with the number of finished samples and of all.
    """
    _check(model, time, step, samples, method, dtype, history, transient)
    clock = _Clock.make(model, time, step, samples)
    chosen = method or ("euler" if model.noise else "rk4")
    real = np.dtype(dtype).type
    rng = np.random.default_rng([seed, 0])
    n = model.size
    frequencies = _frequencies(model, rng)
    phases = _given("initial_phases", initial_phases, n)
    if phases is None:
        phases = rng.uniform(-math.pi, math.pi, n)
    velocities = _given("initial_velocities", initial_velocities, n)
    if velocities is not None and not model.inertia:
        raise ValueError("initial_velocities need inertia; a first-order model has no velocities of its own")
    engine = _Engine(model, clock, chosen, real, frequencies, phases, velocities, history, seed)
    start = time / 2 if transient is None else transient
    return engine.run(samples_from=start, keep_phases=keep_phases, on_sample=on_sample, seed=seed)


def _check(
    model: Oscillators,
    time: float,
    step: float,
    samples: int,
    method: str | None,
    dtype: str,
    history: str,
    transient: float | None,
) -> None:
    check_positive("time", time)
    check_positive("step", step)
    if samples < 1:
        raise ValueError(f"samples must be at least 1, got {samples}")
    check_choice("dtype", dtype, DTYPES)
    check_choice("history", history, HISTORIES)
    if method is not None:
        check_choice("method", method, METHODS)
        if model.noise and method != "euler":
            raise ValueError(f"noise needs method 'euler' (Euler–Maruyama), got {method!r}")
    if transient is not None and not 0 <= transient < time:
        raise ValueError(f"transient must lie between 0 and time={time}, got {transient}")


def _frequencies(model: Oscillators, rng: np.random.Generator) -> Array:
    if isinstance(model.frequencies, Frequencies):
        return model.frequencies.sample(model.size, rng)
    return model.frequencies


def _given(name: str, values: Array | None, n: int) -> Array | None:
    if values is None:
        return None
    values = np.asarray(values, dtype=np.float64)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite numbers of shape [{n}], got shape {list(values.shape)}")
    return values


@dataclass(frozen=True)
class _Clock:
    """When steps are made and samples taken."""

    step: float
    every: int  # steps between samples
    samples: int
    delay: int  # steps

    @staticmethod
    def make(model: Oscillators, time: float, step: float, samples: int) -> _Clock:
        """Steps no longer than asked for that meet the samples and the delay."""
        if model.delay:
            delay = _at_least(model.delay / step)
            h = model.delay / delay
            every = max(1, round(time / samples / h))
            return _Clock(h, every, _at_least(time / (every * h)), delay)
        every = _at_least(time / samples / step)
        return _Clock(time / (samples * every), every, samples, 0)

    @property
    def times(self) -> Array:
        """``[samples + 1]``."""
        return np.arange(self.samples + 1) * (self.every * self.step)


def _at_least(ratio: float) -> int:
    """Rounded up; a rounding error above a whole number does not count."""
    return max(1, math.ceil(ratio * (1 - 1e-12)))


class _Engine:
    """The model laid out for the kernels."""

    def __init__(
        self,
        model: Oscillators,
        clock: _Clock,
        method: str,
        real: type[np.floating[Any]],
        frequencies: Array,
        phases: Array,
        velocities: Array | None,
        history: str,
        seed: int,
    ) -> None:
        self.model, self.clock, self.method, self.real, self.n = model, clock, method, real, model.size
        self.lanes = kernels.lanes(real)
        self.tiles = -(-self.n // self.lanes)
        self.reach, self.weights = (np.array(part) for part in METHODS[method])
        interaction = self._interaction()
        self.kind = interaction["kind"]
        self.block = max(1, BLOCK[self.kind] // self.lanes)
        self.blocks = -(-self.tiles // self.block)
        self.state = self._state(frequencies, phases, velocities)
        self.kernels = kernels.OscillatorKernels(
            stages=self.weights.size,
            delay=clock.delay,
            tiles=self.tiles,
            block=self.block,
            blocks=self.blocks,
            step=clock.step,
            kick=math.sqrt(2 * model.noise * clock.step),
            inertia=model.inertia,
            is_double=real is np.float64,
            reach=self.reach,
            weights=self.weights,
            **interaction,
            **self.state,
        )
        self._set_history(history)
        self.frequencies = frequencies
        self.noise = [np.random.Generator(np.random.SFC64(s)) for s in self._noise_seeds(seed)]

    @property
    def phase(self) -> Array:
        """The phases as numbers, those of the padding too."""
        phase: Array = self.state["phase"]
        return phase

    @property
    def at_once(self) -> int:
        """Samples of one kernel call."""
        most = SUMS_AT_ONCE // (16 * self.blocks * self.weights.size)
        return max(1, min(int(AT_ONCE / self.clock.step), most) // self.clock.every)

    def _noise_seeds(self, seed: int) -> list[np.random.SeedSequence]:
        """A stream for each block: the numbers do not depend on which thread draws them."""
        return np.random.SeedSequence([seed, 2]).spawn(self.blocks) if self.model.noise else []

    def _tiled(self, values: Array | float) -> Array:
        """As many numbers as fill all tiles, zeros behind the last oscillator."""
        tiled = kernels.zeros((self.tiles * self.lanes,), self.real)
        tiled[: self.n] = values
        return tiled

    def _interaction(self) -> dict[str, Any]:
        """The couplings as the kernels read them."""
        network, coupling = self.model.network, self.model.coupling
        fields: dict[str, Any] = {"kind": kernels.MEAN_FIELD}
        if network is None or self.model.normalise == "size":
            coupling /= self.n
        if isinstance(network, np.ndarray):
            size, degrees = self.tiles * self.lanes, np.count_nonzero(network, axis=1)
            matrix = kernels.zeros((size, size), self.real)
            matrix[: self.n, : self.n] = network
            fields |= {"kind": kernels.DENSE, "matrix": matrix}
        elif network is not None:
            if self.n > LARGEST_NETWORK:
                raise ValueError(f"a sparse network may have at most {LARGEST_NETWORK} oscillators, got {self.n}")
            degrees = np.diff(network.indptr)
            rowptr = np.full(self.tiles * self.lanes + 1, network.nnz, np.int64)
            rowptr[: self.n + 1] = network.indptr
            place = (network.indices + network.indices // self.lanes * self.lanes).astype(np.int32)
            fields |= {"kind": kernels.SPARSE, "rowptr": rowptr, "place": place, "entries": network.nnz}
            if (network.data != 1).any():
                fields["weight"] = network.data.astype(self.real)
        if self.model.normalise == "degree":
            fields["scale"] = self._tiled(1 / np.maximum(degrees, 1))
        return fields | {"cosine": coupling * math.cos(self.model.lag), "sine": coupling * math.sin(self.model.lag)}

    def _state(self, frequencies: Array, phases: Array, velocities: Array | None) -> dict[str, Any]:
        """Everything that changes, and the frequencies."""
        stages = self.weights.size
        # A stage of each step of the delay, the present stage and the next one.
        ring = self.clock.delay * stages + 2
        # Sums of all samples of a call are kept, too.
        waiting = self.at_once * self.clock.every if self.at_once > 1 else 0
        summed = max(self.clock.delay, waiting) * stages + 2
        kept = 1 if self.kind == kernels.MEAN_FIELD else ring
        width = 2 * self.tiles * self.lanes
        if (size := kept * width * np.dtype(self.real).itemsize) > MEMORY:
            raise ValueError(
                f"the past of {self.n} oscillators over a delay of {self.clock.delay} steps takes {size / 1e9:.0f} GB, "
                f"more than {MEMORY / 1e9:.0f} GB; choose a longer step, method 'euler' or float32"
            )
        fields: dict[str, Any] = {
            "kept": kept,
            "summed": summed,
            "phase": self._tiled(phases),
            "frequency": self._tiled(frequencies),
            "features": kernels.zeros((kept * width,), self.real),
            "sums": np.zeros((summed, self.blocks, 2)),
            "live": self._tiled(1.0)[-self.lanes :],
        }
        if stages > 1:
            fields["slope"] = self._tiled(0.0)
        if self.model.inertia:
            start = frequencies if velocities is None else velocities
            fields |= {name: self._tiled(start) for name in ("velocity", "stage_velocity")}
            fields["velocity_slope"] = self._tiled(0.0)
        return fields

    def _set_history(self, history: str) -> None:
        """The stages of the past; stage j of a step lies reach[j - 1] of a step behind its start."""
        stages = self.weights.size
        self.kernels.wrap(np.zeros(self.phase.size))
        for slot in range(-self.clock.delay * stages, 1):
            step, stage = divmod(slot, stages)
            when = self.clock.step * (step + (self.reach[stage - 1] if stage else 0.0))
            self.kernels.begin(slot, when if history == "uncoupled" else 0.0)

    def run(
        self, *, samples_from: float, keep_phases: bool, on_sample: Callable[[int, int], None] | None, seed: int
    ) -> Simulation:
        """All samples."""
        clock, flat = self.clock, self.phase
        first = int(np.searchsorted(clock.times, samples_from * (1 - 1e-12)))
        first = min(first, clock.samples - 1)
        turns, begin = np.zeros(flat.size), flat.copy()
        order = np.zeros(clock.samples + 1, np.complex128)
        order[0] = self._order(0)
        trajectory = np.zeros((clock.samples + 1, self.n), self.real) if keep_phases else None
        if trajectory is not None:
            trajectory[0] = flat[: self.n]
        together = 1 if keep_phases else self.at_once
        stops = sorted({*range(0, clock.samples, together), first, clock.samples})
        for last, sample in pairwise(stops):
            if last == first:
                turns[:], begin = 0, flat.copy()
            self._advance(last * clock.every, (sample - last) * clock.every)
            self.kernels.wrap(turns)
            order[last + 1 : sample + 1] = [self._order(k * clock.every) for k in range(last + 1, sample + 1)]
            if not np.isfinite(order[sample]):
                raise SolverError(
                    f"the phases are not finite at t = {clock.times[sample]:.4g}; lower the step {clock.step:.3g}"
                )
            if trajectory is not None:
                trajectory[sample] = flat[: self.n]
            if on_sample is not None:
                on_sample(sample, clock.samples)
        span = clock.times[-1] - clock.times[first]
        travelled = (flat.astype(np.float64) - begin + 2 * math.pi * turns)[: self.n]
        velocity = self.state["velocity"][: self.n].copy() if self.model.inertia else None
        return Simulation(
            times=clock.times,
            order=np.abs(order),
            angle=np.angle(order),
            phases=flat[: self.n].copy(),
            frequencies=self.frequencies,
            mean_frequencies=travelled / span,
            velocities=velocity,
            trajectory=trajectory,
            first=first,
            settings=self.model.describe()
            | {"method": self.method, "step": clock.step, "seed": seed, "dtype": np.dtype(self.real).name},
        )

    def _order(self, step: int) -> complex:
        """r e^{iψ} after so many steps."""
        sums = self.state["sums"][step * self.weights.size % self.state["summed"]].sum(axis=0)
        return complex(sums[1], sums[0]) / self.n

    def _advance(self, first: int, steps: int) -> None:
        """Make the steps, with as many drawn ahead at once as a buffer of noise holds."""
        if not self.noise:
            self.kernels.advance(first, steps, None)
            return
        ahead = max(1, NOISE_AT_ONCE // self.n)
        for start in range(first, first + steps, ahead):
            count = min(ahead, first + steps - start)
            self.kernels.advance(start, count, self._draw(count))

    def _draw(self, steps: int) -> Array:
        noise = kernels.zeros((steps, self.tiles, self.lanes), self.real)
        for number, stream in enumerate(self.noise):
            part = noise[:, number * self.block : (number + 1) * self.block]
            part[:] = stream.standard_normal(part.shape, dtype=self.real)
        return noise
