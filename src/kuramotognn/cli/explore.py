"""Play the flow of trained models in a browser."""

from __future__ import annotations

import json
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from kuramotognn.atomic_write import write_atomically
from kuramotognn.cli.output import PLAIN, Output
from kuramotognn.printable import printable

if TYPE_CHECKING:
    from kuramotognn.explore.sources import TrainedModel


def explore(
    *runs: Path,
    dataset: str | None = None,
    models: Annotated[list[str] | None, Parameter(consume_multiple=True)] = None,
    time: float | None = None,
    split: int | None = None,
    out: Path | None = None,
    gif: Annotated[bool, Parameter(negative="")] = False,
    open_page: Annotated[bool, Parameter(name="--open", negative="--no-open")] = True,
    output: Output = PLAIN,
) -> None:
    """Play the flow of a trained model: phases on graph and circle, order parameter, energies and accuracy over time.

    Writes one HTML file that needs nothing else, and opens it in the browser. Takes run folders, or trains models on a
    data set for it.

    Parameters
    ----------
    runs
        Run folder; several on the same graph are shown side by side.
    dataset
        Train on this data set instead, with recommended settings (default without a run: cora).
    models
        Models to train (default: kuramotognn grand-l-no-x0; beside a run: none).
    time
        Depth T of the models that are trained (default: what is recommended).
    split
        Split whose model is shown, or that is trained on (default: the first finished one; 0).
    out
        Page to write, .html (default: explore.html in the first run's folder; explore-DATASET.html here).
    gif
        Write an animated GIF beside the page, too.
    open_page
        Open the page in the browser.
    """
    if runs and dataset is not None:
        raise ValueError(f"explore takes run folders or --dataset {dataset}, not both; leave one out")
    if out is not None and out.suffix != ".html":
        raise ValueError(f"--out must end in .html, got {str(out)!r}")
    if out is not None and not out.parent.is_dir():
        raise ValueError(f"the folder of --out {str(out)!r} does not exist; make it first")
    if runs and time is not None and not models:
        raise ValueError("--time is the depth of models that are trained; name these with --models")
    trained = _trained_models(runs, dataset, models, time, split, output)
    name = printable(trained[0].task.config.dataset)
    page = out or (runs[0] / "explore.html" if runs else Path(f"explore-{name}.html"))
    record = _write(trained, page, gif)
    if output.json:
        print(json.dumps(record, indent=2))
    else:
        size = page.stat().st_size / 1e6
        print(f"saved {printable(page)} ({size:.1f} MB)" + (f" and {page.with_suffix('.gif').name}" if gif else ""))
    if open_page:
        webbrowser.open(page.resolve().as_uri())


def _trained_models(
    runs: tuple[Path, ...],
    dataset: str | None,
    models: list[str] | None,
    time: float | None,
    split: int | None,
    output: Output,
) -> list[TrainedModel]:
    from kuramotognn.cli.train import RunProgress
    from kuramotognn.explore.sources import MODELS, check_same_graph, from_run, settings, settings_beside, train_now

    found = [from_run(run, split) for run in runs]
    check_same_graph(found)
    if runs:
        configs = [settings_beside(found[0], model, time) for model in models or ()]
    else:
        configs = [settings(dataset or "cora", model, split or 0, time) for model in models or MODELS]
    with RunProgress(output) as progress:
        for config in configs:
            progress.console.print(f"training {config.model.name} on {config.dataset}, split {config.first_split}")
            found.append(train_now(config, progress))
    check_same_graph(found)
    return found


def _write(trained: list[TrainedModel], page: Path, gif: bool) -> dict[str, object]:
    from kuramotognn.explore.graph_layout import make_layout
    from kuramotognn.explore.page import to_page
    from kuramotognn.explore.recording import record

    task = trained[0].task
    layout = make_layout(task.graph)
    recordings = [record(each, layout.nodes) for each in trained]
    write_atomically(page, to_page(task.dataset, layout, recordings))
    if gif:
        from kuramotognn.explore.moving_picture import to_gif

        write_atomically(page.with_suffix(".gif"), to_gif(task.dataset, layout, recordings))
    return {
        "page": str(page),
        "gif": str(page.with_suffix(".gif")) if gif else None,
        "nodes": layout.num_nodes,
        "shown_nodes": layout.nodes.numel(),
        "models": [
            {
                "model": each.title,
                "source": each.source,
                "split": each.split,
                "time": each.times[-1],
                "channels": each.channels,
                "start": {name: values[0] for name, values in each.measures.items()},
                "end": {name: values[-1] for name, values in each.measures.items()},
            }
            for each in recordings
        ],
    }
