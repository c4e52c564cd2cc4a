"""Batch import and export of the state: the initial load, histories as a frame, and vectors folded from them."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from unbasket.domain.frames import read_baskets
from unbasket.domain.history_table import to_columns, to_table
from unbasket.engine.histories import HistoryState
from unbasket.errors import SparkError
from unbasket.params import Params
from unbasket.spark.batch import Summary, on_shards
from unbasket.spark.shard import Shard, with_hashes
from unbasket.spark.sources import id_types, route
from unbasket.spark.state import NO_BATCH, State
from unbasket.spark.updates import vector_table


def load(history: DataFrame, params: Params, *, checkpoint: str, shards: int = 8, stripes: int = 4) -> None:
    """Create a checkpoint with the histories in a frame; one that has users or batches already is left as it is.

    The frame has one row per basket, with the columns user, basket, items, time and, under varying groups, optionally
    group; or one row per user, as returned by `histories`.
    """
    has_users = "baskets" in history.columns
    kinds = id_types(history.select("user", sql.inline("baskets")) if has_users else history, "time")
    state = State.create(checkpoint, params, kinds, shards, stripes)
    if state.users or state.batch > NO_BATCH:
        return
    if state.kinds != kinds:
        raise SparkError(f"the history has ids of the types {kinds}, and {checkpoint} {state.kinds}")
    state = State.take_over(checkpoint)
    rows = history.withColumns(route(sql.col("user"), state.shards))
    if not has_users:
        rows = rows.withColumn("items", sql.array_sort("items"))  # as in all rows
    done = on_shards(state, rows, _load_shard, tasks=state.shards, order=("hash",))
    state.after(NO_BATCH, done["files"], users=done["users"]).commit()


def _load_shard(shard: Shard, rows: pa.Table) -> Summary:
    """Write the bases of a shard, from rows per basket or per user."""
    state = HistoryState(shard.state.params)
    if "baskets" in rows.column_names:
        state.load(*to_columns(rows))
    else:
        group = "group" if "group" in rows.column_names else None
        size = state.params.group_size
        state.load(
            read_baskets(rows, user="user", basket="basket", item="items", time="time", group=group, group_size=size)
        )
    loaded = to_table(state.columns(state.users.sorted()), state.suppressed, shard.state.types)
    loaded = with_hashes(loaded, rows)
    for stripe in range(shard.state.stripes):
        shard.write_base(stripe, loaded)
    return {"files": shard.written, "users": len(loaded)}


def histories(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Read the state, one row per user: user, baskets, suppressed.

    While a stream goes on, each shard is read as of the newest batch at that moment; a user's row is always whole.
    """
    state = State.read(checkpoint)
    schema = spark.createDataFrame(state.schema.empty_table()).schema
    return spark.range(0, state.shards, 1, state.shards).mapInArrow(partial(_read, checkpoint), schema)


def _read(checkpoint: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        shard = None
        while shard is None:
            with suppress(FileNotFoundError):  # a batch has replaced a file meanwhile
                shard = Shard(State.read(checkpoint), number)
        for rows in shard.rows():
            yield from rows.drop_columns("hash").to_batches(max_chunksize=10_000)


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
