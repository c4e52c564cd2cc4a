"""Rows of a file, streamed, with the line of each row for error messages."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

import msgspec
import polars as pl

from unbasket.datasets.lines import fields_of, is_json_object, lines_of, open_text, records_of, shown, shown_list
from unbasket.domain.decoding import decode_json
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError, Remedy

ROW = "__row"  # the row's number in the file, from 0
_MAX_COLUMNS = 4096  # Polars needs kilobytes for each, and far more if every line of NDJSON has fields of its own
_MAX_HEADER = 1 << 20  # characters
SEPARATORS = (";", "\t", "|", ",")
_ARGUMENTS = ("user", "basket", "item", "name")  # arguments of the readers whose default is their own name
_KINDS = {".csv": "csv", ".csv.gz": "csv", ".parquet": "parquet", ".ndjson": "ndjson", ".jsonl": "ndjson"}


@dataclass(frozen=True, slots=True)
class Text:
    """A text in memory, such as standard input, and its name in messages."""

    name: str
    kind: Literal["csv", "ndjson"]
    content: bytes

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Source:
    """A file and its unchanged rows, plus the column ROW. The values of a CSV file are text.

    `content` is the file, or the bytes of a `Text`, whose name is then the path.
    """

    path: Path
    kind: str
    rows: pl.LazyFrame
    content: Path | bytes
    separator: str = ","

    def place(self, row: int) -> str:
        """Return where to find a row: the line of a text file, the row of a Parquet file."""
        if self.kind == "csv":
            lines = (record.line for record in records_of(self.content))
            next(lines, None)  # the header
        elif self.kind == "ndjson":
            lines = (line for line, text in lines_of(self.content) if text.strip())
        else:
            return f"row {row + 1}"
        line = next((line for number, line in enumerate(lines) if number == row), None)
        return f"row {row + 1}" if line is None else f"line {line}"

    def first_value(self, column: str) -> object:
        """Return the first value of a column, or None. Reads no further, and reports no progress."""
        rows = _scan(self.content, self.kind, self.separator).select(column).drop_nulls().head(1)
        values = self.collect(rows)
        return values.item() if values.height else None

    def collect(self, rows: pl.LazyFrame) -> pl.DataFrame:
        """Run a query over the rows without holding the file in memory."""
        try:
            return rows.collect(engine="streaming")
        except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
            raise DatasetError(f"{self.path}: {self._bad_line() or _gist(error)}") from error

    def _bad_line(self) -> str | None:
        """Describe the first unreadable line, which errors of Polars do not name."""
        if self.kind == "csv":
            return self._bad_record()
        if self.kind == "ndjson":
            for line, text in lines_of(self.content):
                if "\ufffd" in text:
                    return f"line {line} is not UTF-8: {shown(text.strip())}"
                if text.strip() and not is_json_object(text):
                    return f"line {line} is not a JSON object: {shown(text.strip())}"
        return None

    def _bad_record(self) -> str | None:
        columns = 0
        for record in records_of(self.content):
            where, text = f"line {record.line}", record.text.strip()
            if "\ufffd" in text:
                return f"{where} is not UTF-8: {shown(text)}"
            if not record.closed:
                return f"{where} has a quote that is never closed: {shown(text)}"
            fields = fields_of(record.text, self.separator) if record.whole else []
            if fields is None:
                return (
                    f"{where} has a quote inside a field. Write the field in quotes, and the quote twice: {shown(text)}"
                )
            columns = columns or len(fields)
            if len(fields) > columns:
                return f"{where} has {len(fields)} fields, the header has {columns}: {shown(text)}"
        return None


def open_source(
    path: str | Path | Text,
    needed: Sequence[str],
    *,
    separator: str = ",",
    narrow: bool = False,
    keep_blank: bool = False,
    progress: ReadingProgress | None = None,
) -> Source:
    """Open a file and check that it has the needed columns.

    A CSV file is parsed whole, to notice lines with too many fields: a comma in an unquoted name shifts the columns.
    `narrow` parses only the needed columns, which is two to three times faster: for large machine-written files.
    `keep_blank` keeps blank lines of a CSV file, as rows without a value.
    """
    name, kind, content = _located(path)
    found = columns_of(path, separator=separator)
    rows = _scan(content, kind, separator)
    missing = [column for column in needed if column not in found]
    if missing:
        raise _no_column(name, missing, found)
    if ROW in found:
        raise DatasetError(f"{name}: a column is called {ROW}, a name that is taken. Rename the column")
    if kind != "csv" or narrow:
        rows = rows.select(list(dict.fromkeys(needed)))
    if progress is not None or (kind == "csv" and not narrow):
        # Polars prunes unused columns, but not through a Python function
        rows = rows.map_batches(_observer(progress, expected_rows(path)), streamable=True)
    rows = rows.with_row_index(ROW)
    if kind == "csv" and not narrow and not keep_blank:
        rows = rows.filter(~pl.all_horizontal(pl.exclude(ROW).is_null()))  # blank lines
    return Source(name, kind, rows, content, separator)


def columns_of(path: str | Path | Text, *, separator: str = ",") -> list[str]:
    """Return the column names of a file."""
    name, kind, content = _located(path)
    if len(separator) != 1 or not separator.isascii() or separator in '\r\n"':
        raise DatasetError(f"the separator must be one character, such as ; or a tab, not {separator!r}")
    try:
        names = _column_names(name, kind, content, separator)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        source = Source(name, kind, pl.LazyFrame(), content, separator)
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        reason = (source._bad_line() or _gist(error)) if size else "the file is empty"
        raise DatasetError(f"{name}: {reason}") from error
    if len(names) > _MAX_COLUMNS:
        raise _too_many_columns(name)
    return names


def _column_names(name: Path, kind: str, content: Path | bytes, separator: str) -> list[str]:
    """Return the names, counting them before Polars sees the file: a wide one costs it much time and memory."""
    if kind == "csv":
        with open_text(content) as file:
            header = file.readline(_MAX_HEADER)
        if len(header) == _MAX_HEADER or header.count(separator) >= _MAX_COLUMNS:
            raise _too_many_columns(name)
    elif kind == "ndjson":
        names: dict[str, None] = {}
        for line, text in lines_of(content):
            if text.strip():
                names.update(dict.fromkeys(_keys(name, line, text)))
                if len(names) > _MAX_COLUMNS:
                    raise _too_many_columns(name)
    return _scan(content, kind, separator).collect_schema().names()


def _keys(name: Path, line: int, text: str) -> dict[str, msgspec.Raw]:
    try:
        return decode_json(text, dict[str, msgspec.Raw])
    except msgspec.DecodeError as error:
        raise DatasetError(f"{name}: line {line} is not a JSON object: {shown(text.strip())}") from error


def _too_many_columns(name: Path) -> DatasetError:
    return DatasetError(f"{name}: it has more than {_MAX_COLUMNS:,} columns. Keep those that are needed")


def _no_column(name: Path, missing: Sequence[str], found: Sequence[str]) -> DatasetError:
    """Return an error that names the missing columns and suggests a separator or the argument to set."""
    problem = f"{name}: no column {', '.join(missing)}. Columns found: {shown_list(found)}"
    if len(found) == 1:
        for separator in SEPARATORS:
            if separator in found[0]:
                return DatasetError(problem, Remedy("separator", separator, "splits them"))
    similar = get_close_matches(missing[0], found, 1)
    if missing[0] in _ARGUMENTS:
        return DatasetError(problem, Remedy(missing[0], similar[0] if similar else "COLUMN", "names the one to use"))
    return DatasetError(f"{problem}. Did you mean {similar[0]}?" if similar else problem)


def expected_rows(path: str | Path | Text) -> int | None:
    """Estimate the number of rows of a file; None if that takes reading it."""
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
    """Return the files of known kinds in a folder, sorted by name; for a file, the file itself."""
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
    """Return the name, the kind and the content (a path or bytes) of a file or text."""
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


def is_csv(path: Path | Text) -> bool:
    """Return whether a file, or a text, is CSV."""
    return _located(path)[1] == "csv"


def _kind_by_name(path: Path) -> str | None:
    return next((kind for ending, kind in _KINDS.items() if path.name.lower().endswith(ending)), None)


def _scan(content: Path | bytes, kind: str, separator: str) -> pl.LazyFrame:
    if kind == "csv":
        return pl.scan_csv(content, separator=separator, infer_schema=False)
    if kind == "ndjson":
        # all lines, or a text id after a hundred numbers would not fit the column
        return pl.scan_ndjson(content, infer_schema_length=None)
    return pl.scan_parquet(content)


def _observer(progress: ReadingProgress | None, expected: int | None) -> Callable[[pl.DataFrame], pl.DataFrame]:
    """Return a query step that reports the rows that pass and changes nothing."""
    seen = 0

    def observe(batch: pl.DataFrame) -> pl.DataFrame:
        nonlocal seen
        seen += batch.height
        if progress is not None:
            progress(seen, None if expected is None else max(seen, expected))
        return batch

    return observe


def _gist(error: BaseException) -> str:
    """Return the useful part of an error of Polars."""
    if isinstance(error, pl.exceptions.PanicException):
        return "it is damaged"
    return str(error).partition("\n")[0][:200]
