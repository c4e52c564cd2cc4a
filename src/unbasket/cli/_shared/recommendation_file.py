"""A file of recommendations for many users, written a chunk at a time."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
from polars.io.plugins import register_io_source

from unbasket.domain.frames import checked_columns
from unbasket.domain.ids import Id, type_of
from unbasket.domain.results import ReadingProgress
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.files import replacing

_CHUNK = 4096  # users; only their recommendations are in memory

# The beginning of a text that a spreadsheet runs, also in full width, or skips to find one
_FORMULA = r"\A(\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n])"

SINKS: dict[str, Callable[[pl.LazyFrame, Path], object]] = {
    ".parquet": pl.LazyFrame.sink_parquet,
    ".csv": pl.LazyFrame.sink_csv,
    ".ndjson": pl.LazyFrame.sink_ndjson,
}


def write_recommendations(
    rec: Recommender,
    users: list[Id],
    n: int,
    output: Path,
    columns: list[str],
    progress: ReadingProgress,
    *,
    spreadsheet: bool = False,
    **filters: Any,
) -> int:
    """Write a row per user and item: user, item, score, rank and columns of the catalog. Return the number of rows.

    The file's ending decides the format. The file is written completely or not at all. With `spreadsheet`, no text in
    it is a formula.
    """
    sink = SINKS.get(output.suffix.lower())
    if sink is None:
        raise InvalidRequestError(f"{output} must end in {', '.join(SINKS)}, which says how it is written")
    if spreadsheet and output.suffix.lower() != ".csv":
        raise InvalidRequestError(f"--spreadsheet is for CSV files; {output} needs no escapes. Leave it out")
    own = {"user": _dtype(users), "item": _dtype(rec.items()), "score": pl.Float64(), "rank": pl.Int64()}
    schema = pl.Schema({**own, **_catalog_schema(rec, columns)})
    rows = 0

    def chunks(*_: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for start in range(0, len(users), _CHUNK):
            answers = rec.recommend_many(users[start : start + _CHUNK], n, **filters)
            chunk = [
                [name, best, score, rank, *map(rec.catalog[best].value, columns)]
                for name, answer in answers.items()
                for rank, (best, score) in enumerate(answer, 1)
            ]
            rows += len(chunk)
            yield pl.DataFrame(chunk, schema, orient="row", strict=False)
            progress(min(start + _CHUNK, len(users)), len(users))

    try:
        with replacing(output) as partial:
            table = register_io_source(chunks, schema=schema)
            sink(_without_formulas(table) if spreadsheet else table, partial)
    except OSError as error:
        raise UnbasketError(f"cannot write {output}: {error.strerror}") from error
    return rows


def _dtype(ids: list[Id]) -> pl.DataType:
    return pl.String() if type_of(ids[:1]) is str else pl.Int64()


def _without_formulas(table: pl.LazyFrame) -> pl.LazyFrame:
    """Put an apostrophe before each text that a spreadsheet would run as a formula, names of columns included."""
    cells = table.with_columns(pl.col(pl.String).str.replace(_FORMULA, "'${1}"))
    return cells.rename(lambda name: re.sub(_FORMULA, r"'\1", name))


def _catalog_schema(rec: Recommender, columns: list[str]) -> dict[str, pl.DataType]:
    """Return the types of the catalog's columns, which must be known before the first row."""
    dtypes = {
        column: pl.Series([product.value(column) for product in rec.catalog], strict=False).dtype
        for column in checked_columns(columns)
    }
    return {column: pl.String() if dtype == pl.Null else dtype for column, dtype in dtypes.items()}
