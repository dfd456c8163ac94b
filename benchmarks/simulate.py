"""The simulator against the packages ``kuramoto`` and ``jaxkuramoto``: ``python -m benchmarks.simulate [section …]``.

This library needs neither: ``pip install kuramoto==0.4.0 jaxkuramoto==0.0.8``; a section whose package is missing is
left out. Results are compared before anything is timed; candidates take turns in one process on all threads,
medians count, and compilation is left out for everybody. Writes ``benchmarks/results/simulate.json``,
``simulate.md`` and, for the transition, ``transition.json``.
"""

from __future__ import annotations

import json
import statistics
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import sparse
from scipy.integrate import solve_ivp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from benchmarks.roofline import copy_bandwidth
from benchmarks.timing import interleaved, memory_watch, once
from kuramotognn.kernels.memory import pool
from kuramotognn.runs.provenance import provenance
from kuramotognn.simulate import Frequencies, Oscillators, random_network, simulate, small_world, transition

RESULTS = Path(__file__).parent / "results"


def apart(x: Any, y: Any) -> float:
    """The largest distance on the circle."""
    return float(np.abs(np.angle(np.exp(1j * (np.asarray(x, np.float64) - np.asarray(y, np.float64))))).max())


def kuramoto() -> dict[str, Any]:
    """A random graph of 1,000 nodes; ``kuramoto`` gets it as the full matrix it asks for and picks its own steps."""
    from kuramoto import Kuramoto

    n, time, dt, coupling = 1000, 2.0, 0.01, 2.0
    rng = np.random.default_rng(0)
    graph = random_network(n, 10, rng)
    omega, start = rng.normal(size=n), rng.uniform(-np.pi, np.pi, n)
    full = graph.toarray()
    model = Oscillators(coupling=coupling, frequencies=omega, graph=graph, normalise="degree")
    theirs = Kuramoto(coupling=coupling, dt=dt, T=time, natfreqs=omega)

    def ours_run() -> Any:
        return simulate(model, time, step=dt, samples=200, initial_phases=start, keep_phases=True)

    def their_run() -> Any:
        return theirs.run(adj_mat=full, angles_vec=start)

    degrees = np.maximum(np.diff(graph.indptr), 1)

    def field(_: float, x: Any) -> Any:
        turned = graph @ np.exp(1j * x)
        return omega + coupling / degrees * (turned * np.exp(-1j * x)).imag

    exact = solve_ivp(field, (0, time), start, method="DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    ours, other = ours_run().phases, their_run()[:, -1]
    found = {
        "ours against DOP853": apart(ours, exact),
        "kuramoto against DOP853": apart(other, exact),
        "ours against kuramoto": apart(ours, other),
    }
    assert found["ours against kuramoto"] < 1e-4, found
    timings = interleaved({"ours": ours_run, "kuramoto": their_run}, 3, quick={"ours": 5}, warm=True)
    return {"nodes": n, "edges": graph.nnz, "time": time, "dt": dt, "differences": found, "timings": timings}


def jaxkuramoto() -> dict[str, Any]:
    """100,000 oscillators all to all, rk4 with the same steps, r recorded at every step by both."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    from jaxkuramoto import Kuramoto, odeint
    from jaxkuramoto.solver import runge_kutta

    n, steps, dt, coupling = 100_000, 20, 0.05, 3.0
    rng = np.random.default_rng(0)
    omega = Frequencies("normal").sample(n, rng)
    start = rng.uniform(-np.pi, np.pi, n)
    out: dict[str, Any] = {"oscillators": n, "steps": steps, "dt": dt}
    for dtype in ("float64", "float32"):
        theirs = Kuramoto(jnp.asarray(omega, dtype), jnp.asarray(coupling, dtype))
        state = jnp.asarray(start, dtype)

        def whole(x: Any, observed: Any, theirs: Any = theirs, dtype: str = dtype) -> Any:
            # It makes one step less than there are times.
            end = (steps + 0.5) * dt
            done = odeint(theirs.vector_fn, runge_kutta, 0.0, end, dt, x, observed)
            return done.final_state, done.observables

        compiled = {
            "jaxkuramoto": jax.jit(lambda x, f=whole, m=theirs: f(x, m.orderparameter)).lower(state).compile(),
            "jaxkuramoto, r not recorded": jax.jit(lambda x, f=whole: f(x, lambda t, y: y[0])).lower(state).compile(),
        }
        model = Oscillators(coupling=coupling, frequencies=omega)

        def ours_run(model: Any = model, dtype: str = dtype) -> Any:
            return simulate(model, steps * dt, step=dt, samples=steps, initial_phases=start, dtype=dtype)

        runs: dict[str, Any] = {"ours": ours_run}
        for name, function in compiled.items():
            runs[name] = lambda f=function, x=state: jax.block_until_ready(f(x))
        ours, (other, observed) = ours_run(), runs["jaxkuramoto"]()
        phases, order = apart(ours.phases, other), abs(float(observed[-1]) - ours.order[-2])
        assert phases < (1e-8 if dtype == "float64" else 1e-2), phases
        assert order < (1e-10 if dtype == "float64" else 1e-4), order
        timings = interleaved(runs, 3, quick={"ours": 5}, warm=True)
        out[dtype] = {"phase difference": phases, "order difference": order, "timings": timings}
    return out


def million() -> dict[str, Any]:
    """A million oscillators on a random graph of average degree 10: a step against the bandwidth of memory."""
    n = 1_000_000
    rng = np.random.default_rng(0)
    graph = random_network(n, 10, rng)
    model = Oscillators(coupling=1.0, frequencies=rng.normal(size=n), graph=graph)
    start = rng.uniform(-np.pi, np.pi, n)
    bandwidth = copy_bandwidth()
    out: dict[str, Any] = {"oscillators": n, "edges": graph.nnz, "copy_bandwidth": bandwidth, "threads": threads()}
    for dtype, size in (("float64", 8), ("float32", 4)):
        for method, stages in (("euler", 1), ("rk4", 4)):
            seconds = _step(model, start, method, dtype, 8 // stages)
            # Once through memory a stage: columns and row pointers; sine and cosine read and written; phase and
            # frequency read; weighted slopes read and written between stages; the phase written once a step.
            words = 4 * stages + 2 * stages + 2 * (stages - 1) + 1
            traffic = stages * (4 * graph.nnz + 8 * n) + size * n * words
            out[f"{method}, {dtype}"] = {
                "seconds": seconds,
                "bytes": traffic,
                "share of bandwidth": traffic / seconds / bandwidth,
                "neighbours a second": stages * graph.nnz / seconds,
            }
    return out


def places() -> dict[str, Any]:
    """What it costs that neighbours lie anywhere in memory: an Euler step with the same rows, nodes in other places.

    "next to each other" keeps the number of neighbours of every node and makes them the nodes that follow it: the same
    work and traffic, read in order. The others are true renumberings, of a random graph, which has no good one, and of
    a ring whose nodes were shuffled, which has.
    """
    n, rng = 1_000_000, np.random.default_rng(0)
    drawn = random_network(n, 10, rng)
    after = np.repeat(np.arange(n), np.diff(drawn.indptr)) + 1
    after += np.arange(drawn.nnz) - np.repeat(drawn.indptr[:-1], np.diff(drawn.indptr))
    in_order = sparse.csr_array((drawn.data, (after % n).astype(np.int32), drawn.indptr), shape=drawn.shape)
    ring = _renumbered(small_world(n, 10, 0.0, rng), rng.permutation(n))
    graphs = {
        "random graph, as drawn": drawn,
        "random graph, reverse Cuthill–McKee": _renumbered(drawn, reverse_cuthill_mckee(drawn, symmetric_mode=True)),
        "the same rows, neighbours next to each other": in_order,
        "shuffled ring": ring,
        "shuffled ring, reverse Cuthill–McKee": _renumbered(ring, reverse_cuthill_mckee(ring, symmetric_mode=True)),
    }
    omega, start = rng.normal(size=n), rng.uniform(-np.pi, np.pi, n)
    return {
        name: _step(Oscillators(frequencies=omega, graph=graph), start, "euler", "float64", 8)
        for name, graph in graphs.items()
    }


def _renumbered(graph: Any, order: Any) -> Any:
    return sparse.csr_array(graph[order][:, order])


def scale() -> dict[str, Any]:
    """One rk4 step, float64, all to all and on random graphs, and the memory that ten million take."""
    out: dict[str, Any] = {"threads": threads(), "all to all": {}, "degree 10": {}}
    rng = np.random.default_rng(0)
    for n in (1000, 10_000, 100_000, 1_000_000, 10_000_000):
        steps = max(1, 1_000_000 // n)
        pool.free.clear()  # What earlier runs left would not be counted.
        with memory_watch() as growth:
            start, model = rng.uniform(-np.pi, np.pi, n), Oscillators(frequencies=rng.normal(size=n))
            out["all to all"][n] = _step(model, start, "rk4", "float64", steps)
    out["peak_bytes"] = growth[0]
    for n in (1000, 10_000, 100_000, 1_000_000):
        steps = max(1, 300_000 // n)
        start = rng.uniform(-np.pi, np.pi, n)
        model = Oscillators(frequencies=rng.normal(size=n), graph=random_network(n, 10, rng))
        out["degree 10"][n] = _step(model, start, "rk4", "float64", steps)
    return out


def _step(model: Oscillators, start: Any, method: str, dtype: str, steps: int, repeats: int = 3) -> float:
    """Seconds of a step: the difference of runs of two lengths, so that setting up does not count."""

    def run(count: int) -> float:
        h = 0.01
        return once(
            lambda: simulate(
                model, count * h, step=h * 1.0001, samples=1, method=method, dtype=dtype, initial_phases=start
            )
        )

    run(1)
    return statistics.median((run(3 * steps) - run(steps)) / (2 * steps) for _ in range(repeats))


def threads() -> int:
    """As torch has them."""
    return torch.get_num_threads()


def draw_transition() -> dict[str, Any]:
    """r(K) of 100,000 Lorentzian oscillators, at random and not timed; the promise is 0.02 away from K_c."""
    model = Oscillators(100_000, frequencies=Frequencies("lorentzian"))
    curve = transition(model, np.linspace(0.5, 5.0, 19), 60.0, transient=30.0, step=0.1)
    away = np.abs(curve.couplings / 2 - 1) > 0.1
    record = {
        "curve": curve.as_dict(),
        "largest difference away from K_c": float(np.abs(curve.order - curve.theory)[away].max()),
        "provenance": provenance(),
    }
    (RESULTS / "transition.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    from kuramotognn.plots.simulation_plots import draw_transition

    draw_transition(curve, Path(__file__).parent.parent / "docs" / "images" / "transition.png")
    return {key: record[key] for key in ("largest difference away from K_c",)}


SECTIONS = {
    "kuramoto": kuramoto,
    "jaxkuramoto": jaxkuramoto,
    "million": million,
    "places": places,
    "scale": scale,
    "transition": draw_transition,
}


def table(record: dict[str, Any]) -> str:
    """The record as Markdown."""
    lines = [
        "# The simulator, measured",
        "",
        "Written by `python -m benchmarks.simulate`; [simulate.json](simulate.json) holds every number. Medians;",
        "ratios are of turns of one run, with their range; compilation is left out for everybody.",
        "",
        *([f"**{note}**", ""] if (note := record.get("note")) else []),
        "| what | ours | other | ratio | results differ by |",
        "|---|---|---|---|---|",
    ]

    def row(what: str, timings: dict[str, Any], other: str, difference: float) -> str:
        ours, theirs = timings["ours"]["seconds"], timings[other]
        low, high = theirs["ratio_range"]
        ratio = f"{theirs['ratio']:.3g}× [{low:.3g}, {high:.3g}]"
        return f"| {what} | {ours:.4f} s | {other} {theirs['seconds']:.3f} s | {ratio} | {difference:.0e} rad |"

    if part := record.get("kuramoto"):
        what = f"{part['nodes']} nodes, {part['edges'] // 2} edges, t = {part['time']:g}, 200 times kept, float64"
        lines.append(row(what, part["timings"], "kuramoto", part["differences"]["ours against kuramoto"]))
    if part := record.get("jaxkuramoto"):
        for dtype in ("float64", "float32"):
            what = f"{part['oscillators']:,} all to all, {part['steps']} rk4 steps, {dtype}"
            timings, difference = part[dtype]["timings"], part[dtype]["phase difference"]
            lines += [row(what, timings, other, difference) for other in list(timings)[1:]]
    if part := record.get("million"):
        lines += [
            "",
            f"A million oscillators on a random graph of average degree 10 ({part['edges']:,} directed edges).",
            "Traffic is what passes through memory at least once a stage; a copy in the same run reaches "
            f"{part['copy_bandwidth'] / 1e9:.1f} GB/s:",
            "",
            "| step | time | traffic | share of the copy's bandwidth | neighbours read |",
            "|---|---|---|---|---|",
        ]
        for name, row_ in part.items():
            if isinstance(row_, dict):
                lines.append(
                    f"| {name} | {1e3 * row_['seconds']:.1f} ms | {row_['bytes'] / 1e6:.0f} MB | "
                    f"{row_['share of bandwidth']:.0%} | {row_['neighbours a second'] / 1e9:.2f} · 10⁹/s |"
                )
    if part := record.get("places"):
        lines += ["", "The same with nodes in other places (Euler, float64):", "", "| neighbours | step | ratio |"]
        lines.append("|---|---|---|")
        base = next(iter(part.values()))
        lines += [f"| {name} | {_time(seconds)} | {seconds / base:.2f} |" for name, seconds in part.items()]
    if part := record.get("scale"):
        lines += [
            "",
            "One rk4 step in float64:",
            "",
            "| oscillators | all to all | average degree 10 |",
            "|---|---|---|",
        ]
        for n, seconds in part["all to all"].items():
            sparse = part["degree 10"].get(n)
            lines.append(f"| {int(n):,} | {_time(seconds)} | {_time(sparse) if sparse else '–'} |")
        peak = f"{part['peak_bytes'] / 1e9:.1f} GB"
        lines += ["", f"Ten million all to all took {peak} of memory at most, arguments and result included."]
    facts = record["provenance"]
    commit = (facts["commit"] or "unknown")[:12]
    machine = facts["machine"]
    lines += ["", f"*{machine['processors']} processors ({machine['architecture']}), commit {commit}.*"]
    return "\n".join(lines) + "\n"


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} µs" if seconds < 1e-3 else f"{1e3 * seconds:.1f} ms"


def main() -> None:
    """Run the sections named on the command line, or all of them."""
    chosen = sys.argv[1:] or list(SECTIONS)
    if unknown := [name for name in chosen if name not in SECTIONS]:
        sys.exit(f"unknown section {unknown[0]!r}; known: {', '.join(SECTIONS)}")
    warnings.simplefilter("ignore")
    path = RESULTS / "simulate.json"
    # Some sections replace their part; a whole run starts anew, without the note on the one before.
    record = json.loads(path.read_text(encoding="utf-8")) if sys.argv[1:] and path.exists() else {}
    for name in chosen:
        if name in ("kuramoto", "jaxkuramoto") and find_spec(name) is None:
            print(f"{name} is not installed and left out; pip install kuramoto==0.4.0 jaxkuramoto==0.0.8")
            continue
        record[name] = SECTIONS[name]()
        print(name, json.dumps(record[name], indent=2), flush=True)
        record["provenance"] = provenance()
        record = json.loads(json.dumps(record))
        path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (RESULTS / "simulate.md").write_text(table(record), encoding="utf-8")


if __name__ == "__main__":
    main()
