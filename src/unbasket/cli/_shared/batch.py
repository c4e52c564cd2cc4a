"""Recommendations for many users, written to a file a part at a time."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Self

import polars as pl
from polars.io.plugins import register_io_source

from unbasket.domain.frames import checked_columns
from unbasket.domain.id_text import format_id
from unbasket.domain.ids import Id
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.files import replacing

_AT_A_TIME = 4096  # users; only their recommendations are in memory

Report = Callable[[int, int | None], object]

SINKS: dict[str, Callable[[pl.LazyFrame, Path], object]] = {
    ".parquet": pl.LazyFrame.sink_parquet,
    ".csv": pl.LazyFrame.sink_csv,
    ".ndjson": pl.LazyFrame.sink_ndjson,
}


class Batch(NamedTuple):
    """Who is recommended how many items, with which filters, and what of the catalog is written beside them."""

    users: list[Id]
    n: int
    filters: Mapping[str, Any]
    columns: list[str]


class _Column(NamedTuple):
    """A column of ids. One that has numbers and texts holds texts: 17 is the number, and "17", in quotes, the text."""

    kind: pl.DataType
    mixed: bool

    @classmethod
    def of(cls, ids: list[Id]) -> Self:
        kinds = set(map(type, ids))
        return cls(pl.String() if str in kinds else pl.Int64(), len(kinds) > 1)

    def written(self, name: Id) -> Id:
        return format_id(name) if self.mixed else name


def write_batch(rec: Recommender, batch: Batch, output: Path, report: Report) -> int:
    """Write a row per user and item: user, item, score, rank and columns of the catalog. Returns how many.

    The format is that of the file's ending. The file is there completely or not at all.
    """
    sink = SINKS.get(output.suffix.lower())
    if sink is None:
        raise InvalidRequestError(f"{output} must end in {', '.join(SINKS)}, which says how it is written")
    user, item = _Column.of(batch.users), _Column.of(rec.items())
    schema = pl.Schema(
        {"user": user.kind, "item": item.kind, "score": pl.Float64(), "rank": pl.Int64(), **_described(rec, batch)}
    )
    rows = 0

    def parts(*_: object) -> Iterator[pl.DataFrame]:
        nonlocal rows
        for start in range(0, len(batch.users), _AT_A_TIME):
            answers = rec.recommend_many(batch.users[start : start + _AT_A_TIME], batch.n, **batch.filters)
            part = [
                [user.written(name), item.written(best), score, rank, *map(rec.catalog[best].value, batch.columns)]
                for name, answer in answers.items()
                for rank, (best, score) in enumerate(answer, 1)
            ]
            rows += len(part)
            yield pl.DataFrame(part, schema, orient="row", strict=False)
            report(min(start + _AT_A_TIME, len(batch.users)), len(batch.users))

    try:
        with replacing(output) as partial:
            sink(register_io_source(parts, schema=schema), partial)
    except OSError as error:
        raise UnbasketError(f"cannot write {output}: {error.strerror}") from error
    return rows


def _described(rec: Recommender, batch: Batch) -> dict[str, pl.DataType]:
    """The types of the catalog's columns, which must be known before the first row."""
    kinds = {
        column: pl.Series([product.value(column) for product in rec.catalog], strict=False).dtype
        for column in checked_columns(batch.columns)
    }
    return {column: pl.String() if kind == pl.Null else kind for column, kind in kinds.items()}
