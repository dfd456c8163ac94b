"""Errors that the command line turns into one sentence. Importing this does not import torch."""


class SolverError(ArithmeticError):
    """An integration that failed; the message gives the time, the evaluation, and what to try."""


def memory_ran_out(error: BaseException) -> bool:
    """Whether memory was too small; torch has no class for it on the CPU."""
    words = ("memory", "Storage size calculation overflowed")
    return isinstance(error, MemoryError) or (
        isinstance(error, RuntimeError) and any(each in str(error) for each in words)
    )


class CheckError(Exception):
    """A check that came out as it should not; the command line ends with exit code 1."""
