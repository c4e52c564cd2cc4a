"""Rows of a file, streamed, with the place of each row for error messages."""

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

import polars as pl

from unbasket.datasets.errors import DatasetError

# Called with the work done and the work expected, here in rows: an estimate, or None where there is none.
Progress = Callable[[int, int | None], None]

ROW = "__row"  # the row's number in the file, from 0
_KINDS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is in memory, such as standard input, and what messages call it."""

    name: str
    kind: Literal["csv", "ndjson"]
    content: bytes

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Source:
    """A file and its rows as the file has them, plus the column ROW. The values of a CSV file are text.

    `content` is where the rows are read from: the file, or the bytes of a `Text`, whose name is then the path.
    """

    path: Path
    kind: str
    rows: pl.LazyFrame
    content: Path | bytes
    separator: str = ","

    def place(self, row: int) -> str:
        """Where a person finds the row: the line of a text file, the row of a Parquet file."""
        if self.kind == "csv":
            lines = (line for line, _ in _csv_records(self.content, self.separator))
            next(lines)  # the header
        elif self.kind == "ndjson":
            lines = (line for line, text in _lines(self.content) if text.strip())
        else:
            return f"row {row + 1}"
        return f"line {next(line for number, line in enumerate(lines) if number == row)}"

    def first_value(self, column: str) -> object:
        """The first value of a column, None if it has none. Reads no further, and reports no progress."""
        rows = _scan(self.content, self.kind, self.separator).select(column).drop_nulls().head(1)
        values = self.collect(rows)
        return values.item() if values.height else None

    def collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """Run a query over the rows without holding the file in memory."""
        try:
            return rows.collect(engine="streaming")
        except pl.exceptions.PolarsError as error:
            raise DatasetError(f"{self.path}: {self._bad_line() or error}") from error

    def _bad_line(self) -> str | None:
        """The first line that cannot be read at all. Polars does not say which one it is."""
        if self.kind == "parquet":
            return None
        for line, text in _lines(self.content):
            if "\ufffd" in text:
                return f"line {line} is not UTF-8: {text.strip()!r}"
            if self.kind == "ndjson" and text.strip() and not _is_json_object(text):
                return f"line {line} is not a JSON object: {text.strip()!r}"
        return self._long_record() if self.kind == "csv" else None

    def _long_record(self) -> str | None:
        records = _csv_records(self.content, self.separator)
        _, header = next(records)
        for line, record in records:
            if len(record) > len(header):
                return f"line {line} has {len(record)} fields, the header has {len(header)}: {record}"
        return None


def open_source(
    path: str | Path | Text,
    needed: Sequence[str],
    *,
    separator: str = ",",
    narrow: bool = False,
    progress: Progress | None = None,
) -> Source:
    """Open a file and check that it has the needed columns.

    A CSV file is parsed whole, so that a line with too many fields (a comma in a name without quotes shifts
    the columns) is noticed. `narrow` parses only the needed columns, which is two to three times faster: for
    large files that a machine wrote.
    """
    name, kind, content = _located(path)
    rows = _scan(content, kind, separator)
    found = columns_of(path, separator=separator)
    missing = [column for column in needed if column not in found]
    if missing:
        raise DatasetError(f"{name}: no column {', '.join(missing)}. Columns found: {', '.join(found)}")
    if kind != "csv" or narrow:
        rows = rows.select(list(dict.fromkeys(needed)))
    if progress is not None or (kind == "csv" and not narrow):
        # Polars prunes columns that are not used, but not through a Python function
        rows = rows.map_batches(_observer(progress, expected_rows(path)), streamable=True)
    rows = rows.with_row_index(ROW)
    if kind == "csv" and not narrow:
        rows = rows.filter(~pl.all_horizontal(pl.exclude(ROW).is_null()))  # blank lines
    return Source(name, kind, rows, content, separator)


def columns_of(path: str | Path | Text, *, separator: str = ",") -> list[str]:
    """The column names of a file."""
    name, kind, content = _located(path)
    try:
        return _scan(content, kind, separator).collect_schema().names()
    except pl.exceptions.PolarsError as error:
        source = Source(name, kind, pl.LazyFrame(), content, separator)
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        reason = (source._bad_line() or error) if size else "the file is empty"
        raise DatasetError(f"{name}: {reason}") from error


def expected_rows(path: str | Path | Text) -> int | None:
    """About how many rows a file has; None if that takes reading it."""
    _, kind, content = _located(path)
    if isinstance(content, bytes):
        return content.count(b"\n")
    if kind == "parquet":
        return int(pl.scan_parquet(content).select(pl.len()).collect().item())
    if content.suffix == ".gz":
        return None
    with content.open("rb") as file:
        start = file.read(1 << 20)
    return content.stat().st_size * start.count(b"\n") // max(1, len(start))


def files_at(path: str | Path | Text) -> list[Path | Text]:
    """The files of a folder that have a known kind, in the order of their names; of a file, itself."""
    if isinstance(path, Text):
        return [path]
    path = Path(path)
    if not path.is_dir():
        return [path]
    files = sorted(file for file in path.iterdir() if file.is_file() and _kind_by_name(file) is not None)
    if not files:
        raise DatasetError(f"{path}: no file in it has one of the endings {', '.join(_KINDS)}")
    return list(files)


def _located(path: str | Path | Text) -> tuple[Path, str, Path | bytes]:
    """What to call it, its kind, and where to read it."""
    if isinstance(path, Text):
        return Path(path.name), path.kind, path.content
    path = Path(path)
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    if not os.access(path, os.R_OK):
        raise DatasetError(f"{path}: no permission to read it")
    kind = _kind_by_name(path)
    if kind is None:
        raise DatasetError(f"{path}: unknown kind of file. Known endings: {', '.join(_KINDS)}")
    return path, kind, path


def _kind_by_name(path: Path) -> str | None:
    return next((kind for ending, kind in _KINDS.items() if path.name.lower().endswith(ending)), None)


def _scan(content: Path | bytes, kind: str, separator: str) -> pl.LazyFrame:
    if kind == "csv":
        return pl.scan_csv(content, separator=separator, infer_schema=False)
    if kind == "ndjson":
        # all lines, or a text id after a hundred numbers would not fit the column
        return pl.scan_ndjson(content, infer_schema_length=None)
    return pl.scan_parquet(content)


def _observer(progress: Progress | None, expected: int | None) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """A step of the query that changes nothing and reports the rows that pass."""
    seen = 0

    def observe(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal seen
        seen += batch.height
        if progress is not None:
            progress(seen, None if expected is None else max(seen, expected))
        return batch

    return observe


def _open_text(content: Path | bytes) -> IO[str]:
    if isinstance(content, bytes):
        return io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", errors="replace", newline="")
    opener = gzip.open if content.suffix == ".gz" else open
    return opener(content, "rt", encoding="utf-8-sig", errors="replace", newline="")


def _lines(content: Path | bytes) -> Iterator[tuple[int, str]]:
    with _open_text(content) as file:
        yield from enumerate(file, start=1)


def _csv_records(content: Path | bytes, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the line each starts on: a quoted field may contain line breaks."""
    with _open_text(content) as file:
        reader = csv.reader(file, delimiter=separator)
        line = 1
        for record in reader:
            yield line, record
            line = reader.line_num + 1


def _is_json_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        return False
