"""The application: its commands and the flags that every command takes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from cyclopts import App, Group, Parameter

from kuramotognn._version import __version__
from kuramotognn.environment import environment

COMMANDS = {
    "train": """Train a model on several splits of a data set, and save everything in a run folder.

Flags override --config, which overrides what is recommended for the model on the data set.""",
    "evaluate": "Load the models of a run and compute their accuracies again.",
    "predict": "Write the class probabilities of every node as CSV.",
    "export": "Write the model of a run into a folder to share: settings, parameters, result and a model card.",
    "pretrained": "List the models that come with the library, show the card of one, or copy it as a run folder.",
    "check": "Read a graph of your own and say what was understood, without training.",
    "convert": """Write a graph as a folder whose features and edges are read from disk while training.

INPUT is what --nodes takes; a public data set is named with --dataset. `kuramotognn train --nodes FOLDER` reads it.""",
    "tune": """Search the settings of a model for a data set by --metric on validation nodes; write them as best.toml.

Settings given by a flag or by --config stay as they are; the rest of the model's search space is searched. Splits 0 to
999 and all test nodes stay out of it. `kuramotognn train --config STUDY/best.toml` uses the result.""",
    "reproduce": """Run an experiment of the paper; without a name, list them.

What was run before is not run again. The paper's own protocol is --splits 100 --seeds 20.""",
    "report": "Write the results of experiments beside the paper's: HTML, Markdown, and CSV and LaTeX for each table.",
    "diagnose": "Measure how alike nodes become over the depth of a run or any PyG model, and say if it over-smooths.",
    "explore": "Play the flow of a trained model in the browser: phases, order parameter, energies and accuracy.",
    "theory": """Check the paper's statements numerically: what holds, what fails as written, and what holds instead.

Exit code 1 when a check that should hold does not.""",
    "simulate": "Simulate Kuramoto oscillators, all to all or on a graph.",
    "models": "List the models, or show everything about one.",
    "datasets": """List the public data sets: size, homophily, protocols, the paper's statistics, and which are present.

Facts are computed when a data set is first seen and kept in the data root. Sizes are those of the graph that the
default protocol uses; edges are pairs of nodes; homophily is the share of edges within a class.""",
}
"""Commands in the order of their use, with their help; each has a module of its name."""
WITH_SETTINGS = ("train", "tune")
"""Commands whose flags depend on the model; their modules make the command for it."""


def make_app(tokens: Sequence[str]) -> App:
    """The application for a command line; the flags of some commands depend on the model that it names."""
    app = App(
        name="kuramotognn",
        version=__version__,
        help="Graph neural networks as coupled oscillators: train, evaluate and predict.",
        help_format="plaintext",
        default_parameter=Parameter(negative_iterable=(), negative_none=()),
        suppress_keyboard_interrupt=False,  # main() says how to go on.
    )
    chosen = next((token for token in tokens if token in COMMANDS), None)
    for order, (name, text) in enumerate(COMMANDS.items()):
        if name == chosen and name in WITH_SETTINGS:
            command = import_module(f"kuramotognn.cli.{name}").make_command(model_in(tokens))
            app.command(command, name=name, help=text, sort_key=order)
        else:
            app.command(f"kuramotognn.cli.{name}:{name}", name=name, help=text, sort_key=order)
    app.register_install_completion_command(help="Install completion of commands and flags for your shell.")
    app.meta.group_parameters = Group("Data files, for every command", sort_key=10)
    app.meta.suppress_keyboard_interrupt = False

    @app.meta.default
    def with_data_access(
        *rest: Annotated[str, Parameter(show=False, allow_leading_hyphen=True)],
        data_root: Annotated[
            Path | None,
            Parameter(help="Folder of raw files (default: KURAMOTOGNN_DATA, or the platform's cache folder)."),
        ] = None,
        offline: Annotated[
            bool, Parameter(negative="", help="Download nothing, as KURAMOTOGNN_OFFLINE=1 does.")
        ] = False,
    ) -> None:
        from kuramotognn.cli.downloads import download_bars

        wanted = {"KURAMOTOGNN_DATA": str(data_root)} if data_root else {}
        wanted |= {"KURAMOTOGNN_OFFLINE": "1"} if offline else {}
        with environment(wanted), download_bars(silent="--json" in rest or "--quiet" in rest):
            app(rest, exit_on_error=False, print_error=False, result_action="return_none")

    return app


def model_in(tokens: Sequence[str]) -> str:
    """The model that --model names, else the file of --config, else the default."""
    from kuramotognn.config.resolve import chosen_model, flatten, read_toml
    from kuramotognn.models.lookup import find_model

    file, named = _value_of("--config", tokens), _value_of("--model", tokens)
    content = dict(flatten(read_toml(Path(file)))) if file else {}
    return find_model(chosen_model({"model.name": named}, content)).name


def _value_of(flag: str, tokens: Sequence[str]) -> str | None:
    joined = [token.removeprefix(f"{flag}=") for token in tokens if token.startswith(f"{flag}=")]
    apart = [value for token, value in pairwise(tokens) if token == flag]
    return next(iter([*apart, *joined]), None)
