"""The error of every loader."""

from unbasket.errors import UnbasketError


class DatasetError(UnbasketError, ValueError):
    """A dataset cannot be found, or a file does not fit: a column is missing, or a line is not a purchase."""


class MissingDatasetError(DatasetError):
    """A published dataset is not on this machine; the message says how to get it."""
