"""Recommendations with neighbors from a pool: one pass over all users selects it, another compares them with it.

    vectors -> the pool -> index in every task
    vectors ----------------------------------> best items

The pool is selected by the users' priorities, which depend on ids alone. The driver collects and broadcasts it. There
is no shuffle, so the work grows with the number of users only.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import DataFrame

from unbasket.core.index import Index
from unbasket.core.memory import GrowableArray
from unbasket.core.model import ONE, Vector
from unbasket.core.search import Query, QueryBatch, SearchWorkspace
from unbasket.engine.state import PoolPriorities
from unbasket.params import Params
from unbasket.spark.sources import item_type

_PRIORITIES = 2**64


def recommend(vectors: DataFrame, asked: DataFrame, params: Params, n: int) -> DataFrame:
    """Recommend n items to the users in `asked`, with neighbors from the pool of all users."""
    pool = vectors.sparkSession.sparkContext.broadcast(_pool_of(vectors, params.seeded()))
    user, item = (kind.simpleString() for kind in (vectors.schema["user"].dataType, item_type(vectors.schema)))
    schema = f"user {user}, recommendations array<struct<item: {item}, score: double>>"
    return asked.select("user", "items", "weights").mapInArrow(partial(_best_items, pool, params, n), schema)


class _Pool(NamedTuple):
    """The users of the pool and their items, both in the order of ids, and their vectors as flat arrays."""

    users: pa.Array
    items: pa.Array
    ends: Any
    codes: Any
    weights: Any


def _pool_of(vectors: DataFrame, params: Params) -> _Pool:
    """Collect the users with the smallest priorities.

    Priorities are uniform, so a limit is computed that few users beyond the pool stay below.
    """
    assert params.pool is not None
    assert params.pool_seed is not None
    count = vectors.count()
    wanted, expected = min(params.pool, count), params.pool + 6 * sqrt(params.pool)
    columns = vectors.select("user", "items", "weights")
    while True:
        limit = min(_PRIORITIES - 1, int(_PRIORITIES * expected) // max(count, 1))
        found = columns.mapInArrow(partial(_with_small_priorities, params.pool_seed, limit), columns.schema).toArrow()
        if len(found) >= wanted:
            return _sorted(_smallest(found, params.pool_seed, wanted))
        expected *= 2


def _with_small_priorities(seed: int, limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    priorities = PoolPriorities(seed)
    for batch in batches:
        yield batch.filter(pa.array(priorities.of_all(batch["user"].to_pylist()) <= limit))


def _smallest(found: pa.Table, seed: int, wanted: int) -> pa.Table:
    users, priorities = found["user"].to_pylist(), PoolPriorities(seed)
    order = sorted(range(len(users)), key=lambda row: (priorities.of(users[row]), users[row]))
    return found.take(pa.array(order[:wanted], pa.int64()))


def _sorted(chosen: pa.Table) -> _Pool:
    chosen = chosen.sort_by("user").combine_chunks()
    lists, weights = chosen["items"].combine_chunks(), chosen["weights"].combine_chunks()
    bought = lists.flatten()
    items = pc.unique(bought)
    items = items.take(pc.sort_indices(items))
    return _Pool(
        chosen["user"].combine_chunks(),
        items,
        np.cumsum(lists.value_lengths().to_numpy()).astype(np.int64),
        pc.index_in(bought, items).to_numpy().astype(np.uint32),
        _fixed_point(weights.flatten()).astype(np.uint32),
    )


def _fixed_point(weights: pa.Array) -> Any:
    return np.rint(weights.to_numpy(zero_copy_only=False) * ONE)


def _index_of(pool: _Pool, neighbors: int) -> Index:
    """Build the index; a user's code is the position in `pool.users`."""
    index = Index(neighbors)
    index.admit(len(pool.users), len(pool.items))
    index.fill(pool.ends, pool.codes, pool.weights)
    index.rebuild_hubs()
    return index


def _best_items(
    broadcast: Broadcast[_Pool], params: Params, n: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    pool = broadcast.value
    index, workspace = _index_of(pool, params.neighbors), SearchWorkspace()
    for batch in batches:
        yield _recommend_batch(pool, index, workspace, params, n, batch)


def _recommend_batch(
    pool: _Pool, index: Index, workspace: SearchWorkspace, params: Params, n: int, batch: pa.RecordBatch
) -> pa.RecordBatch:
    """Recommend to the users of a batch. Their items may be missing from the pool."""
    bought = batch["items"].flatten()
    others = pc.unique(bought.filter(pc.invert(pc.is_in(bought, pool.items))))
    items = pa.concat_arrays([pool.items, others])
    orders = (
        GrowableArray.of(np.arange(len(pool.users))),
        GrowableArray.of(np.argsort(pc.sort_indices(items).to_numpy())),
    )
    index.admit(len(pool.users), len(items))
    own = pc.fill_null(pc.index_in(batch["user"], pool.users), -1).to_pylist()
    queries = [Query(vector, code, None, n) for vector, code in zip(_vectors(batch, items), own, strict=True)]
    workspace.recommend(QueryBatch(index, queries, params.neighbors, float(params.alpha), orders))
    best = [query.take() for query in queries]
    codes = pa.array([code for ranked in best for code, _ in ranked], pa.int64())
    scores = pa.array([score for ranked in best for _, score in ranked], pa.float64())
    pairs = pa.StructArray.from_arrays([items.take(codes), scores], ["item", "score"])
    lists = pa.ListArray.from_arrays(offsets([len(ranked) for ranked in best]), pairs)
    return pa.RecordBatch.from_arrays([batch["user"], lists], ["user", "recommendations"])


def _vectors(batch: pa.RecordBatch, items: pa.Array) -> Iterator[Vector]:
    ends = np.cumsum(batch["items"].value_lengths().to_numpy())[:-1]
    codes = pc.index_in(batch["items"].flatten(), items).to_numpy().astype(np.uint32)
    weights = _fixed_point(batch["weights"].flatten()).astype(np.uint32)
    return map(Vector, np.split(codes, ends), np.split(weights, ends))


def offsets(lengths: Any) -> pa.Array:
    """Return the offsets of lists with these lengths, for an Arrow list column."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
