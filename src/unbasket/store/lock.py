"""The writer lock: one process at a time writes to a database. A crash leaves a note of how much was acknowledged."""

import fcntl
import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from threading import Lock
from zlib import crc32

from unbasket.errors import StoreError, StoreLockedError
from unbasket.files import create
from unbasket.store.sqlite_errors import READ_ONLY_HINT

Identity = tuple[int, int]
"""The device and the inode of a file, which stay the same under another name."""

_CLOSED = -1  # a descriptor
_HOLDER = 16  # bytes of the line with the process id, which the note follows


def identity_of(path: Path | str | int) -> Identity:
    """Return the identity of the file at a path, or of a descriptor."""
    found = os.stat(path)
    return found.st_dev, found.st_ino


def noted_rows(database: Path) -> int:
    """Return the number of rows that the last writer noted as acknowledged; 0 after a close or without a valid note."""
    try:
        number, check = _lock_path(database).read_bytes()[_HOLDER:].split()
        return int(number) if _note_of(int(number)).split()[1] == check else 0
    except (OSError, ValueError):
        return 0


def _note_of(rows: int) -> bytes:
    number = b"%020d" % rows
    return b"%b %08x\n" % (number, crc32(number))


def _lock_path(database: Path) -> Path:
    return database.with_name(database.name + "-lock")


class WriterLock:
    """A locked file beside the database, and a lock of the database itself in case that file is removed.

    From opening to closing, the file beside the database holds the writer's process id and a note of how many rows are
    acknowledged. If it is not locked but holds the note, a crash left it: the database must have that many rows. The
    note is not synced, as a kill leaves it; after a power loss it may be an older one, which proves less.
    """

    _file = _database_file = _CLOSED
    is_released = False

    def __init__(self, database: Path) -> None:
        self._database, self.path = database, _lock_path(database)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(f"cannot write beside {database}: {error.strerror}") from error
        try:
            self._lock(self._file)
        except StoreError:
            self.release()
            raise

    def lock_database(self) -> None:
        """Lock the database itself, and create it if it does not exist."""
        try:
            if not self._database.exists():
                create(self._database)
            self._database_file = os.open(self._database, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"cannot open {self._database}: {error.strerror}") from error
        self._lock(self._database_file)

    def _lock(self, file: int) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._file, _HOLDER, 0).decode(errors="replace").strip() or "unknown"
            raise StoreLockedError(
                f"{self._database} is open for writing in another place (process {holder}). Close it there or, if that "
                "is a service, ask the service",
                READ_ONLY_HINT,
            ) from error
        except OSError as error:
            raise StoreError(
                f"{self._database}: its file system can't lock files ({error.strerror}); use a local disk"
            ) from error

    def mark_open(self, rows: int) -> None:
        """Write this process id, and the note of how many rows there are."""
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, b"%-*d\n" % (_HOLDER - 1, os.getpid()) + _note_of(rows), 0)
        except OSError as error:
            raise StoreError(f"cannot write to {self.path}: {error.strerror}") from error

    def note_rows(self, rows: int) -> None:
        """Note how many rows are on disk. If that fails, the former note says less, but nothing wrong."""
        try:  # noqa: SIM105 - entering `suppress` takes as long as the note itself
            os.pwrite(self._file, _note_of(rows), _HOLDER)
        except OSError:
            pass

    def mark_closed(self) -> None:
        """Remove process id and note: the write-ahead log is empty, and may be removed."""
        os.ftruncate(self._file, 0)

    def release(self) -> None:
        """Release both locks: another process can write then. Releasing again, as after an interrupt, is harmless."""
        for file in (self._database_file, self._file):
            if file != _CLOSED:
                with suppress(OSError):
                    fcntl.flock(file, fcntl.LOCK_UN)
        self.is_released = True
        database_file, self._database_file = self._database_file, _CLOSED
        if database_file != _CLOSED:
            descriptors.close(database_file)
        file, self._file = self._file, _CLOSED
        if file != _CLOSED:
            os.close(file)

    def __del__(self) -> None:
        """Release what an interrupt left, for one between the lock and the `try` that would release it."""
        self.release()


class _Descriptors:
    """Our own descriptors of database files.

    By the rules of POSIX, a process that closes any descriptor of a file loses the locks that SQLite has on that file.
    So a descriptor that is not needed any more is kept until SQLite has closed all of its own.
    """

    def __init__(self) -> None:
        self._guard = Lock()
        self._connections: Counter[Identity] = Counter()
        self._idle: dict[int, Identity] = {}

    def close(self, file: int) -> None:
        """Close a descriptor, now or when SQLite has closed all of its own."""
        with self._guard:
            self._idle[file] = identity_of(file)
            self._close_idle()

    def connected(self, identity: Identity) -> None:
        """Count a connection that SQLite has opened."""
        with self._guard:
            self._connections[identity] += 1

    def disconnected(self, identity: Identity) -> None:
        """Count a connection that SQLite has closed."""
        with self._guard:
            self._connections[identity] -= 1
            self._close_idle()

    def _close_idle(self) -> None:
        self._connections = +self._connections
        for file, identity in list(self._idle.items()):
            if identity not in self._connections:
                del self._idle[file]
                os.close(file)


descriptors = _Descriptors()
