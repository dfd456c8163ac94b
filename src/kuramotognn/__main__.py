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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # The work is done; what is left takes a moment.
    if interrupted:  # Python would end with the signal where C code that ran Python code was interrupted.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _interrupt(*_: object) -> None:
    """Remember Ctrl-C: an interrupted import of a C extension raises some other error. A second one ends at once."""
    global interrupted
    if interrupted:
        os._exit(130)
    interrupted = True
    sys.unraisablehook = _stop
    raise KeyboardInterrupt


def _stop(_: object) -> None:
    """End where Python cannot pass Ctrl-C on, such as in a destructor."""
    print("kuramotognn: interrupted", file=sys.stderr)
    os._exit(130)


if __name__ == "__main__":
    sys.exit(run())
