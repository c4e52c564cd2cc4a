"""A disk that can lose its power: writes are kept apart until they are synced.

The engine runs over an apsw VFS. Reads see all writes, as they would through an operating system's cache. After a power
loss, the disk has all synced writes, and any subset, in sectors, of the later ones. Locks and shared memory are real
ones, on files that stay empty.
"""

import random
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import apsw

from unbasket.store.wal import wal_path

SECTOR = 512


class Contents:
    """One file: its synced content, and the changes since: a sector written, or the length cut."""

    def __init__(self) -> None:
        self.now = bytearray()
        self._synced = b""
        self._exists = False
        self._since: list[tuple[int, bytes | None]] = []

    def write(self, data: bytes, offset: int) -> None:
        self.now.extend(bytes(max(0, offset + len(data) - len(self.now))))
        self.now[offset : offset + len(data)] = data
        while data:
            size = SECTOR - offset % SECTOR
            self._since.append((offset, data[:size]))
            offset, data = offset + size, data[size:]

    def truncate(self, size: int) -> None:
        del self.now[size:]
        self._since.append((size, None))

    def sync(self) -> None:
        self._synced, self._exists, self._since = bytes(self.now), True, []

    def after_loss(self, keep: Callable[[], bool]) -> bytes | None:
        """Return the content after a loss, with the later changes that `keep` selects; None for no file."""
        data, exists = bytearray(self._synced), self._exists
        for offset, written in self._since:
            if not keep():
                continue
            exists = True
            if written is None:
                del data[offset:]
            else:
                data.extend(bytes(max(0, offset + len(written) - len(data))))
                data[offset : offset + len(written)] = written
        return bytes(data) if exists else None


class Disk(apsw.VFS):
    """Files that SQLite writes; `step` is called before each change."""

    def __init__(self, step: Callable[[], None]) -> None:
        self.files: dict[str, Contents] = {}
        self.deleted: dict[str, Contents] = {}  # since the directory was synced: they may reappear after a loss
        self.step = step
        self.name = f"lossy {id(self)}"
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> "File":  # noqa: N802
        assert name is not None, "a temporary file"
        return File(self, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        self.step()
        super().xDelete(filename, syncdir)
        self.deleted[filename] = self.files.pop(filename)
        if syncdir:
            self.deleted.clear()

    def wal(self, path: Path) -> "LossyWal":
        """Return the equivalent of `wal.Wal` on this disk."""
        return LossyWal(self, wal_path(path))

    def sync(self, path: Path) -> None:
        """Sync a file, as the engine itself does beside SQLite."""
        self.step()
        if str(path.absolute()) in self.files:
            self.files[str(path.absolute())].sync()

    def after_loss(self, random: random.Random, chance: float) -> dict[str, bytes]:
        """Return the files after a power loss: each change that was not synced has this chance to be there."""
        back = {name: file for name, file in self.deleted.items() if random.random() >= chance}
        left = {name: file.after_loss(lambda: random.random() < chance) for name, file in (back | self.files).items()}
        return {Path(name).name: data for name, data in left.items() if data is not None}

    def connect(self, path: Path, read_only: bool) -> "Connection":
        """Connect as `reader.connect` does, on this disk."""
        flags = apsw.SQLITE_OPEN_READONLY if read_only else apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        return Connection(apsw.Connection(str(path.absolute()), flags=flags, vfs=self.name))


class File(apsw.VFSFile):
    """An open file of a `Disk`."""

    def __init__(self, disk: Disk, name: str | apsw.URIFilename, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        kinds = apsw.SQLITE_OPEN_WAL | apsw.SQLITE_OPEN_MAIN_JOURNAL
        self._syncs_directory = bool(flags[0] & kinds)  # at its first sync, as SQLite does
        self._contents = disk.files.setdefault(str(name if isinstance(name, str) else name.filename()), Contents())

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self._contents.now[offset : offset + amount])

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802
        self._disk.step()
        self._contents.write(bytes(data), offset)

    def xTruncate(self, newsize: int) -> None:  # noqa: N802
        self._disk.step()
        self._contents.truncate(newsize)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        self._disk.step()
        self._contents.sync()
        if self._syncs_directory:
            self._disk.deleted.clear()
            self._syncs_directory = False

    def xFileSize(self) -> int:  # noqa: N802
        return len(self._contents.now)


class LossyWal:
    """The write-ahead log of a database on a `Disk`; unsynced writes may be there after a loss or not."""

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk, self._path, self._reserved = disk, path, 0

    def start_writing(self) -> None:
        self._disk.step()

    def reserve(self) -> None:
        """Write zeros ahead as `Wal` does, but sooner and fewer."""
        file = self._disk.files.get(str(self._path.absolute()))
        if file is not None and len(file.now) > max(self._reserved, 4 * SECTOR):
            self._disk.step()
            file.write(bytes(40 * SECTOR), len(file.now))
            self._reserved = len(file.now)

    def sync(self) -> None:
        self._disk.sync(self._path)

    def is_removed(self) -> bool:
        return False

    def is_cut(self) -> bool:
        return False

    def expect_truncation(self) -> None:
        self._reserved = 0

    def close(self) -> None:
        pass


class Result:
    """The rows that a statement returned."""

    def __init__(self, rows: list[tuple[Any, ...]]) -> None:
        self._rows = iter(rows)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self._rows

    def fetchone(self) -> tuple[Any, ...] | None:
        return next(self._rows, None)

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        return list(islice(self._rows, size))

    def fetchall(self) -> list[tuple[Any, ...]]:
        return list(self._rows)


class Connection:
    """A connection of apsw with the part of the standard library's interface that the engine uses."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def execute(self, statement: str, values: tuple[Any, ...] = ()) -> Result:
        try:
            return Result(list(self._connection.execute(statement, values)))
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error

    def executemany(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        for row in rows:
            self.execute(statement, row)

    @property
    def total_changes(self) -> int:
        return self._connection.total_changes()

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def close(self) -> None:
        self._connection.close()
