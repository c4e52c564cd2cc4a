"""Every error that the package raises on purpose. Its message has the offending value and what to do."""

from typing import NamedTuple


class UnbasketError(Exception):
    """Base of all errors of this package."""


class InvalidParamsError(UnbasketError, ValueError):
    """A model parameter is out of its range."""


class InvalidIdError(UnbasketError, ValueError):
    """A user, basket or item id is not a non-empty str or a 64-bit int."""


class InvalidBasketError(UnbasketError, ValueError):
    """A basket has no items, too many items, or a time that is not a 64-bit integer."""


class InvalidFrameError(UnbasketError, ValueError):
    """A data frame lacks a column or holds values that are not purchases."""


class InvalidRequestError(UnbasketError, ValueError):
    """A question without an answer, such as the -1 best items."""


class InvalidEventError(UnbasketError, ValueError):
    """Not a valid event, or one that lacks a field."""


class UnknownUserError(UnbasketError, LookupError):
    """Nothing is held about this user."""


class BasketConflictError(UnbasketError, ValueError):
    """Two users who are to become one both have a basket of this id."""


class BusyError(UnbasketError):
    """A writer is at work, and whoever asks does not wait so long; see `unbasket.engine.locks.waiting_at_most`."""


class StoreError(UnbasketError):
    """The database cannot be read or written: no room, no permission, no such file.

    `in_python` is what its message advises those who write Python, and nobody else.

    >>> error = StoreError("shop.db is read-only", "Open it with read_only=True")
    >>> str(error), error.problem
    ('shop.db is read-only. Open it with read_only=True', 'shop.db is read-only')
    """

    def __init__(self, problem: str, in_python: str = "") -> None:
        super().__init__(problem, in_python)
        self.problem = problem

    def __str__(self) -> str:
        return ". ".join(part for part in self.args if part)


class DiskFullError(StoreError):
    """There is no room on the disk; nothing was changed."""


class UncertainError(StoreError):
    """Writing failed in a way that leaves open whether it happened. Open the database again, and look."""


class StoreLockedError(StoreError):
    """Another process has the database open for writing."""


class StoreVersionError(StoreError):
    """The file is not a database of this package, or of a newer version."""


class StoreCorruptError(StoreError):
    """The database is damaged."""


class ErasureBlockedError(StoreError):
    """What was forgotten is out of the database, but a reader keeps its bytes in a file."""


class ClosedError(StoreError):
    """The engine was closed."""


class InvalidReceiptError(UnbasketError, ValueError):
    """Not a receipt."""


class SparkError(UnbasketError):
    """Spark cannot be started, or a checkpoint or table of it is not what it should be."""


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


class MissingPackageError(UnbasketError, ImportError):
    """An optional package is not installed."""


class AccessError(UnbasketError, ValueError):
    """The file of keys can't be read or written, or has no place for such a key."""


class SettingsError(UnbasketError, ValueError):
    """A setting is unknown, missing, or has no such value."""


class NotReadyError(UnbasketError):
    """The engine is being loaded, or was closed."""


class RetentionError(UnbasketError, ValueError):
    """There are no rules, or rules that can't be meant."""
