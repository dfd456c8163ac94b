"""The command line: parsing and presentation only. A command's module is imported when the command is used."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence

from cyclopts import CycloptsError, UnknownOptionError

from kuramotognn.cli.app import make_app, model_in
from kuramotognn.cli.ranks import Complain, run_as_rank, several_processes
from kuramotognn.errors import CheckError, SolverError, memory_ran_out
from kuramotognn.printable import printable

USER_ERROR = 2
INTERRUPTED = 130
BROKEN_PIPE = 141  # the exit code that a shell reports for a program that SIGPIPE ended


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; a user's mistake is one sentence and exit code 2, never a traceback."""
    tokens = list(sys.argv[1:] if arguments is None else arguments)
    if several_processes():
        return run_as_rank(lambda complain: _run(tokens, complain), tokens)
    return _run(tokens, _complain)


def _run(tokens: list[str], complain: Complain) -> int:
    if {"--quiet", "--json"} & set(tokens):
        warnings.simplefilter("ignore")
    try:
        app = make_app(tokens)
        app.meta(tokens, exit_on_error=False, print_error=False, result_action="return_none")
        sys.stdout.flush()
    except KeyboardInterrupt as error:
        how = str(error)
        return complain(f"interrupted{'; what was finished is kept, ' if how else ''}{how}", INTERRUPTED)
    except BrokenPipeError as error:
        return BROKEN_PIPE if _output_closed() else complain(str(error))
    except CheckError as failure:
        return complain(str(failure), 1)
    except UnknownOptionError as error:
        return complain(_unknown_option(error, tokens))
    except (CycloptsError, ValueError, SolverError, OSError, MemoryError, RuntimeError) as error:
        known = not isinstance(error, RuntimeError) or memory_ran_out(error)
        if os.environ.get("KURAMOTOGNN_DEBUG") or not known:
            raise
        return complain(_memory_sentence(error) if memory_ran_out(error) else str(error))
    return 0


def _unknown_option(error: UnknownOptionError, tokens: Sequence[str]) -> str:
    """The error message for a flag that does not exist for the chosen model."""
    flag = error.token.keyword or ""
    if flag.startswith(("--model.", "--solver.")):
        from kuramotognn.config.model_settings import takes_solver
        from kuramotognn.config.resolve import no_such_setting
        from kuramotognn.models.lookup import find_model

        model = model_in(tokens)
        if flag.startswith("--model."):
            return no_such_setting(model, flag.removeprefix("--model.").replace("-", "_"))
        if not takes_solver(find_model(model)):
            return f"{model} has no flow to integrate and takes no {flag}"
    return str(error)


def _memory_sentence(error: BaseException) -> str:
    reason = str(error).rpartition("DefaultCPUAllocator: ")[2] or "no more can be had"
    return f"memory ran out: {reason}; take a smaller model or graph"


def _output_closed() -> bool:
    """Whether it is the output's pipe that broke, as with `head`, and not one to another process."""
    try:
        print(flush=True)  # A write that failed may have been dropped, so that a flush alone is no test.
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # The interpreter flushes once more at exit.
        return True
    return False


def _complain(sentence: str, code: int = USER_ERROR) -> int:
    print(f"kuramotognn: {printable(sentence, 2000)}", file=sys.stderr)
    return code
