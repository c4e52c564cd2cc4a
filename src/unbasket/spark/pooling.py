"""Recommendations with neighbors from a pool: one pass over all users to find it, and one to compare each with it.

    vectors -> the pool -> index in every task
    vectors ----------------------------------> best items

The pool is found by its users' lots, which depend on ids alone, and comes to the driver, which sends it to every task.
No row is moved between tasks, so the work grows with the number of users and with nothing else.
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

from unbasket.core import ONE, GrowableArray, Index, Query, QueryBatch, SearchWorkspace, Vector
from unbasket.domain.ids import sort_key
from unbasket.engine.sampling import PoolPriorities
from unbasket.params import Params
from unbasket.spark.lists import offsets
from unbasket.spark.sources import item_type

_LOTS = 2**64


def recommend(vectors: DataFrame, asked: DataFrame, params: Params, n: int) -> DataFrame:
    """The n best items for those who are asked for, with neighbors from the pool of all."""
    pool = vectors.sparkSession.sparkContext.broadcast(_pool_of(vectors, params.seeded()))
    user, item = (kind.simpleString() for kind in (vectors.schema["user"].dataType, item_type(vectors.schema)))
    schema = f"user {user}, recommendations array<struct<item: {item}, score: double>>"
    return asked.select("user", "items", "weights").mapInArrow(partial(_best_items, pool, params, n), schema)


class _Pool(NamedTuple):
    """The users of the pool and their items, both in the order of ids, and the entries of their vectors."""

    users: pa.Array
    items: pa.Array
    ends: Any
    codes: Any
    weights: Any


def _pool_of(vectors: DataFrame, params: Params) -> _Pool:
    """The users with the smallest lots.

    Lots are spread evenly, so how many users stay below a limit is known well enough to ask for few in vain.
    """
    assert params.pool is not None
    assert params.pool_seed is not None
    count = vectors.count()
    wanted, expected = min(params.pool, count), params.pool + 6 * sqrt(params.pool)
    columns = vectors.select("user", "items", "weights")
    while True:
        limit = min(_LOTS - 1, int(_LOTS * expected) // max(count, 1))
        found = columns.mapInArrow(partial(_with_small_lots, params.pool_seed, limit), columns.schema).toArrow()
        if len(found) >= wanted:
            return _sorted(_smallest(found, params.pool_seed, wanted))
        expected *= 2


def _with_small_lots(seed: int, limit: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    lots = PoolPriorities(seed)
    for batch in batches:
        yield batch.filter(pa.array(lots.of_all(batch["user"].to_pylist()) <= limit))


def _smallest(found: pa.Table, seed: int, wanted: int) -> pa.Table:
    users, lots = found["user"].to_pylist(), PoolPriorities(seed)
    order = sorted(range(len(users)), key=lambda place: (lots.of(users[place]), sort_key(users[place])))
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
    """The index, in which a user's code is the place among the users."""
    index = Index(neighbors)
    index.admit(len(pool.users), len(pool.items))
    index.fill(pool.ends, pool.codes, pool.weights)
    index.rebuild_hubs()
    return index


def _best_items(
    broadcast: Broadcast[_Pool], params: Params, n: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The answers to users, a batch at a time."""
    pool = broadcast.value
    index, space = _index_of(pool, params.neighbors), SearchWorkspace()
    for batch in batches:
        yield _answers(pool, index, space, params, n, batch)


def _answers(
    pool: _Pool, index: Index, space: SearchWorkspace, params: Params, n: int, batch: pa.RecordBatch
) -> pa.RecordBatch:
    """The answers to the users of a batch, some of whose items nobody in the pool may have."""
    bought = batch["items"].flatten()
    others = pc.unique(bought.filter(pc.invert(pc.is_in(bought, pool.items))))
    items = pa.concat_arrays([pool.items, others])
    orders = (
        GrowableArray.of(np.arange(len(pool.users))),
        GrowableArray.of(np.argsort(pc.sort_indices(items).to_numpy())),
    )
    index.admit(len(pool.users), len(items))
    own = pc.fill_null(pc.index_in(batch["user"], pool.users), -1).to_pylist()
    questions = [Query(vector, code, None, n) for vector, code in zip(_vectors(batch, items), own, strict=True)]
    space.recommend(QueryBatch(index, questions, params.neighbors, params.alpha, orders))
    best = [question.take() for question in questions]
    codes = pa.array([code for answer in best for code, _ in answer], pa.int64())
    scores = pa.array([score for answer in best for _, score in answer], pa.float64())
    pairs = pa.StructArray.from_arrays([items.take(codes), scores], ["item", "score"])
    lists = pa.ListArray.from_arrays(offsets([len(answer) for answer in best]), pairs)
    return pa.RecordBatch.from_arrays([batch["user"], lists], ["user", "recommendations"])


def _vectors(batch: pa.RecordBatch, items: pa.Array) -> Iterator[Vector]:
    """The vectors of a batch as the index would hold them."""
    ends = np.cumsum(batch["items"].value_lengths().to_numpy())[:-1]
    codes = pc.index_in(batch["items"].flatten(), items).to_numpy().astype(np.uint32)
    weights = _fixed_point(batch["weights"].flatten()).astype(np.uint32)
    return map(Vector, np.split(codes, ends), np.split(weights, ends))
