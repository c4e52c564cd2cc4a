"""The prediction stage (paper, section 5): vectors of and recommendations for many users, bit-equal to the engine's.

    state -> histories -> learned weights, the pool -> an engine with the pool in every task
             histories -------------------------------------------------------------------> best items

With a learned alpha, one pass over all users adds up their shares of its sums. Another collects the pool: the users
with the smallest priorities, which depend on ids alone, or all users without a pool. The driver sends the pool to every
task, where an engine that holds it answers for the users of the task. Nothing else is shuffled.
"""

from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, suppress
from functools import partial
from math import sqrt

import numpy as np
import pyarrow as pa
from pyspark import Broadcast
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql

from unbasket.core.model import alpha_from, factors_from
from unbasket.domain.history_table import to_columns
from unbasket.domain.ids import Id, all_in_type
from unbasket.domain.results import Product
from unbasket.domain.validation import Filters, checked_count, checked_users
from unbasket.engine.model import Model
from unbasket.engine.recommending import RecommendationQueries
from unbasket.engine.state import EngineState, GivenWeights, PoolPriorities
from unbasket.errors import InvalidRequestError
from unbasket.params import LEARNED, Params
from unbasket.spark.shard import Shard
from unbasket.spark.state import State
from unbasket.spark.updates import vector_table

_SUMS = ("users", "hits", "squares", "purchases", "buyers", "weight")  # over all items; the last three of one item

# Parameters, pool, items in the order of ids with learned weights, products, hidden items, n, filters, only_new
_Query = tuple[Params, pa.Table, list[Id], GivenWeights | None, list[Product], list[Id], int, Filters | None, bool]


def histories(spark: SparkSession, checkpoint: str) -> DataFrame:
    """Read the state, one row per user: user, baskets, suppressed.

    While a stream goes on, each shard is read as of the newest batch at that moment; a user's row is always whole.
    """

    def read(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for number in (number for batch in batches for number in batch["id"].to_pylist()):
            shard = None
            while shard is None:
                with suppress(FileNotFoundError):  # a batch has replaced a file meanwhile
                    shard = Shard(State.read(checkpoint), number)
            for rows in shard.rows():
                yield from rows.drop_columns("hash").to_batches(max_chunksize=10_000)

    state = State.read(checkpoint)
    schema = spark.createDataFrame(state.schema.empty_table()).schema
    return spark.range(0, state.shards, 1, state.shards).mapInArrow(read, schema)


def vectors(histories: DataFrame, params: Params) -> DataFrame:
    """Fold histories into vectors: user, items in the order of ids, and their weights before rounding."""

    def fold(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from vector_table(pa.Table.from_batches([batch]), params).to_batches()

    types = dict(histories.dtypes)
    schema = f"user {types['user']}, items {types['suppressed']}, weights array<double>"
    return histories.select("user", "baskets", "suppressed").mapInArrow(fold, schema)


def into_table(histories: DataFrame, params: Params, folder: str) -> None:
    """Write the vectors of all users as Parquet, in place of those that the folder has."""
    vectors(histories, params).write.mode("overwrite").parquet(folder)


def recommend(
    histories: DataFrame,
    params: Params,
    users: Iterable[Id] | DataFrame | None = None,
    n: int = 10,
    *,
    exclude: Collection[Id] | None = None,
    only_new: bool = False,
    only: Collection[Id] | None = None,
    category: str | Collection[str] | None = None,
    products: DataFrame | None = None,
    until: ExitStack | None = None,
) -> DataFrame:
    """Recommend n items to all or some users: the same items and scores as `recommend_many`.

    `histories` are as returned by the function of that name, and `users` are ids, or a frame with the column `user`.
    Filters are as in an engine. `products` is a frame with the column item and any of category, by which `category`
    selects, and hidden, a boolean: such items are not recommended. The result has the columns user and recommendations,
    an array of (item, score), best first. A user without a history has no row.

    Tasks hold vectors in memory and temporary files until the session ends or, as in the sink of a stream, whose
    session goes on, until a stack is closed.
    """
    n, params, histories = checked_count(n), params.seeded(), histories.select("user", "baskets", "suppressed")
    filters, (described, hidden) = Filters.checked(exclude, only, category), _described(products)
    if category is not None and not described:
        raise InvalidRequestError("category needs products, a frame with the columns item and category")
    (_, user), (_, item) = histories.select("user", sql.get("suppressed", sql.lit(0))).dtypes
    weights = _learned(histories, params, item) if params.alpha == LEARNED else ([], None)
    data = (params, _pool_of(histories, params), *weights, described, hidden, n, filters, only_new)
    sent = histories.sparkSession.sparkContext.broadcast(data)
    if until is not None:
        until.callback(sent.destroy, blocking=True)
    schema = f"user {user}, recommendations array<struct<item: {item}, score: double>>"
    return _of_users(histories, users).mapInArrow(partial(_best_items, sent), schema)


def _described(products: DataFrame | None) -> tuple[list[Product], list[Id]]:
    """Return the products that have a category, and the hidden items."""
    if products is None:
        return [], []
    optional = [sql.col(name) if name in products.columns else sql.lit(None) for name in ("category", "hidden")]
    rows = products.select("item", *optional).collect()
    return [Product(item, category=category) for item, category, _ in rows if category], [r.item for r in rows if r[2]]


def _of_users(histories: DataFrame, users: Iterable[Id] | DataFrame | None) -> DataFrame:
    if users is None:
        return histories
    if not isinstance(users, DataFrame):
        kind = histories.schema["user"].dataType.simpleString()
        names = all_in_type(checked_users(users), str if kind == "string" else int, "user")
        users = sql.broadcast(histories.sparkSession.createDataFrame([(name,) for name in names], f"user {kind}"))
    return histories.join(users.select("user"), "user", "leftsemi")


def _learned(histories: DataFrame, params: Params, kind: str) -> tuple[list[Id], GivenWeights]:
    """Return all items in the order of ids, and alpha and their factors, from the sums of all users."""

    def add_up(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the items of some users with their sums, and the totals without an item."""
        for batch in batches:
            state = EngineState(params.changed(pool=None))
            state.load(*to_columns(pa.Table.from_batches([batch])))
            assert state.sums is not None, "alpha is learned"
            totals, by_item = state.sums.sums(range(len(state.items.names)))
            rows = np.array([*((0, 0, 0, *sums) for sums in by_item.values()), totals], np.int64)
            items = pa.array([*state.items.names, None], batch.schema.field("suppressed").type.value_type)
            yield pa.RecordBatch.from_arrays([items, *map(pa.array, np.ascontiguousarray(rows.T))], ["item", *_SUMS])

    schema = f"item {kind}, " + ", ".join(f"{name} long" for name in _SUMS)
    sums = histories.mapInArrow(add_up, schema).groupBy("item").sum(*_SUMS)
    table = sums.toArrow().sort_by("item")  # null comes last
    rows = np.column_stack(table.columns[1:])
    users, hits, squares, purchases, buyers, weight = rows[-1].tolist() if len(rows) else (0,) * len(_SUMS)
    totals = (users, hits, squares, purchases, buyers, weight)
    factors = factors_from(totals, np.ascontiguousarray(rows[:-1, 3:]), params.repurchase or 0.0)
    return table["item"].to_pylist()[:-1], GivenWeights(alpha_from(totals), factors)


def _pool_of(histories: DataFrame, params: Params) -> pa.Table:
    """Collect the users with the smallest priorities.

    Priorities are uniform, so a limit is computed that few users beyond the pool stay below.
    """
    if params.pool is None or params.pool_seed is None:
        return histories.toArrow()
    count = histories.count()
    wanted, expected = min(params.pool, count), params.pool + 6 * sqrt(params.pool)
    while True:
        limit = min(2**64 - 1, int(2**64 * expected) // max(count, 1))
        smallest = partial(_with_small_priorities, params.pool_seed, limit)
        found = histories.mapInArrow(smallest, histories.schema).toArrow()
        if len(found) >= wanted:
            users, priorities = found["user"].to_pylist(), PoolPriorities(params.pool_seed)
            order = sorted(range(len(users)), key=lambda row: (priorities.of(users[row]), users[row]))
            return found.take(pa.array(order[:wanted], pa.int64()))
        expected *= 2


def _with_small_priorities(seed: int, limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    priorities = PoolPriorities(seed)
    for batch in batches:
        yield batch.filter(pa.array(priorities.of_all(batch["user"].to_pylist()) <= limit))


def _best_items(sent: Broadcast[_Query], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    params, pool, items, weights, products, hidden, n, filters, only_new = sent.value
    model = Model(params)
    model.state.given = weights
    model.state.items.add_all(items)  # first, so the code of an item is its position
    model.state.load(*to_columns(pool))
    model.catalog.put_all(model.canonical_products(products))
    model.availability.change(*model.canonical_availability(hidden, []))
    queries = RecommendationQueries(model, None)
    for batch in batches:
        users = batch["user"].to_pylist()
        others = batch.filter(pa.array([user not in model.state.users for user in users], pa.bool_()))
        model.state.load(*to_columns(pa.Table.from_batches([others])))  # never into the pool, which is full
        found = queries.recommend_many(users, n, filters, only_new, "raise", None)
        rows = [{"user": user, "recommendations": [pair._asdict() for pair in best]} for user, best in found.items()]
        pair = pa.struct([("item", batch.schema.field("suppressed").type.value_type), ("score", pa.float64())])
        schema = pa.schema([batch.schema.field("user"), ("recommendations", pa.list_(pair))])
        yield pa.RecordBatch.from_pylist(rows, schema)
