"""Batch import and export of the state: the initial load, histories as a frame, and vectors folded from them."""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from unbasket.domain.frames import read_baskets
from unbasket.engine.histories import HistoryState
from unbasket.errors import InvalidFrameError, SparkError
from unbasket.params import Params
from unbasket.spark.batch import Summary, on_shards, with_hashes
from unbasket.spark.history_rows import Kinds, history_schema, load_rows, rows_of, vector_table
from unbasket.spark.manifest import NO_BATCH, State
from unbasket.spark.shard import Shard
from unbasket.spark.sources import item_type


def load(history: DataFrame, params: Params, *, checkpoint: str, shards: int = 8, stripes: int = 4) -> None:
    """Create a checkpoint with the histories in a frame; one that has users or batches already is left as it is.

    The frame has one row per basket, with the columns user, basket, items, time and, under varying groups, optionally
    group; or one row per user, as returned by `histories`.
    """
    kinds = _kinds_of(history.schema)
    state = State.create(checkpoint, params, kinds, shards, stripes)
    if len(state) or state.batch > NO_BATCH:
        return
    if state.manifest.kinds != kinds:
        raise SparkError(f"the history has ids of the types {kinds}, and {checkpoint} {state.manifest.kinds}")
    state.take_over()
    rows = history.withColumn("hash", sql.xxhash64("user"))
    rows = rows.withColumn("shard", sql.pmod("hash", sql.lit(state.manifest.shards)))
    if "items" in rows.columns:
        rows = rows.withColumn("items", sql.array_sort("items"))  # as in all rows
    done = on_shards(state, rows, _load_shard, tasks=state.manifest.shards, order=("hash",))
    files = [file for one in done for file in one["files"]]
    state.commit(state.manifest.after(NO_BATCH, files, users=sum(one["users"] for one in done)))


def _kinds_of(schema: StructType) -> Kinds:
    """Return the types of the ids in a history."""
    if "baskets" in schema.names:
        basket: Any = schema["baskets"].dataType.elementType  # type: ignore[attr-defined]
    elif "time" in schema.names:
        basket = schema
    else:
        raise InvalidFrameError(
            f"a history needs the column 'time', since rows have no order here; it has {schema.names}"
        )
    types = {"user": schema["user"].dataType, "basket": basket["basket"].dataType, "item": item_type(basket)}
    return {kind: held.simpleString() for kind, held in types.items()}


def _load_shard(shard: Shard, rows: pa.Table) -> Summary:
    """Write the bases of a shard, from rows per basket or per user."""
    state = HistoryState(shard.manifest.params)
    if "baskets" in rows.column_names:
        load_rows(state, rows)
    else:
        group = "group" if "group" in rows.column_names else None
        size = state.params.group_size
        state.load(
            read_baskets(rows, user="user", basket="basket", item="items", time="time", group=group, group_size=size)
        )
    loaded = with_hashes(rows_of(state, state.users.sorted(), shard.manifest.kinds), rows)
    for stripe in range(shard.manifest.stripes):
        shard.write_base(stripe, loaded)
    return {"files": shard.written, "users": len(loaded)}


def histories(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Read the state, one row per user: user, baskets, suppressed.

    While a stream goes on, each shard is read as of the newest batch at that moment; a user's row is always whole.
    """
    state = State(checkpoint)
    shards, empty = state.manifest.shards, history_schema(state.manifest.kinds).empty_table()
    schema = spark.createDataFrame(empty).schema
    return spark.range(0, shards, 1, shards).mapInArrow(partial(_read, checkpoint), schema)


def _read(checkpoint: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        for rows in _opened(checkpoint, number).rows():
            yield from rows.drop_columns("hash").to_batches(max_chunksize=10_000)


def _opened(checkpoint: str, number: int) -> Shard:
    while True:
        state = State(checkpoint)
        try:
            return Shard(state, number)
        except FileNotFoundError:  # a batch has replaced it meanwhile
            continue


def vectors(histories: DataFrame, params: Params) -> DataFrame:
    """Fold histories into vectors: user, items in the order of ids, and their weights before rounding."""
    user, item = (histories.schema[name].dataType for name in ("user", "suppressed"))
    schema = f"user {user.simpleString()}, items {item.simpleString()}, weights array<double>"
    return histories.select("user", "baskets", "suppressed").mapInArrow(partial(_fold, params), schema)


def _fold(params: Params, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield from vector_table(pa.Table.from_batches([batch]), params).to_batches()


def into_table(histories: DataFrame, params: Params, folder: str) -> None:
    """Write the vectors of all users as Parquet, in place of those that the folder has."""
    vectors(histories, params).write.mode("overwrite").parquet(folder)
