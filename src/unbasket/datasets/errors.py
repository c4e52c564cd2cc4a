"""The error of every loader."""

from typing import NamedTuple

from unbasket.errors import UnbasketError


class Remedy(NamedTuple):
    """An argument of a reader that helps, and what it does."""

    argument: str
    value: object
    effect: str


class DatasetError(UnbasketError, ValueError):
    """A dataset cannot be found, or a file does not fit: a column is missing, or a line is not a purchase.

    `remedy` is for programs whose options have other names than the readers' arguments.

    >>> str(DatasetError("sales.csv: no column user", Remedy("separator", ";", "reads it")))
    "sales.csv: no column user. separator=';' reads it"
    """

    def __init__(self, problem: str, remedy: Remedy | None = None) -> None:
        advice = f". {remedy.argument}={remedy.value!r} {remedy.effect}" if remedy else ""
        super().__init__(problem + advice)
        self.problem = problem
        self.remedy = remedy


class MissingDatasetError(DatasetError):
    """A published dataset is not on this machine; the message says how to get it."""
