"""Text files line by line, to find and show the lines that Polars can't read."""

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
    """Open a file, compressed or not, or its bytes; U+FFFD replaces bytes that are not UTF-8."""
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
    """Yield the lines with their numbers, from 1."""
    with open_text(content) as file:
        yield from enumerate(file, start=1)


class Record(NamedTuple):
    """A record of a CSV file, and the line on which it starts."""

    line: int
    text: str  # a long one is cut off
    closed: bool  # whether all its quotes are closed

    @property
    def whole(self) -> bool:
        """Whether the text is neither cut off nor unfinished."""
        return self.closed and len(self.text) < _LONG


def records_of(content: Path | bytes) -> Iterator[Record]:
    """Yield the records of a CSV file. A record ends with the line on which its quotes are closed."""
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
    """Split a record into fields; None if a quote is neither around a field nor doubled."""
    record = record.rstrip("\r\n")
    if '"' not in record:
        return record.split(separator)
    escaped = re.escape(separator)
    field = re.compile(rf'(?:"[^"]*(?:""[^"]*)*"|[^"{escaped}]*)(?={escaped}|\Z)')
    fields, start = [], 0
    while found := field.match(record, start):
        fields.append(found[0])
        start = found.end() + 1
        if found.end() == len(record):
            return fields
    return None


def is_json_object(text: str) -> bool:
    """Return whether a line of NDJSON is a JSON object."""
    try:
        decode_json(text, dict)
    except msgspec.DecodeError:
        return False
    return True


def shown(value: object, longest: int = 80) -> str:
    """Return a value for an error message, cut off if it is long."""
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]!r}..."
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}..."


def shown_list(names: Sequence[str]) -> str:
    """Return names for an error message: all, or the first 20."""
    listed = ", ".join(name if len(name) <= 80 else shown(name) for name in names[:20])
    return f"{listed} and {len(names) - 20:,} more" if len(names) > 20 else listed
