"""The write-ahead log beside a database: when it is on disk, and what SQLite would silently ignore."""

import ctypes
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import cast

from unbasket.errors import StoreCorruptError

_MAGIC, _HEADER = 0x377F0682, struct.Struct(">8I")  # see SQLite's file format: the last bit is the checksum's order


def _sync_file_range() -> Callable[[int, int, int, int], int]:
    """Linux has this function, for which Python has no name; elsewhere, the disk starts writing when it has to."""
    function = getattr(ctypes.CDLL(None), "sync_file_range", None)
    if function is None:
        return lambda *_: 0
    function.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
    return cast(Callable[[int, int, int, int], int], function)


_synchronise = getattr(os, "fdatasync", os.fsync)
_sync_range, _WRITE = _sync_file_range(), 2  # SYNC_FILE_RANGE_WRITE


def log_of(path: Path) -> Path:
    """The write-ahead log of a database."""
    return path.with_name(path.name + "-wal")


class Log:
    """The log of an open database. SQLite writes to it; we sync it, since there is work to do meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = log_of(path)
        self._file: int | None = None

    def start_writing(self) -> None:
        """Have the disk start writing; `synchronise` waits for the rest."""
        _sync_range(self._opened(), 0, 0, _WRITE)  # if it fails, `synchronise` does too

    def synchronise(self) -> None:
        """Return when what was written, or the log's length, is on disk."""
        _synchronise(self._opened())

    def is_removed(self) -> bool:
        """Whether the file was removed, though it is open: nobody will find what is written to it."""
        return os.fstat(self._opened()).st_nlink == 0

    def _opened(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY)
        return self._file

    def close(self) -> None:
        """Free the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def is_empty(path: Path) -> bool:
    """Whether a database has no log, or nothing in it."""
    return not log_of(path).exists() or log_of(path).stat().st_size == 0


def check_log(path: Path) -> None:
    """Check that a log, if there is one, is empty or begins as SQLite's do: SQLite would overwrite any other."""
    try:
        with log_of(path).open("rb") as file:
            head = file.read(_HEADER.size)
    except FileNotFoundError:
        return
    if any(head) and (len(head) < _HEADER.size or not _is_header(head)):
        raise StoreCorruptError(
            f"{log_of(path)} is damaged, and with it what was learned last. Restore it or a backup; or, to go on "
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
