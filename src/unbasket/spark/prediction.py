"""The prediction stage (paper, section 5): recommendations for many users, bit-equal to the engine's.

    histories -> items, learned weights -> the pool -> index in every task
    histories -----------------------------------------------------------> best items

One pass over all users lists the items and, with a learned alpha, adds up the users' shares of its sums. Another
collects the pool: the users with the smallest priorities, which depend on ids alone, or all users without a pool. The
driver sends the pool to every task, where the engine's index compares users with it. Nothing else is shuffled.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from unbasket.core.arrays import Codes
from unbasket.core.index import Index
from unbasket.core.memory import GrowableArray
from unbasket.core.model import ONE, FoldWorkspace, Vector, alpha_from, factors_from, queries
from unbasket.core.search import Query, QueryBatch, SearchWorkspace
from unbasket.domain.ids import Id, all_in_type
from unbasket.domain.validation import Filters, checked_count, checked_users
from unbasket.engine.histories import HistoryState
from unbasket.engine.state import EngineState, PoolPriorities
from unbasket.errors import InvalidRequestError
from unbasket.params import LEARNED, Params
from unbasket.spark.history_rows import flat, id_type, load_rows, offsets, sql_type

_PRIORITIES = 2**64
_SUMS = ("users", "hits", "squares", "purchases", "buyers", "weight")  # over all items; the last three of one item


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
) -> DataFrame:
    """Recommend n items to all or some users: the same items and scores as `recommend_many`.

    `histories` are as returned by the function of that name, and `users` are ids, or a frame with the column `user`.
    Filters are as in an engine. `products` is a frame with the column item and any of category, by which `category`
    selects, and hidden, a boolean: such items are not recommended. The result has the columns user and recommendations,
    an array of (item, score), best first. A user without a history has no row.
    """
    n, filters = checked_count(n), Filters.checked(exclude, only, category)
    histories = histories.select("user", "baskets", "suppressed")
    items, alpha, factors = _weights(histories, params)
    pool = _Vectors.of(_pool_of(histories, params.seeded()).sort_by("user"), items, params)
    model = _Model(params, items, alpha, factors, pool, *_choice(items, filters, products), only_new, n)
    kind = histories.schema["user"].dataType.simpleString()
    schema = f"user {kind}, recommendations array<struct<item: {sql_type(items.type)}, score: double>>"
    task = partial(_best_items, histories.sparkSession.sparkContext.broadcast(model))
    return _of_users(histories, users).mapInArrow(task, schema)


def _of_users(histories: DataFrame, users: Iterable[Id] | DataFrame | None) -> DataFrame:
    if users is None:
        return histories
    if not isinstance(users, DataFrame):
        kind = histories.schema["user"].dataType.simpleString()
        names = all_in_type(checked_users(users), id_type(kind), "user")
        users = histories.sparkSession.createDataFrame([(name,) for name in names], f"user {kind}")
    return histories.join(users.select("user"), "user", "leftsemi")


def _weights(histories: DataFrame, params: Params) -> tuple[pa.Array, float, Any]:
    """Return all items in the order of ids, alpha, and with a learned alpha the factors of the items."""
    kind = histories.schema["suppressed"].dataType.elementType.simpleString()  # type: ignore[attr-defined]
    schema = f"item {kind}, " + ", ".join(f"{name} long" for name in _SUMS)
    sums = histories.mapInArrow(partial(_shares, params), schema).groupBy("item")
    table = sums.agg(*(sql.sum(name).alias(name) for name in _SUMS)).toArrow().sort_by("item")  # null comes last
    items = flat(table["item"]).drop_null()
    if params.alpha != LEARNED:
        return items, float(params.alpha), None
    rows = np.array([flat(table[name]).to_numpy(zero_copy_only=False) for name in _SUMS], np.int64).T
    totals: Any = tuple(rows[-1].tolist()) if len(rows) else (0,) * len(_SUMS)
    by_item = np.ascontiguousarray(rows[: len(items), 3:])
    return items, alpha_from(totals), factors_from(totals, by_item, params.repurchase or 0.0)


def _shares(params: Params, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the items of some users, with their sums if weights are learned, and the totals without an item."""
    for batch in batches:
        state: Any = (EngineState if params.alpha == LEARNED else HistoryState)(params.changed(pool=None))
        load_rows(state, pa.Table.from_batches([batch]))
        codes = range(len(state.items.names))
        totals, sums = state.sums.sums(codes) if params.alpha == LEARNED else ((0,) * 6, {})
        rows = np.array([*((0, 0, 0, *sums.get(code, (0, 0, 0))) for code in codes), totals], np.int64)
        items = pa.array([*state.items.names, None], batch.schema.field("suppressed").type.value_type)
        yield pa.RecordBatch.from_arrays([items, *map(pa.array, np.ascontiguousarray(rows.T))], ["item", *_SUMS])


def _pool_of(histories: DataFrame, params: Params) -> pa.Table:
    """Collect the users with the smallest priorities.

    Priorities are uniform, so a limit is computed that few users beyond the pool stay below.
    """
    if params.pool is None or params.pool_seed is None:
        return histories.toArrow()
    count = histories.count()
    wanted, expected = min(params.pool, count), params.pool + 6 * sqrt(params.pool)
    while True:
        limit = min(_PRIORITIES - 1, int(_PRIORITIES * expected) // max(count, 1))
        found = histories.mapInArrow(
            partial(_with_small_priorities, params.pool_seed, limit), histories.schema
        ).toArrow()
        if len(found) >= wanted:
            users, priorities = found["user"].to_pylist(), PoolPriorities(params.pool_seed)
            order = sorted(range(len(users)), key=lambda row: (priorities.of(users[row]), users[row]))
            return found.take(pa.array(order[:wanted], pa.int64()))
        expected *= 2


def _with_small_priorities(seed: int, limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    priorities = PoolPriorities(seed)
    for batch in batches:
        yield batch.filter(pa.array(priorities.of_all(batch["user"].to_pylist()) <= limit))


def _choice(items: pa.Array, filters: Filters | None, products: DataFrame | None) -> tuple[Codes, Codes | None]:
    """Return the codes of banned items, hidden products among them, and of the only allowed ones (None: all)."""
    exclude, only, categories = filters or Filters([], None, None)
    hidden = [] if products is None or "hidden" not in products.columns else _items_of(products.where("hidden"))
    allowed = None if only is None else _codes(items, only)
    if categories is not None:
        if products is None or "category" not in products.columns:
            raise InvalidRequestError("category needs products, a frame with the columns item and category")
        members = _codes(items, _items_of(products.where(sql.col("category").isin(categories))))
        allowed = members if allowed is None else np.intersect1d(allowed, members)
    return _codes(items, [*exclude, *hidden]), allowed


def _items_of(products: DataFrame) -> list[Id]:
    return [row.item for row in products.select("item").collect()]


def _codes(items: pa.Array, names: Collection[Id]) -> Codes:
    """Return the codes of those names that are items: their positions."""
    named = pa.array(all_in_type(list(names), id_type(sql_type(items.type)), "item"), items.type)
    codes: Codes = pc.index_in(named, items).drop_null().to_numpy().astype(np.uint32)
    return codes


class _Vectors(NamedTuple):
    """Fixed-point vectors of users, as in the engine's index: their ends, item codes, weights, and scales by user."""

    users: pa.Array
    ends: Any
    codes: Codes
    weights: Codes
    scales: Codes

    @classmethod
    def of(cls, rows: pa.Table, items: pa.Array, params: Params) -> "_Vectors":
        """Fold histories."""
        state = HistoryState(params)
        load_rows(state, rows)
        owners = np.array([state.users.codes[user] for user in rows["user"].to_pylist()], np.int64)
        ends, codes, weights, scales = queries.vectors(state.histories, FoldWorkspace(), state.rule, owners)
        positions = pc.index_in(pa.array(state.items.names, items.type), items).to_numpy(zero_copy_only=False)
        fixed = np.maximum(np.rint(weights * ONE), params.alpha == LEARNED).astype(np.uint32)
        return cls(flat(rows["user"]), ends, positions.astype(np.uint32)[codes], fixed, scales)

    def indexed(self, items: int, hubs: int) -> Index:
        """Build an index, in which a user's code is the position here."""
        index = Index(hubs)
        index.admit(len(self.users), items)
        index.fill(self.ends, self.codes, self.weights, self.scales)
        index.rebuild_hubs()
        return index

    def each(self) -> Iterator[tuple[Codes, Vector]]:
        """Yield the items and the vector of each user, which lacks items whose weight is rounded to zero."""
        codes, weights = (np.split(values, self.ends[:-1]) for values in (self.codes, self.weights))
        for row, scale in enumerate(self.scales.tolist()):
            yield codes[row], Vector(codes[row], weights[row], scale)


class _Model(NamedTuple):
    """The data of a job that every task needs."""

    params: Params
    items: pa.Array
    alpha: float
    factors: Any
    pool: _Vectors
    banned: Codes
    allowed: Codes | None
    only_new: bool
    n: int

    def queries(self, rows: pa.Table) -> Iterator[Query]:
        """Return a query for each history."""
        vectors = _Vectors.of(rows, self.items, self.params)
        own = pc.fill_null(pc.index_in(vectors.users, self.pool.users), -1).to_pylist()
        for (bought, vector), code, suppressed in zip(vectors.each(), own, rows["suppressed"].to_pylist(), strict=True):
            banned = [self.banned, bought] if self.only_new else [self.banned]
            banned += [_codes(self.items, suppressed)] if suppressed else []
            if self.factors is not None:
                vector.weigh_by(self.factors)
            yield Query(vector, code, (np.concatenate(banned), self.allowed), min(self.n, len(self.items)))


def _best_items(broadcast: Broadcast[_Model], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    model, workspace = broadcast.value, SearchWorkspace()
    k, index = model.params.neighbors, model.pool.indexed(len(model.items), model.params.neighbors)
    orders = GrowableArray.of(np.arange(len(model.pool.users))), GrowableArray.of(np.arange(len(model.items)))
    for batch in batches:
        asked = list(model.queries(pa.Table.from_batches([batch])))
        workspace.recommend(QueryBatch(index, asked, k, model.alpha, orders))
        best = [query.take() for query in asked]
        codes = pa.array([code for ranked in best for code, _ in ranked], pa.int64())
        scores = pa.array([score for ranked in best for _, score in ranked], pa.float64())
        pairs = pa.StructArray.from_arrays([model.items.take(codes), scores], ["item", "score"])
        lists = pa.ListArray.from_arrays(offsets([len(ranked) for ranked in best]), pairs)
        yield pa.RecordBatch.from_arrays([batch["user"], lists], ["user", "recommendations"])
