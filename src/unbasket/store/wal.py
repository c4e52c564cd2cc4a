"""The write-ahead log beside a database: syncing it, and the damage that SQLite would silently ignore."""

import ctypes
import errno
import os
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import cast

from unbasket.errors import StoreCorruptError, StoreError

_MAGIC, _HEADER = 0x377F0682, struct.Struct(">8I")  # see SQLite's file format: the last bit is the checksum's order


def _sync_file_range() -> Callable[[int, int, int, int], int]:
    """Return Linux's function of this name, which Python does not offer; elsewhere, one that does nothing."""
    function = getattr(ctypes.CDLL(None, use_errno=True), "sync_file_range", None)
    if function is None:
        return lambda *_: 0
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast(Callable[[int, int, int, int], int], function)


_RESERVE_FROM = 2**15  # bytes
_ZEROS = bytes(2**18)

_sync = getattr(os, "fdatasync", os.fsync)
_sync_range, _WRITE = _sync_file_range(), 2  # SYNC_FILE_RANGE_WRITE


def wal_path(database: Path) -> Path:
    """Return the path of the write-ahead log of a database."""
    return database.with_name(database.name + "-wal")


class Wal:
    """The write-ahead log of an open database. SQLite writes to it; we sync it, once for a whole group of commits."""

    def __init__(self, database: Path) -> None:
        self._path = wal_path(database)
        self._file: int | None = None
        self._size = 0  # at the last sync
        self._reserved = 0  # the end of the zeros that were written ahead

    def start_writing(self) -> None:
        """Let the disk start writing; `sync` waits for the rest."""
        if _sync_range(self._descriptor(), 0, 0, _WRITE) != 0 and ctypes.get_errno() == errno.EIO:
            raise OSError(errno.EIO, os.strerror(errno.EIO))  # any other error: the file system can't start early

    def sync(self) -> None:
        """Wait until its content, or its length, is on disk."""
        _sync(self._descriptor())
        self._size = self._end()

    def is_cut(self) -> bool:
        """Return whether another program has cut the file since the last sync: SQLite would write behind the gap."""
        return self._end() < self._size

    def reserve(self) -> None:
        """Write zeros ahead if SQLite has made the file longer: where it does not, a sync takes two thirds of the time.

        SQLite takes zeros for the end of its log. The first commits after a truncation, which a forget may follow, get
        none. If the disk is full, the next commit will say so.
        """
        end = self._end()
        if end < self._reserved:  # truncated
            self._reserved = 0
        if max(self._reserved, _RESERVE_FROM) < end:
            with suppress(OSError):
                self._reserved = end + os.pwrite(self._descriptor(), _ZEROS, end)

    def expect_truncation(self) -> None:
        """Expect that this process is about to truncate the file; an interrupt may come between that and the sync."""
        self._size = 0

    def _end(self) -> int:
        """Return the length. `fstat` would also read the time of change, and so make the next sync write a new one."""
        return os.lseek(self._descriptor(), 0, os.SEEK_END)

    def is_removed(self) -> bool:
        """Return whether the open file has lost its name: the next process to open the database would not find it."""
        return os.fstat(self._descriptor()).st_nlink == 0

    def _descriptor(self) -> int:
        if self._file is None:
            try:
                self._file = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise StoreError(f"cannot open {self._path}: {error.strerror}") from error
        return self._file

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None  # first: after an interrupt, the number may be another file's
        if file is not None:
            os.close(file)


def is_wal_empty(database: Path) -> bool:
    """Return whether a database has no write-ahead log, or nothing in it."""
    path = wal_path(database)
    return not path.exists() or path.stat().st_size == 0


def check_wal(database: Path) -> None:
    """Check that a write-ahead log is missing, empty or begins as SQLite's do: SQLite would overwrite any other."""
    try:
        with wal_path(database).open("rb") as file:
            head = file.read(_HEADER.size)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreError(f"cannot read {wal_path(database)}: {error.strerror}") from error
    if any(head) and (len(head) < _HEADER.size or not _is_header(head)):
        raise StoreCorruptError(
            f"{wal_path(database)} is damaged, and with it what was learned last. Restore it or a backup; or, to go on "
            "without, remove it"
        )


def _is_header(head: bytes) -> bool:
    magic, *_, first, second = _HEADER.unpack(head)
    words = struct.unpack("<6I" if magic == _MAGIC else ">6I", head[:24])
    a = b = 0
    for i in range(0, 6, 2):
        a = (a + words[i] + b) % 2**32
        b = (b + words[i + 1] + a) % 2**32
    return magic in (_MAGIC, _MAGIC + 1) and (a, b) == (first, second)
