"""A file of recommendations for many users, written a chunk at a time."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl
from polars.io.plugins import register_io_source

from unbasket.domain.frames import checked_columns
from unbasket.domain.id_text import format_id
from unbasket.domain.ids import Id
from unbasket.domain.results import ReadingProgress
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.files import replacing

_CHUNK = 4096  # users; only their recommendations are in memory

SINKS: dict[str, Callable[[pl.LazyFrame, Path], object]] = {
    ".parquet": pl.LazyFrame.sink_parquet,
    ".csv": pl.LazyFrame.sink_csv,
    ".ndjson": pl.LazyFrame.sink_ndjson,
}


class _IdColumn(NamedTuple):
    """A column of ids. If ids are numbers and texts, all are written as text: 17 as 17, "17" in quotes."""

    dtype: pl.DataType
    mixed: bool

    @classmethod
    def of(cls, ids: list[Id]) -> Self:
        types = set(map(type, ids))
        return cls(pl.String() if str in types else pl.Int64(), len(types) > 1)

    def value(self, name: Id) -> Id:
        return format_id(name) if self.mixed else name


def write_recommendations(
    rec: Recommender,
    users: list[Id],
    n: int,
    output: Path,
    columns: list[str],
    progress: ReadingProgress,
    **filters: Any,
) -> int:
    """Write a row per user and item: user, item, score, rank and columns of the catalog. Return the number of rows.

    The file's ending decides the format. The file is written completely or not at all.
    """
    sink = SINKS.get(output.suffix.lower())
    if sink is None:
        raise InvalidRequestError(f"{output} must end in {', '.join(SINKS)}, which says how it is written")
    user, item = _IdColumn.of(users), _IdColumn.of(rec.items())
    own = {"user": user.dtype, "item": item.dtype, "score": pl.Float64(), "rank": pl.Int64()}
    schema = pl.Schema({**own, **_catalog_schema(rec, columns)})
    rows = 0

    def chunks(*_: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for start in range(0, len(users), _CHUNK):
            answers = rec.recommend_many(users[start : start + _CHUNK], n, **filters)
            chunk = [
                [user.value(name), item.value(best), score, rank, *map(rec.catalog[best].value, columns)]
                for name, answer in answers.items()
                for rank, (best, score) in enumerate(answer, 1)
            ]
            rows += len(chunk)
            yield pl.DataFrame(chunk, schema, orient="row", strict=False)
            progress(min(start + _CHUNK, len(users)), len(users))

    try:
        with replacing(output) as partial:
            sink(register_io_source(chunks, schema=schema), partial)
    except OSError as error:
        raise UnbasketError(f"cannot write {output}: {error.strerror}") from error
    return rows


def _catalog_schema(rec: Recommender, columns: list[str]) -> dict[str, pl.DataType]:
    """Return the types of the catalog's columns, which must be known before the first row."""
    dtypes = {
        column: pl.Series([product.value(column) for product in rec.catalog], strict=False).dtype
        for column in checked_columns(columns)
    }
    return {column: pl.String() if dtype == pl.Null else dtype for column, dtype in dtypes.items()}
