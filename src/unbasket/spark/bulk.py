"""Batch import and export of the state: the initial load, histories as a frame, and vectors folded from them."""

import secrets
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.frames import read_baskets
from unbasket.engine.histories import HistoryState
from unbasket.errors import InvalidFrameError, InvalidRequestError, SparkError
from unbasket.params import MAX_SEED, Params
from unbasket.spark.batch import hash_of, shard_of
from unbasket.spark.history_rows import Kinds, columns_of, history_sql, rows_of, vector_table
from unbasket.spark.manifest import Manifest, ShardFiles, State
from unbasket.spark.shard import Shard
from unbasket.spark.sources import item_type

_LOADED = -1  # the batch of the initial load


def open_or_create(checkpoint: str, params: Params, kinds: Kinds, shards: int, stripes: int) -> State:
    """Open the state of a checkpoint, which must have these parameters, or create it. Its types of ids stay."""
    for name, count, least in (("shards", shards, 1), ("stripes", stripes, 2)):
        if count < least:
            raise InvalidRequestError(f"{name} must be at least {least}, not {count}")
    seeded = params.seeded(secrets.randbelow(MAX_SEED + 1))
    new = Manifest(0, 0, _LOADED, seeded, kinds, stripes, 0, 0, [ShardFiles({}, {})] * shards)
    state = State.create(checkpoint, new)
    if params.seeded(state.params.pool_seed or 0) != state.params:
        raise SparkError(
            f"{checkpoint} was made with {state.params}, not with {params}. Use its own, or a new checkpoint"
        )
    return state


def load(history: DataFrame, params: Params, *, checkpoint: str, shards: int = 8, stripes: int = 4) -> None:
    """Create a checkpoint with the histories in a frame; one that has users or batches already is left as it is.

    The frame has one row per basket, with the columns user, basket, items, time and, under varying groups, optionally
    group; or one row per user, as returned by `histories`.
    """
    kinds = _kinds_of(history.schema)
    state = open_or_create(checkpoint, params, kinds, shards, stripes)
    if len(state) or state.batch > _LOADED:
        return
    if state.manifest.kinds != kinds:
        raise SparkError(f"the history has ids of the types {kinds}, and {checkpoint} {state.manifest.kinds}")
    state.take_over()
    count = len(state.manifest.shards)
    rows = history.withColumn("hash", hash_of(sql.col("user")))
    sent = rows.repartitionById(count, shard_of(sql.col("hash"), count).cast("int"))
    task = partial(_load_shard, checkpoint, state.manifest.version)
    files, users = [ShardFiles({}, {})] * count, 0
    for row in sent.mapInArrow(task, "shard int, stripe int, file string, users long").collect():
        files[row.shard] = ShardFiles({**files[row.shard].bases, str(row.stripe): row.file}, {})
        users += row.users
    state.commit(state.manifest.next(users=users, shards=files))


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


def _load_shard(checkpoint: str, version: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the bases of one shard, whose users are in this partition."""
    context, received = TaskContext.get(), list(batches)
    if not received:
        return
    assert context is not None
    state, table = State(checkpoint, version), pa.Table.from_batches(received)
    shard, histories = Shard(state.folder, state.manifest, context.partitionId()), HistoryState(state.params)
    if "baskets" in table.column_names:
        columns = columns_of(table)
    else:
        group = "group" if "group" in table.column_names else None
        names = {"user": "user", "basket": "basket", "item": "items", "time": "time"}
        columns = read_baskets(table, **names, group=group, group_size=state.params.group_size)
    histories.load(_in_id_order(columns))
    if "suppressed" in table.column_names:
        pairs = zip(table["user"].to_pylist(), table["suppressed"].to_pylist(), strict=True)
        histories.suppressed = {user: set(items) for user, items in pairs if items}
    rows = rows_of(histories, histories.users.sorted(), state.manifest.kinds)
    hashes = table["hash"].take(pc.index_in(rows["user"], table["user"].combine_chunks()))
    schema = pa.schema([("shard", pa.int32()), ("stripe", pa.int32()), ("file", pa.string()), ("users", pa.int64())])
    written = shard.write_all(rows.add_column(0, pa.field("hash", pa.int64()), hashes))
    found = [(context.partitionId(), *stripe) for stripe in written]
    yield pa.RecordBatch.from_pylist([dict(zip(schema.names, one, strict=True)) for one in found], schema)


def _in_id_order(columns: BasketColumns) -> BasketColumns:
    """Return baskets with their items in the order of ids."""
    ranks = np.empty(len(columns.items), np.int64)
    ranks[sorted(range(len(ranks)), key=columns.items.__getitem__)] = np.arange(len(ranks))
    baskets = np.repeat(np.arange(len(columns.sizes)), columns.sizes)
    return columns._replace(purchases=columns.purchases[np.lexsort((ranks[columns.purchases], baskets))])


def histories(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Read the state, one row per user: user, baskets, suppressed.

    While a stream goes on, each shard is read as of the newest batch at that moment; a user's row is always whole.
    """
    state = State(checkpoint)
    shards = len(state.manifest.shards)
    return spark.range(0, shards, 1, shards).mapInArrow(partial(_read, checkpoint), history_sql(state.manifest.kinds))


def _read(checkpoint: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for number in (number for batch in batches for number in batch["id"].to_pylist()):
        for rows in _opened(checkpoint, number).rows():
            yield from rows.drop_columns("hash").to_batches(max_chunksize=10_000)


def _opened(checkpoint: str, number: int) -> Shard:
    while True:
        state = State(checkpoint)
        try:
            return Shard(state.folder, state.manifest, number)
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
