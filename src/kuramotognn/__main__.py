"""``python -m kuramotognn`` and the command ``kuramotognn``."""

import os
import signal
import sys

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
        print("kuramotognn: interrupted", file=sys.stderr)
        code = 130
    if interrupted:  # Python would end with the signal where C code that ran Python code was interrupted.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _interrupt(*_: object) -> None:
    """Remember Ctrl-C: an interrupted import of a C extension raises some other error."""
    global interrupted
    interrupted = True
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(run())
