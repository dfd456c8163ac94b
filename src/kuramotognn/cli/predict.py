"""Predict with a model of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kuramotognn.atomic_write import write_atomically
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.ranks import is_first, run_folder
from kuramotognn.cli.terminal import say


def predict(
    run: Path,
    *,
    out: Path,
    overwrite: Annotated[bool, Parameter(negative="")] = False,
    split: int | None = None,
    nodes: Path | None = None,
    edges: Path | None = None,
    features: Path | None = None,
    with_training_nodes: Annotated[bool, Parameter(negative="")] = False,
    allow_missing: Annotated[bool, Parameter(negative="")] = False,
    output: Output = PLAIN,
) -> None:
    """Write the class probabilities of every node as CSV.

    Parameters
    ----------
    run
        Run folder.
    out
        CSV file to write.
    overwrite
        Replace the file if it is there.
    split
        Split whose model predicts (default: the first one).
    nodes
        Other nodes than those of the run, with the columns it was trained with; labels may be missing.
    edges
        The edges between these nodes, unless the file of nodes holds them.
    features
        Their feature matrix, if the run was trained with one.
    with_training_nodes
        Keep the nodes that the run was trained on as neighbours of the new ones.
    allow_missing
        Drop edges whose ends are not among the nodes.
    """
    from kuramotognn.cli.train import RunProgress
    from kuramotognn.runs.stored_run import predict_run

    if out.exists() and not overwrite:
        raise ValueError(f"{str(out)!r} exists; pass --overwrite to replace it, or name another file")
    if not out.parent.is_dir():
        raise ValueError(f"there is no folder {str(out.parent)!r} for {out.name!r}; make it, or name another file")
    new: dict[str, Any] | None = None
    if nodes or edges or features:
        if nodes is None:
            raise ValueError("other nodes need --nodes, and --edges unless they are in the same file")
        new = {"nodes": nodes, "edges": edges, "features": features}
        new |= {"allow_missing": True} if allow_missing else {}
    with run_folder(run) as folder:
        found = predict_run(
            folder, split, new=new, with_training_nodes=with_training_nodes, observer=RunProgress(output)
        )
    if is_first():
        write_atomically(out, found.csv)
    if output.json:
        facts = {"nodes": found.nodes, "model": found.model, "split": found.split, "file": str(out)}
        print(json.dumps(facts))
    else:
        say(f"wrote {found.nodes} predictions of {found.model}, split {found.split}, to {out}")
