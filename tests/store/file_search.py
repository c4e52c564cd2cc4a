"""A forensic search of files: every byte of every file, live or not, fragments included.

The search runs in a process of its own: a process that has a database open must not open its file a second time, since
closing that second descriptor drops SQLite's locks. The format of database files is read here from its specification
(sqlite.org/fileformat2.html), without the code under test.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt

Id = str | int

WINDOW = 8
"""The shortest fragment of an id that counts as found."""


def encoded(value: Id) -> bytes:
    """Encode an id or a name as it would be on disk."""
    return value.encode() if isinstance(value, str) else msgspec.msgpack.encode(value)


def findable(value: Id) -> bool:
    """Return whether an id is too long to be found by chance."""
    return len(encoded(value)) >= WINDOW


def windows(needle: bytes) -> list[bytes]:
    """Return all fragments of the shortest length that counts."""
    return [needle[i : i + WINDOW] for i in range(len(needle) - WINDOW + 1)]


class FileSearcher:
    """A process that searches files."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()

    def search(self, folder: Path, ids: Iterable[Id]) -> dict[Id, tuple[str, int]]:
        """Return the ids of which a fragment is in a file of the folder, with the file and the offset of the first."""
        searched = [value for value in ids if findable(value)]
        found = self._ask("search", folder, [encoded(value).hex() for value in searched])
        return {searched[number]: (file, offset) for number, file, offset in found}

    def residue(self, folder: Path, ids: Iterable[Id]) -> list[str]:
        """Describe the results of `search`: the page that holds a fragment, and the part of it."""
        found = self.search(folder, ids)
        files = {file: dict(self._ask("pages", Path(file), [])) for file in {file for file, _ in found.values()}}
        return [
            f"{value!r} in {file} at {offset}: {files[file].get(offset // 4096 + 1, '')}"
            for value, (file, offset) in found.items()
        ]

    def parse(self, path: Path) -> "DatabaseFile":
        """Parse a database file."""
        return msgspec.convert(self._ask("parse", path, []), DatabaseFile, strict=False)

    def _ask(self, what: str, path: Path, needles: list[str]) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([what, str(path), needles]).encode() + b"\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


# In the process ------------------------------------------------------------------------------------------------------


def _search(folder: Path, needles: list[bytes]) -> list[tuple[int, str, int]]:
    owners: dict[bytes, int] = {}
    for number, needle in enumerate(needles):
        owners.update(dict.fromkeys(windows(needle), number))
    wanted = np.frombuffer(b"".join(owners), np.uint64)
    order = np.argsort(wanted)
    wanted, numbers = wanted[order], np.fromiter(owners.values(), np.int64, len(owners))[order]
    found: dict[int, tuple[str, int]] = {}
    for path in sorted(folder.rglob("*")):
        for number, offset in _hits(_content(path), wanted, numbers):
            found.setdefault(number, (str(path), offset))
    return [(number, *where) for number, where in found.items()]


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, IsADirectoryError):  # a write-ahead log that a reader has just removed
        return b""


def _hits(content: bytes, wanted: npt.NDArray[np.uint64], numbers: npt.NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Yield the numbers of the needles with a wanted window in the content, and its offset."""
    if not len(wanted):
        return
    sieve = np.zeros(2**20, np.bool_)
    sieve[_hashed(wanted)] = True
    for shift in range(WINDOW):
        count = (len(content) - shift) // WINDOW
        if count <= 0:
            return
        seen = np.frombuffer(content, np.uint64, count, shift)
        candidates = np.flatnonzero(sieve[_hashed(seen)])
        indexes = np.minimum(np.searchsorted(wanted, seen[candidates]), len(wanted) - 1)
        equal = wanted[indexes] == seen[candidates]
        found, first = np.unique(numbers[indexes[equal]], return_index=True)
        yield from zip(found.tolist(), (candidates[equal][first] * WINDOW + shift).tolist(), strict=True)


def _hashed(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return (values * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(44)


def _pages(path: Path) -> list[tuple[int, str]]:
    """Return the kind of each page of a database, with the residue in it."""
    content = _content(path)
    if not content.startswith(b"SQLite format 3\0"):
        return []
    parser = _PageParser(content)
    for slack in parser.slack:
        parser.kinds[slack.page] += f"; {slack.what} from {slack.start}: {slack.fragment}"
    return list(parser.kinds.items())


class Slack(NamedTuple):
    """Unused bytes of a page that are not zero."""

    page: int
    what: str
    start: int
    fragment: str


class DatabaseFile(msgspec.Struct):
    """The content of a database file: rows by table, and residue outside of rows."""

    rows: dict[str, dict[int, bytes]]
    slack: list[Slack]


class _PageParser:
    """A parser of all pages of a database file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = int.from_bytes(content[16:18], "big")
        self.size = 65536 if self.size == 1 else self.size
        self.rows: dict[str, dict[int, bytes]] = {}
        self.kinds: dict[int, str] = {}
        self.slack: list[Slack] = []
        for body in dict(self._cells(1, "schema")).values():
            _, name, _, root, _ = _columns(body)
            assert isinstance(name, str)
            assert isinstance(root, int)
            self.rows[name] = {row: _blob(record) for row, record in self._cells(root, name)}
        self._free_pages(_int(content, 32))
        if _int(content, 52):  # with auto-vacuum, some pages map those that follow, in 5 bytes for each
            self.kinds |= dict.fromkeys(range(2, len(content) // self.size + 1, self.size // 5 + 1), "map of pages")
        for page in range(1, len(content) // self.size + 1):
            if page not in self.kinds:
                self.kinds[page] = "lost page"
                self._empty(page, "lost page", (page - 1) * self.size, page * self.size)

    def _cells(self, page: int, table: str, depth: int = 0) -> Iterator[tuple[int, bytes]]:
        """Yield the rows below a page of a table."""
        base = (page - 1) * self.size
        head = base + (100 if page == 1 else 0)
        kind, count = self._content[head], int.from_bytes(self._content[head + 3 : head + 5], "big")
        leaf = kind == 13
        assert leaf or kind == 5, f"page {page} of {table} is of kind {kind}"
        self.kinds[page] = f"{'leaf' if leaf else 'interior page'} of {table}"
        pointers = head + (8 if leaf else 12)
        starts = [
            base + int.from_bytes(self._content[at : at + 2], "big") for at in range(pointers, pointers + 2 * count, 2)
        ]
        extents = [(base, pointers + 2 * count)]
        below = []
        for start in starts:
            if leaf:
                row, record, end = self._cell(start, table)
                yield row, record
            else:
                below.append(_int(self._content, start))
                end = _varint(self._content, start + 4)[1]
            extents.append((start, end))
        if not leaf:
            below.append(_int(self._content, head + 8))
        for child in below:
            yield from self._cells(child, table, depth + 1)
        split = depth > 0 or not all("leaf" in self.kinds[child] for child in below)
        if page != 1 and (leaf or not split):  # interior pages that were split keep numbers of rows and pages only
            self._gaps(page, extents)

    def _cell(self, start: int, table: str) -> tuple[int, bytes, int]:
        length, at = _varint(self._content, start)
        row, at = _varint(self._content, at)
        local = self._local(length)
        record, end = self._content[at : at + local], at + local
        if local < length:
            page, end = _int(self._content, end), end + 4
            while page:
                base = (page - 1) * self.size
                self.kinds[page] = f"overflow page of row {row} of {table}"
                used = min(self.size - 4, length - len(record))
                record += self._content[base + 4 : base + 4 + used]
                self._empty(page, "end of an overflow page", base + 4 + used, base + self.size)
                page = _int(self._content, base)
        assert len(record) == length
        return row, record, end

    def _local(self, length: int) -> int:
        """Return how many bytes of a record are in the leaf itself."""
        if length <= self.size - 35:
            return length
        least = (self.size - 12) * 32 // 255 - 23
        local = least + (length - least) % (self.size - 4)
        return local if local <= self.size - 35 else least

    def _gaps(self, page: int, extents: list[tuple[int, int]]) -> None:
        end = page * self.size
        for (_, start), (stop, _) in pairwise([*sorted(extents), (end, end)]):
            if not self._lists_pages(start, stop):  # SQLite reuses a trunk of the freelist as a leaf without wiping it
                self._empty(page, "unallocated gap", start, stop)

    def _lists_pages(self, start: int, stop: int) -> bool:
        """Return whether the bytes are only numbers of pages that were free once, even in a larger file.

        The files here have too few pages for a number that could be two characters of a text.
        """
        before, after = start % 4, -stop % 4  # bytes of words that are partly outside
        words = np.frombuffer(bytes(before) + self._content[start:stop] + bytes(after), ">u4")
        return bool(words.max(initial=0) < 0x2020)

    def _free_pages(self, trunk: int) -> None:
        while trunk:
            base = (trunk - 1) * self.size
            count = _int(self._content, base + 4)
            self.kinds[trunk] = "trunk of the freelist"
            rest = base + 8 + 4 * count, base + self.size
            if not self._lists_pages(*rest):
                self._empty(trunk, "end of a freelist trunk", *rest)
            for i in range(count):
                page = _int(self._content, base + 8 + 4 * i)
                self.kinds[page] = "freelist page"
                self._empty(page, "freelist page", (page - 1) * self.size, page * self.size)
            trunk = _int(self._content, base)

    def _empty(self, page: int, what: str, start: int, stop: int) -> None:
        if any(self._content[start:stop]):
            self.slack.append(Slack(page, what, start, repr(self._content[start:stop].strip(b"\0")[:80])))


def _int(content: bytes, at: int) -> int:
    return int.from_bytes(content[at : at + 4], "big")


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for i in range(8):
        byte = content[at + i]
        value = value << 7 | byte & 127
        if byte < 128:
            return value, at + i + 1
    return value << 8 | content[at + 8], at + 9


def _columns(record: bytes) -> list[object]:
    """Decode the columns of a record that has texts, blobs and ints only."""
    size, at = _varint(record, 0)
    columns: list[object] = []
    offset = size
    while at < size:
        kind, at = _varint(record, at)
        length = (kind - 12) // 2 if kind >= 12 else (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)[kind]
        value = record[offset : offset + length]
        offset += length
        columns.append((value.decode() if kind % 2 else value) if kind >= 12 else int.from_bytes(value, "big"))
    return columns


def _blob(record: bytes) -> bytes:
    """Return the body of a row, whose id is not in the record."""
    _, body = _columns(record)
    assert isinstance(body, bytes)
    return body


def _parse(path: Path) -> DatabaseFile:
    parser = _PageParser(path.read_bytes())
    return DatabaseFile(parser.rows, parser.slack)


def _serve() -> None:
    for line in sys.stdin:
        what, path, needles = json.loads(line)
        if what == "search":
            answer: object = _search(Path(path), [bytes.fromhex(needle) for needle in needles])
        else:
            answer = _parse(Path(path)) if what == "parse" else _pages(Path(path))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve()
