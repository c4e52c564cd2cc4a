"""One process at a time writes to a database, and a crash leaves a sign."""

import fcntl
import os
from pathlib import Path

from unbasket.errors import StoreError, StoreLockedError


def is_signed(database: Path) -> bool:
    """Whether somebody writes to the database, or did not close it."""
    path = _beside(database)
    return path.exists() and path.stat().st_size > 0


def _beside(database: Path) -> Path:
    return database.with_name(database.name + "-lock")


class WriterLock:
    """A locked file beside the database, which holds the writer's process id from opening to closing.

    A file that is not locked but holds an id is what a crash leaves: then the write-ahead log must be there too.
    """

    def __init__(self, database: Path) -> None:
        self.path = _beside(database)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write beside {database}: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            holder = os.read(self._file, 32).decode(errors="replace").strip() or "unknown"
            os.close(self._file)
            raise StoreLockedError(
                f"{database} is open for writing in another place (process {holder}). Close it there, "
                "or open it here with read_only=True"
            ) from error

    def sign(self) -> None:
        """Note that this process writes from now on."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%d\n" % os.getpid(), 0)
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}") from error

    def unsign(self) -> None:
        """Note that the write-ahead log is empty and may vanish."""
        os.ftruncate(self._file, 0)

    def release(self) -> None:
        """Allow others to write."""
        os.close(self._file)
