"""Text files line by line, to find and to show what Polars can't read."""

import gzip
import io
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from unbasket.domain.decoding import decode_json
from unbasket.errors import DatasetError

_LONG = 1 << 20  # characters


@contextmanager
def open_text(content: Path | bytes) -> Iterator[IO[str]]:
    """A file, compressed or not, or what was one; what is not UTF-8 is replaced by U+FFFD."""
    if isinstance(content, bytes):
        yield io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace", newline="\n")
        return
    opener = gzip.open if content.suffix == ".gz" else open
    try:
        with opener(content, "rt", encoding="utf-8-sig", errors="replace", newline="\n") as file:
            yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(f"{content}: it is damaged, or not compressed with gzip: {error}") from error


def lines_of(content: Path | bytes) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, from 1."""
    with open_text(content) as file:
        yield from enumerate(file, start=1)


class Record(NamedTuple):
    """A record of a CSV file, and the line on which it starts."""

    line: int
    text: str  # a long one is cut off
    closed: bool  # whether its quotes are

    @property
    def whole(self) -> bool:
        """Whether this is all of it."""
        return self.closed and len(self.text) < _LONG


def records_of(content: Path | bytes) -> Iterator[Record]:
    """The records of a CSV file. A record ends with a line if its quotes are closed."""
    start, record, quotes = 1, "", 0
    for line, text in lines_of(content):
        if len(record) < _LONG:  # a quote that is never closed makes a record of the rest of the file
            record += text
        quotes += text.count('"')
        if quotes % 2 == 0:
            yield Record(start, record, closed=True)
            start, record, quotes = line + 1, "", 0
    if record:
        yield Record(start, record, closed=False)


def fields_of(record: str, separator: str) -> list[str] | None:
    """The fields of a record; None if a quote is neither around a field nor doubled."""
    record = record.rstrip("\r\n")
    if '"' not in record:
        return record.split(separator)
    mark = re.escape(separator)
    field = re.compile(rf'(?:"[^"]*(?:""[^"]*)*"|[^"{mark}]*)(?={mark}|\Z)')
    fields, place = [], 0
    while found := field.match(record, place):
        fields.append(found[0])
        place = found.end() + 1
        if found.end() == len(record):
            return fields
    return None


def is_json_object(text: str) -> bool:
    """Whether a line of NDJSON is one."""
    try:
        decode_json(text, dict)
    except msgspec.DecodeError:
        return False
    return True


def shown(value: object, longest: int = 80) -> str:
    """A value in an error message, cut off where it becomes too long."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]!r}..."
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}..."


def shown_list(names: Sequence[str]) -> str:
    """Some names in an error message; of many, the first."""
    listed = ", ".join(name if len(name) <= 80 else shown(name) for name in names[:20])
    return f"{listed} and {len(names) - 20:,} more" if len(names) > 20 else listed
