"""Errors that the package raises on purpose. Each message has the offending value and the remedy."""

from importlib import import_module
from typing import Any, NamedTuple


class UnbasketError(Exception):
    """Base class of all errors of this package."""


class InvalidParamsError(UnbasketError, ValueError):
    """A model parameter out of its range."""


class InvalidIdError(UnbasketError, ValueError):
    """A user, basket or item id that is not a non-empty str or a 64-bit int."""


class InvalidBasketError(UnbasketError, ValueError):
    """A basket with no items, too many items, or a time that is not a 64-bit integer."""


class InvalidFrameError(UnbasketError, ValueError):
    """A data frame that lacks a column or holds values that are not purchases."""


class InvalidRequestError(UnbasketError, ValueError):
    """An argument of a query that has no answer, such as n=-1."""


class InvalidEventError(UnbasketError, ValueError):
    """A malformed event, one that lacks a field, or one that exceeds a limit."""


class UnknownUserError(UnbasketError, LookupError):
    """A user without any data."""


class BasketConflictError(UnbasketError, ValueError):
    """A basket id that both users of a merge have."""


class BusyError(UnbasketError):
    """A timeout while a writer is at work, or a second change of parameters at once."""


class StoreError(UnbasketError):
    """A database that cannot be read or written: no space, no permission, no such file.

    `in_python` is advice for Python callers; other programs show `problem` alone.

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
    """A full disk; nothing was changed."""


class UncertainError(StoreError):
    """A failed write that may or may not have reached the disk. Open the database again and look."""


class StoreLockedError(StoreError):
    """A database that another process has open for writing."""


class StoreVersionError(StoreError):
    """A file that is not a database of this package, or is one of another version."""


class StoreCorruptError(StoreError):
    """A damaged database."""


class RollbackError(StoreError):
    """A database that contradicts a checkpoint that a witness has: it is older, or its receipts were changed."""


class MixedIdsError(StoreError):
    """A database of an earlier version that holds numbers and texts as ids of one kind: 17 and "17" are two users."""


class ErasureBlockedError(StoreError):
    """Forgotten data that is out of the database while a reader keeps its bytes in a file."""


class ClosedError(StoreError):
    """A call to an engine that was closed."""


class InvalidReceiptError(UnbasketError, ValueError):
    """A text that is not a receipt."""


class SparkError(UnbasketError):
    """A Spark session that cannot start, or a damaged or foreign checkpoint or table."""


class KafkaError(UnbasketError):
    """A topic that cannot be read or written: no broker, no such topic, events that are no longer there."""


class Remedy(NamedTuple):
    """An argument of a dataset reader that solves the problem, and its effect."""

    argument: str
    value: object
    effect: str


class DatasetError(UnbasketError, ValueError):
    """A dataset that cannot be found or parsed: a missing file, a missing column, a line that is not a purchase.

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
    """A published dataset that is not on this machine; the message says how to get it."""


class MissingPackageError(UnbasketError, ImportError):
    """An optional package that is not installed."""


class AccessError(UnbasketError, ValueError):
    """A key file that cannot be read or written, or an invalid key."""


class SettingsError(UnbasketError, ValueError):
    """A setting that is unknown, missing or out of range."""


class NotReadyError(UnbasketError):
    """A request to an engine that is being loaded or was closed."""


class RetentionError(UnbasketError, ValueError):
    """Retention rules that are missing or implausible."""


def import_optional(module: str, purpose: str, extra: str) -> Any:
    """Import a module of an optional package, or raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackageError(f"{purpose}: pip install 'unbasket[{extra}]'") from error
