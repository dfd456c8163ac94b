"""``python -m kuramotognn`` and the command ``kuramotognn``."""

# What is imported here is not yet covered by run(), so that it is little.
from __future__ import annotations

import os
import signal
import sys

INTERRUPTED = 130
interrupted = False


def run() -> int:
    """Run the command line; Ctrl-C ends it with exit code 130, also while modules are imported."""
    signal.signal(signal.SIGINT, _interrupt)
    try:
        from kuramotognn.cli import main

        code = main()
    except (KeyboardInterrupt, Exception):
        if not interrupted:
            raise
        code = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The work is done; what is left takes a moment.
    if interrupted:
        _end(code)
    return code


def _end(code: int) -> None:
    """End at once: Python would end with the signal where C code that ran Python code was interrupted."""
    if code not in (0, INTERRUPTED):  # An interrupted import raises any error.
        print("kuramotognn: interrupted", file=sys.stderr)
        code = INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _interrupt(*_: object) -> None:
    """Remember Ctrl-C and raise it; a second one ends at once."""
    global interrupted
    if interrupted:
        os._exit(INTERRUPTED)
    interrupted = True
    # Some modules catch everything while they are imported, and Python cannot pass on what a destructor raises.
    sys.meta_path.insert(0, _RaiseAgain)
    sys.unraisablehook = _stop
    raise KeyboardInterrupt


class _RaiseAgain:
    """A finder of modules that finds none after Ctrl-C."""

    @staticmethod
    def find_spec(*_: object) -> None:
        raise KeyboardInterrupt


def _stop(problem: sys.UnraisableHookArgs) -> None:
    """End where Ctrl-C was raised in vain; other problems of this kind are those of an early end."""
    if issubclass(problem.exc_type, KeyboardInterrupt):
        _end(1)


if __name__ == "__main__":
    sys.exit(run())
