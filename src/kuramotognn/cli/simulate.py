"""Simulate the Kuramoto model."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from cyclopts import App, Parameter
from rich.progress import Progress
from rich.table import Table

from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import make_console, say

if TYPE_CHECKING:
    from kuramotognn.simulate import Frequencies, Oscillators, Simulation, Transition

simulate = App(name="simulate", help_format="plaintext", default_parameter=Parameter(negative_iterable=()))


@Parameter(name="*")
@dataclass(frozen=True)
class Model:
    """What to simulate."""

    oscillators: Annotated[int | None, Parameter(help="How many; not needed where a file says it.")] = None
    frequencies: Annotated[
        str, Parameter(help="lorentzian, normal, uniform, or a .npy/.csv/.txt file with one number per oscillator.")
    ] = "lorentzian"
    centre: Annotated[float, Parameter(help="Mean of the natural frequencies.")] = 0.0
    width: Annotated[float, Parameter(help="Their width: half width at half maximum, deviation, half interval.")] = 1.0
    draw: Annotated[str, Parameter(help="random, or quantiles: no noise of a finite sample.")] = "random"
    graph: Annotated[
        str | None,
        Parameter(
            help="random:DEGREE, small-world:NEIGHBOURS:PROBABILITY, edges.csv (source,target[,weight]), a sparse "
            ".npz, a full matrix .npy; all to all without it."
        ),
    ] = None
    directed: Annotated[bool, Parameter(negative="", help="Edges of a .csv act one way, on the target.")] = False
    normalise: Annotated[str, Parameter(help="Divide a graph's couplings by: none, degree or size.")] = "none"
    lag: Annotated[float, Parameter(help="Phase lag α, in radians.")] = 0.0
    delay: Annotated[float, Parameter(help="Delay τ of what oscillators see of each other.")] = 0.0
    noise: Annotated[float, Parameter(help="Diffusion D: a free oscillator spreads with variance 2 D t.")] = 0.0
    inertia: Annotated[float, Parameter(help="Mass m of the second-order model.")] = 0.0


@Parameter(name="*")
@dataclass(frozen=True)
class Integration:
    """How to simulate it."""

    time: Annotated[float, Parameter(help="Length of the run.")] = 50.0
    step: Annotated[float, Parameter(help="Longest step.")] = 0.05
    samples: Annotated[int, Parameter(help="How many times r is recorded.")] = 200
    method: Annotated[str | None, Parameter(help="rk4, heun or euler (default: rk4; with noise euler).")] = None
    transient: Annotated[float | None, Parameter(help="Means are taken from here on (default: half the time).")] = None
    history: Annotated[str, Parameter(help="Phases before 0, for a delay: constant or uncoupled.")] = "constant"
    dtype: Annotated[str, Parameter(help="float64 or float32.")] = "float64"
    seed: Annotated[int, Parameter(help="Of graph, frequencies, phases and noise.")] = 0
    threads: Annotated[int | None, Parameter(help="Threads to use; they do not change the result.")] = None

    def options(self) -> dict[str, Any]:
        """Keyword arguments of :func:`kuramotognn.simulate.simulate`."""
        return {key: value for key, value in vars(self).items() if key not in ("time", "threads")}


MODEL, INTEGRATION = Model(), Integration()


@simulate.default
def run(
    *,
    model: Model = MODEL,
    integration: Integration = INTEGRATION,
    coupling: Annotated[float, Parameter(help="Coupling K.")] = 1.0,
    out: Annotated[Path | None, Parameter(help="Save the result as .npz or .parquet.")] = None,
    keep_phases: Annotated[bool, Parameter(negative="", help="Save the phases of every sample, too.")] = False,
    figure: Annotated[Path | None, Parameter(help="Draw r(t) and the frequencies as .png, .svg or .pdf.")] = None,
    animate: Annotated[Path | None, Parameter(help="Film of the phases, .gif or .mp4.")] = None,
    output: Output = PLAIN,
) -> None:
    """Simulate Kuramoto oscillators and print their order parameter r.

    m θ'' + θ' = ω_i + K Σ_j a_ij sin(θ_j(t − τ) − θ_i − α) + sqrt(2 D) ξ, with a_ij = 1/N where no graph is given.
    """
    from kuramotognn.plots import simulation_plots as figures
    from kuramotognn.simulate import result
    from kuramotognn.simulate import simulate as integrate

    _check_files(out, result.SUFFIXES)
    _check_files(figure, figures.PICTURES)
    if animate is not None:
        figures.check_film(animate)
        _check_files(animate, figures.FILMS)
    system = _system(model, integration, coupling)
    start = clock.perf_counter()
    with _Bar("simulating", output) as bar:
        run = integrate(
            system,
            integration.time,
            keep_phases=keep_phases or animate is not None,
            on_sample=bar,
            **integration.options(),
        )
    seconds = clock.perf_counter() - start
    if out is not None:
        run.save(out)
    if figure is not None:
        figures.draw_order(run, figure)
    if animate is not None:
        figures.animate(run, animate, graph=_drawable(system))
    _show_run(run, seconds, [path for path in (out, figure, animate) if path], output)


@simulate.command
def transition(
    couplings: Annotated[
        tuple[float, float, int], Parameter(help="First and last coupling and how many: 0.5 5 20.", name="--couplings")
    ] = (0.5, 5.0, 20),
    *,
    model: Model = MODEL,
    integration: Integration = INTEGRATION,
    follow: Annotated[bool, Parameter(negative="", help="Start each run where the last one ended.")] = False,
    out: Annotated[Path | None, Parameter(help="Save the table as .csv, .parquet or .json.")] = None,
    figure: Annotated[Path | None, Parameter(help="Draw r(K) as .png, .svg or .pdf.")] = None,
    output: Output = PLAIN,
) -> None:
    """Order parameter against coupling, beside the theoretical curve where there is one."""
    from kuramotognn.plots import simulation_plots as figures
    from kuramotognn.simulate import transition

    _check_files(out, (".csv", ".parquet", ".json"))
    _check_files(figure, figures.PICTURES)
    low, high, count = couplings
    if count < 1:
        raise ValueError(f"--couplings needs at least one coupling, got {count}")
    system = _system(model, integration, low)
    with _Bar("couplings", output) as bar:
        curve = transition(
            system,
            np.linspace(low, high, count),
            integration.time,
            follow=follow,
            on_coupling=bar,
            **integration.options(),
        )
    if out is not None:
        curve.save(out)
    if figure is not None:
        figures.draw_transition(curve, figure)
    _show_transition(curve, [path for path in (out, figure) if path], output)


class _Bar:
    """A progress bar on the error stream, if that is a terminal."""

    def __init__(self, what: str, output: Output) -> None:
        console = make_console(stderr=True)
        watched = output.verbose and console.is_terminal
        self.progress = Progress(console=console, transient=True, disable=not watched)
        self.task = self.progress.add_task(what, total=None)

    def __enter__(self) -> Callable[[int, int], None]:
        self.progress.start()
        return lambda done, all_: self.progress.update(self.task, completed=done, total=all_)

    def __exit__(self, *error: object) -> None:
        self.progress.stop()


def _check_files(path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Before a long run rather than after it."""
    from kuramotognn.simulate.result import check_suffix

    if path is not None:
        check_suffix(path, suffixes)
        if not path.parent.is_dir():
            raise ValueError(f"the folder of {path} does not exist; make it first")


def _system(model: Model, integration: Integration, coupling: float) -> Oscillators:
    import torch

    from kuramotognn.simulate import Oscillators
    from kuramotognn.simulate.networks import parse_network

    if integration.threads is not None:
        if integration.threads < 1:
            raise ValueError(f"threads must be at least 1, got {integration.threads}")
        torch.set_num_threads(integration.threads)
    if model.oscillators is not None and model.oscillators < 1:
        raise ValueError(f"there must be at least one oscillator, got {model.oscillators}")
    graph = None
    if model.graph is not None:
        graph = parse_network(model.graph, model.oscillators, integration.seed, directed=model.directed)
    return Oscillators(
        model.oscillators,
        coupling=coupling,
        frequencies=_frequencies(model),
        graph=graph,
        **{name: getattr(model, name) for name in ("normalise", "lag", "delay", "noise", "inertia")},
    )


def _frequencies(model: Model) -> Frequencies | np.ndarray[Any, Any]:
    from kuramotognn.simulate import Frequencies

    path = Path(model.frequencies)
    if path.suffix not in (".npy", ".csv", ".txt"):
        return Frequencies(model.frequencies, model.centre, model.width, model.draw)
    if not path.is_file():
        raise ValueError(f"frequencies file {str(path)!r} does not exist")
    try:
        return np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path, ndmin=1)
    except (ValueError, EOFError) as error:
        raise ValueError(f"{path} must hold one number per line: {error}") from None


def _drawable(system: Oscillators) -> Any:
    from kuramotognn.plots.simulation_plots import DRAWN

    return system.network if system.size <= DRAWN else None


def _show_run(run: Simulation, seconds: float, files: list[Path], output: Output) -> None:
    facts = {
        "mean_order": run.mean_order,
        "final_order": float(run.order[-1]),
        "mean_from": float(run.times[run.first]),
        "frequency_spread": float(run.mean_frequencies.std()),
        "settings": run.settings,
        "files": [str(path) for path in files],
    }
    if output.json:
        print(json.dumps(facts, indent=2))
        return
    if output.quiet:
        print(f"r = {run.mean_order:.4f}")
        return
    how = run.settings
    print(f"{how['oscillators']:,} oscillators, {how['graph']}, {how['method']}, step {how['step']:.4g}")
    span = f"t = {facts['mean_from']:.4g} to {run.times[-1]:.4g}"
    print(f"r = {run.mean_order:.4f} ± {run.order[run.first :].std():.4f} over {span}; {run.order[-1]:.4f} at the end")
    rows = _few(len(run.times))
    table = Table("t", "r", "ψ")
    for row in rows:
        table.add_row(f"{run.times[row]:.4g}", f"{run.order[row]:.4f}", f"{run.angle[row]:+.3f}")
    make_console().print(table)
    print(f"{seconds:.2f} s")
    for path in files:
        say(f"wrote {path}")


def _few(count: int) -> list[int]:
    return sorted({int(row) for row in np.linspace(0, count - 1, min(count, 11))})


def _show_transition(curve: Transition, files: list[Path], output: Output) -> None:
    if output.json:
        print(json.dumps(curve.as_dict() | {"files": [str(path) for path in files]}, indent=2))
        return
    if output.quiet:
        print(
            " ".join(f"{coupling:g}:{order:.4f}" for coupling, order in zip(curve.couplings, curve.order, strict=True))
        )
        return
    head = ["K", "r", "±"] + ([] if curve.theory is None else ["theory", "difference"])
    table = Table(*head, title=f"r(K), N = {curve.settings['oscillators']:,}")
    for number, row in enumerate(zip(curve.couplings, curve.order, curve.spread, strict=True)):
        cells = [f"{row[0]:.4g}", f"{row[1]:.4f}", f"{row[2]:.4f}"]
        if curve.theory is not None:
            cells += [f"{curve.theory[number]:.4f}", f"{row[1] - curve.theory[number]:+.4f}"]
        table.add_row(*cells)
    make_console().print(table)
    if curve.critical is not None:
        print(f"critical coupling K_c = 2/(π g(0)) = {curve.critical:.4g}")
    for path in files:
        say(f"wrote {path}")
