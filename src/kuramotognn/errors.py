"""Errors that the command line turns into one sentence. Importing this does not import torch."""


class SolverError(ArithmeticError):
    """An integration that failed; the message gives the time, the evaluation, and what to try."""


class CheckError(Exception):
    """A check that came out as it should not; the command line ends with exit code 1."""
