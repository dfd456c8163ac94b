"""The command line: parsing and presentation only. Each module adds its commands to the application."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules

import pydantic
from cyclopts import CycloptsError, UnknownOptionError
from cyclopts import ValidationError as FlagError

from kuramotognn.cli.base import CheckError, app, prepare
from kuramotognn.experiments.config import explain, no_such_setting
from kuramotognn.models.registry import DEFAULT_MODEL, MODELS
from kuramotognn.solve import SolverError

USER_ERROR = 2
READER_GONE = 141  # what a shell reports for a program that SIGPIPE ended

for _module in iter_modules(__path__, f"{__name__}."):
    import_module(_module.name)  # Importing a module registers its commands.


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is one sentence and exit code 2, never a traceback."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    model = DEFAULT_MODEL
    try:
        model, tokens = prepare(tokens)
        app.meta(tokens, exit_on_error=False, print_error=False, result_action="return_none")
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        how = str(error) or "go on with --resume and the run's folder"
        return _complain(f"interrupted; what was finished is kept, {how}", 130)
    except BrokenPipeError as error:
        return READER_GONE if _reader_gone() else _complain(str(error))
    except CheckError as failure:
        return _complain(str(failure), 1)
    except FlagError as error:
        if os.environ.get("KURAMOTOGNN_DEBUG"):
            raise
        cause = error.__cause__
        return _complain(explain(cause) if isinstance(cause, pydantic.ValidationError) else str(error))
    except UnknownOptionError as error:
        return _complain(_unknown(error, model))
    except (CycloptsError, ValueError, SolverError, OSError) as error:
        if os.environ.get("KURAMOTOGNN_DEBUG"):
            raise
        return _complain(str(error))
    return 0


def _unknown(error: UnknownOptionError, model: str) -> str:
    """What to say of a flag that is not there for this model."""
    flag = error.token.keyword or ""
    if flag.startswith("--model."):
        return no_such_setting(model, flag.removeprefix("--").replace("-", "_"))
    if flag.startswith("--solver.") and not MODELS[model].settings.integrates:
        return f"{model} has no flow to integrate and takes no {flag}"
    return str(error)


def _reader_gone() -> bool:
    """Whether it is the output's pipe that broke, `head` having seen enough, and not one to another process."""
    try:
        print(flush=True)  # What could not be written may have been dropped, so that a flush alone says nothing.
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # The interpreter flushes once more at exit.
        return True
    return False


def _complain(sentence: str, code: int = USER_ERROR) -> int:
    print(f"kuramotognn: {sentence}", file=sys.stderr)
    return code
