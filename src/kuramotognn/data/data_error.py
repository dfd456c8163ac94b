"""The error of the data readers."""


class DataError(ValueError):
    """Data that cannot be used; the message names the file, the place, the value and the remedy."""
