"""Rows of a file, streamed, with the place of each row for error messages."""

import csv
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import polars as pl

from unbasket.datasets.errors import DatasetError

# Called with the work done and the work expected, here in rows: an estimate, or None where there is none.
Progress = Callable[[int, int | None], None]

ROW = "__row"  # the row's number in the file, from 0
_KINDS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson"}


@dataclass(frozen=True, slots=True)
class Source:
    """A file and its rows as the file has them, plus the column ROW. The values of a CSV file are text."""

    path: Path
    kind: str
    rows: pl.LazyFrame
    separator: str = ","

    def place(self, row: int) -> str:
        """Where a person finds the row: the line of a text file, the row of a Parquet file."""
        if self.kind == "csv":
            lines = (line for line, _ in _csv_records(self.path, self.separator))
            next(lines)  # the header
        elif self.kind == "ndjson":
            lines = (line for line, text in _lines(self.path) if text.strip())
        else:
            return f"row {row + 1}"
        return f"line {next(line for number, line in enumerate(lines) if number == row)}"

    def first_value(self, column: str) -> object:
        """The first value of a column, None if it has none. Reads no further, and reports no progress."""
        rows = _scan(self.path, self.kind, self.separator).select(column).drop_nulls().head(1)
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
        for line, text in _lines(self.path):
            if "\ufffd" in text:
                return f"line {line} is not UTF-8: {text.strip()!r}"
            if self.kind == "ndjson" and text.strip() and not _is_json_object(text):
                return f"line {line} is not a JSON object: {text.strip()!r}"
        return self._long_record() if self.kind == "csv" else None

    def _long_record(self) -> str | None:
        records = _csv_records(self.path, self.separator)
        _, header = next(records)
        for line, record in records:
            if len(record) > len(header):
                return f"line {line} has {len(record)} fields, the header has {len(header)}: {record}"
        return None


def open_source(
    path: str | Path,
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
    path = Path(path)
    kind = _kind(path)
    rows = _scan(path, kind, separator)
    found = columns_of(path, separator=separator)
    missing = [column for column in needed if column not in found]
    if missing:
        raise DatasetError(f"{path}: no column {', '.join(missing)}. Columns found: {', '.join(found)}")
    if kind != "csv" or narrow:
        rows = rows.select(list(dict.fromkeys(needed)))
    if progress is not None or (kind == "csv" and not narrow):
        # Polars prunes columns that are not used, but not through a Python function
        rows = rows.map_batches(_observer(progress, _expected_rows(path, kind)), streamable=True)
    rows = rows.with_row_index(ROW)
    if kind == "csv" and not narrow:
        rows = rows.filter(~pl.all_horizontal(pl.exclude(ROW).is_null()))  # blank lines
    return Source(path, kind, rows, separator)


def columns_of(path: Path, *, separator: str = ",") -> list[str]:
    """The column names of a file."""
    kind = _kind(path)
    try:
        return _scan(path, kind, separator).collect_schema().names()
    except pl.exceptions.PolarsError as error:
        source = Source(path, kind, pl.LazyFrame(), separator)
        reason = (source._bad_line() or error) if path.stat().st_size else "the file is empty"
        raise DatasetError(f"{path}: {reason}") from error


def _kind(path: Path) -> str:
    if not path.is_file():
        raise DatasetError(f"{path}: no such file")
    for ending, kind in _KINDS.items():
        if path.name.lower().endswith(ending):
            return kind
    raise DatasetError(f"{path}: unknown kind of file. Known endings: {', '.join(_KINDS)}")


def _scan(path: Path, kind: str, separator: str) -> pl.LazyFrame:
    if kind == "csv":
        return pl.scan_csv(path, separator=separator, infer_schema=False)
    if kind == "ndjson":
        # all lines, or a text id after a hundred numbers would not fit the column
        return pl.scan_ndjson(path, infer_schema_length=None)
    return pl.scan_parquet(path)


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


def _expected_rows(path: Path, kind: str) -> int | None:
    if kind == "parquet":
        return int(pl.scan_parquet(path).select(pl.len()).collect().item())
    if path.suffix == ".gz":
        return None
    with path.open("rb") as file:
        start = file.read(1 << 20)
    return path.stat().st_size * start.count(b"\n") // max(1, len(start))


def _open_text(path: Path) -> IO[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    return opener(path, "rt", encoding="utf-8-sig", errors="replace", newline="")


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with _open_text(path) as file:
        yield from enumerate(file, start=1)


def _csv_records(path: Path, separator: str) -> Iterator[tuple[int, list[str]]]:
    """Records with the line each starts on: a quoted field may contain line breaks."""
    with _open_text(path) as file:
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
