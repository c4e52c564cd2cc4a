"""SQLite's errors, as errors of this package."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from unbasket.errors import DiskFullError, StoreCorruptError, StoreError, StoreLockedError, StoreVersionError

READ_ONLY_HINT = "In Python, open it with read_only=True to read it"
"""Advice for callers in Python if the database can't be written."""

_FILES = 4  # the database, its log, its shared memory, and a file of ours
_ADVICE = {
    "SQLITE_FULL": (DiskFullError, "there is no room left on its disk. Make room and try again"),
    "SQLITE_READONLY": (StoreError, "it, or its directory, is read-only. Make it writable"),
    "SQLITE_PERM": (StoreError, "this process may not access it"),
    "SQLITE_CANTOPEN": (StoreError, "it cannot be opened. Check that its directory exists and may be written to"),
    "SQLITE_CORRUPT": (StoreCorruptError, "it is damaged. Restore a backup"),
    "SQLITE_NOTADB": (StoreVersionError, "it is not a database"),
    "SQLITE_BUSY": (StoreLockedError, "another program is writing to it. Wait for that to end"),
    "SQLITE_IOERR": (StoreError, "its disk reports an error. Check the disk and its free space"),
}


def translated(path: Path, error: sqlite3.Error) -> StoreError:
    """Return SQLite's error as one of ours, which says what to do."""
    name = getattr(error, "sqlite_errorname", "")
    if name.startswith("SQLITE_CANTOPEN") and not _can_open_files():
        return StoreError(f"{path}: this process has too many files open. Raise its limit (ulimit -n), or close some")
    kind, advice = next(
        (known for prefix, known in _ADVICE.items() if name.startswith(prefix)), (StoreError, "see the message")
    )
    hint = READ_ONLY_HINT if name.startswith("SQLITE_READONLY") else ""
    return kind(f"{path}: {advice} ({error}). Nothing was changed", hint)


def _can_open_files() -> bool:
    """Return whether this process may open as many files as a connection has; SQLite does not say why it can't."""
    with ExitStack() as stack:
        try:
            for _ in range(_FILES):
                stack.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError:
            return False
    return True


def is_refusal(error: sqlite3.Error) -> bool:
    """Return whether a failed write certainly changed nothing, so that it may be tried again: a full disk, for one.

    A failed write is such a refusal, since a quota or a limit of the size of files causes it. Any other I/O error is
    not. The system reports a failed sync once: the next one succeeds, though the data may never have reached the disk.
    """
    name = getattr(error, "sqlite_errorname", "")
    return name == "SQLITE_IOERR_WRITE" or not name.startswith("SQLITE_IOERR")


@contextmanager
def translating(path: Path) -> Iterator[None]:
    """Raise SQLite's errors in the block as ours."""
    try:
        yield
    except sqlite3.Error as error:
        raise translated(path, error) from error
    except UnicodeDecodeError as error:
        raise StoreCorruptError(f"{path}: it is damaged. Restore a backup ({error})") from error
