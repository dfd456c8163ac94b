"""Write a graph as a folder that is mapped from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from kuramotognn.cli.check import NO_FILES, Files
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.cli.terminal import say


def convert(
    source: Annotated[Path | None, Parameter(name="INPUT", help="File of nodes or of a whole graph.")] = None,
    /,
    *,
    out: Annotated[Path, Parameter(help="Folder to make.")],
    dataset: Annotated[str | None, Parameter(help="Public data set to convert instead of files.")] = None,
    files: Files = NO_FILES,
    directed: Annotated[bool, Parameter(negative="", help="Keep edges one-way.")] = False,
    largest_component: Annotated[
        bool, Parameter(negative="", help="Keep the largest connected component only.")
    ] = False,
    self_loops: Annotated[
        bool, Parameter(negative="", help="Add an edge from every node to itself, as data.self-loops does in memory.")
    ] = False,
    output: Output = PLAIN,
) -> None:
    """Write a graph as a folder whose features and edges are read from disk while training."""
    from kuramotognn.data.graph_folder import summarise, write_folder

    graph, summary = _read(source, dataset, dict(files), directed=directed)
    if largest_component:
        graph = graph.largest_component()
        summary = summarise(graph, directed=directed)
    facts = write_folder(graph, summary, out, self_loops=self_loops)
    size = sum(path.stat().st_size for path in out.iterdir())
    if output.json:
        print(json.dumps({"folder": str(out), "bytes": size} | facts.model_dump(mode="json", exclude={"summary"})))
    else:
        say(f"wrote {out} ({size / 1e6:.2f} MB): {facts.nodes} nodes, {facts.edges} directed edges")


def _read(source: Path | None, dataset: str | None, files: dict[str, Any], *, directed: bool) -> tuple[Any, Any]:
    from kuramotognn.data import GraphFiles, load_dataset, read_graph
    from kuramotognn.data.graph_folder import summarise

    if dataset is not None:
        if source is not None or files:
            raise ValueError("--dataset converts a public data set; leave out the files")
        graph = load_dataset(dataset, directed=directed)
        return graph, summarise(graph, directed=directed)
    if (source is None) == ("nodes" not in files):
        raise ValueError("convert needs one graph: name its file of nodes, or a public data set with --dataset")
    if source is not None:
        files["nodes"] = source
    return read_graph(GraphFiles(**files), directed=directed)
