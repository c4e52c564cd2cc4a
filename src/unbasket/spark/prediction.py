"""The prediction stage (paper, section 5): recommendations for many users, bit-equal to the engine's.

    vectors -> codes -> nearest in each block -> nearest of all -> sums in each block -> best items

Users are divided into blocks, queries into slices. A task compares a slice with a block in the engine's index: first to
find candidates, then, after Spark has selected the k nearest over all blocks, to sum the vectors of these. Distances
and sums are exact integers, so the result does not depend on the blocks. A task holds at most one block and one slice,
and only the list of items is collected by the driver. With a pool, `pooling` does all of this instead.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from unbasket.core.index import Index
from unbasket.core.memory import GrowableArray
from unbasket.core.model import ONE, Vector
from unbasket.core.search import SearchWorkspace
from unbasket.domain.ids import Id, in_order
from unbasket.domain.validation import checked_count, checked_users
from unbasket.params import Params
from unbasket.spark import pooling
from unbasket.spark.checkpoint import require_number
from unbasket.spark.pooling import offsets
from unbasket.spark.sources import item_type

BLOCK = 50_000  # users in a block, and queries in a slice
_TASKS = 4  # minimum per core, since tasks differ in size


def recommend(
    vectors: DataFrame,
    params: Params,
    users: Iterable[Id] | DataFrame | None = None,
    n: int = 10,
    *,
    block: int = BLOCK,
) -> DataFrame:
    """Recommend n items to all or some users: the same items and scores as `recommend_many`.

    `users` are ids, or a frame with the column `user`. The result has the columns user and recommendations, an array of
    (item, score), best first. A user without a vector has no row. With a pool, `block` is ignored.
    """
    n, asked = checked_count(n), _of_users(vectors, users)
    require_number(params)
    if params.pool is not None:
        return pooling.recommend(vectors, asked, params, n)
    job = _Job(vectors, params, block)
    return job.best_items(job.sums(job.nearest(job.encoded(asked))), n)


def _of_users(vectors: DataFrame, users: Iterable[Id] | DataFrame | None) -> DataFrame:
    if users is None:
        return vectors
    if not isinstance(users, DataFrame):
        rows = [(user,) for user in checked_users(users)]
        users = vectors.sparkSession.createDataFrame(rows, f"user {vectors.schema['user'].dataType.simpleString()}")
    return vectors.join(users.select("user"), "user", "leftsemi")


class _Job:
    """The steps, each a frame with one row per query. `_all_users` has all users, once for each slice."""

    def __init__(self, vectors: DataFrame, params: Params, block: int) -> None:
        context = vectors.sparkSession.sparkContext
        names = in_order([row[0] for row in vectors.select(sql.explode("items")).distinct().collect()])
        self._params = params
        self._catalog = context.broadcast(names)
        self._user = vectors.schema["user"].dataType.simpleString()
        self._item = item_type(vectors.schema).simpleString()
        self._query = f"user {self._user}, codes array<int>, weights array<int>"
        self._blocks = -(-max(vectors.count(), 1) // block)
        self._slices = max(self._blocks, _TASKS * context.defaultParallelism // self._blocks)
        in_block = self.encoded(vectors).withColumn("block", sql.expr(f"pmod(hash(user), {self._blocks})"))
        self._all_users = in_block.withColumn("slice", _each(self._slices))

    def encoded(self, vectors: DataFrame) -> DataFrame:
        """Encode vectors: items as positions in the catalog, weights in fixed point."""
        return vectors.mapInArrow(partial(_encode, self._catalog), self._query)

    def nearest(self, queries: DataFrame) -> DataFrame:
        """Find the k nearest other users of each query; ties are broken by id."""
        k = self._params.neighbors
        found = f"{self._query}, neighbors array<struct<square: long, user: {self._user}>>"
        near = self._cogroup(queries, partial(_nearest, k, len(self._catalog.value)), found)
        all_found = sql.array_sort(sql.flatten(sql.collect_list("neighbors")))
        return near.groupBy("user").agg(*_same("codes", "weights"), sql.slice(all_found, 1, k).alias("neighbors"))

    def sums(self, nearest: DataFrame) -> DataFrame:
        """Sum the vectors of each query's neighbors; an item appears once for each block."""
        added = f"{self._query}, found int, items array<int>, totals array<long>"
        nearest = nearest.withColumn("found", sql.size("neighbors"))
        sums = self._cogroup(nearest, partial(_sums, len(self._catalog.value)), added)
        lists = [sql.flatten(sql.collect_list(name)).alias(name) for name in ("items", "totals")]
        return sums.groupBy("user").agg(*_same("codes", "weights", "found"), *lists)

    def best_items(self, sums: DataFrame, n: int) -> DataFrame:
        """Rank the n best items of each query."""
        schema = f"user {self._user}, recommendations array<struct<item: {self._item}, score: double>>"
        return sums.mapInArrow(partial(_best, self._catalog, float(self._params.alpha), n), schema)

    def _cogroup(
        self, queries: DataFrame, function: Callable[[pa.Table, pa.Table], pa.Table], schema: str
    ) -> DataFrame:
        """Apply a function to every pair of a block and a slice of queries."""
        queries = queries.withColumn("block", _each(self._blocks))
        if "neighbors" in queries.columns:
            inside = f"filter(neighbors, x -> pmod(hash(x.user), {self._blocks}) = block)"
            queries = queries.withColumn("neighbors", sql.expr(f"transform({inside}, x -> x.user)"))
        queries = queries.withColumn("slice", sql.expr(f"pmod(hash(user), {self._slices})"))
        users = self._all_users.groupBy("block", "slice")
        return users.cogroup(queries.groupBy("block", "slice")).applyInArrow(function, schema)


def _each(count: int) -> Column:
    """Explode into a row for each number below the count."""
    return sql.explode(sql.sequence(sql.lit(0), sql.lit(count - 1)))


def _same(*names: str) -> list[Column]:
    """Select columns that have the same value in all rows of a query."""
    return [sql.first(name).alias(name) for name in names]


def _encode(catalog: Broadcast[list[Id]], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    names: pa.Array | None = None
    for batch in batches:
        items, weights = batch["items"], batch["weights"].flatten().to_numpy()
        names = pa.array(catalog.value, items.type.value_type) if names is None else names
        fixed = pa.array(np.rint(weights * ONE).astype(np.int32))
        codes = pc.index_in(items.flatten(), names)
        ends = offsets(np.diff(items.offsets.to_numpy()))
        lists = [pa.ListArray.from_arrays(ends, values) for values in (codes, fixed)]
        yield pa.RecordBatch.from_arrays([batch["user"], *lists], ["user", "codes", "weights"])


def _nearest(k: int, items: int, users: pa.Table, queries: pa.Table) -> pa.Table:
    """Find the k nearest users in one block."""
    users = users.sort_by("user")  # codes in the order of ids, by which ties are broken
    names, index = users["user"].combine_chunks(), _index_of(users, items)
    order, workspace = GrowableArray.of(np.arange(len(names))), SearchWorkspace()
    own = pc.fill_null(pc.index_in(queries["user"].combine_chunks(), names), -1).to_pylist()
    found = [
        workspace.neighbors(index, query, code, k, order) for query, code in zip(_vectors_of(queries), own, strict=True)
    ]
    neighbor_ids = names.take(_joined([codes for codes, _ in found], np.uint32))
    squares = pa.array(_joined([distances for _, distances in found], np.int64))
    pairs = pa.StructArray.from_arrays([squares, neighbor_ids], ["square", "user"])
    neighbors = pa.ListArray.from_arrays(offsets([len(codes) for codes, _ in found]), pairs)
    return queries.select(["user", "codes", "weights"]).append_column("neighbors", neighbors)


def _sums(items: int, users: pa.Table, queries: pa.Table) -> pa.Table:
    """Sum the vectors of the neighbors in one block."""
    names, index = users["user"].combine_chunks(), _index_of(users, items)
    neighbors = queries["neighbors"].combine_chunks()
    codes = pc.index_in(neighbors.flatten(), names).to_numpy(zero_copy_only=False).astype(np.uint32)
    ends = np.cumsum(neighbors.value_lengths().to_numpy())
    workspace = SearchWorkspace()
    found = [workspace.sum_of(index, group) for group in np.split(codes, ends)[:-1]]
    lists = offsets([len(summed) for summed, _ in found])
    summed = pa.ListArray.from_arrays(lists, pa.array(_joined([codes for codes, _ in found], np.int32)))
    totals = pa.ListArray.from_arrays(lists, pa.array(_joined([totals for _, totals in found], np.int64)))
    kept = queries.select(["user", "codes", "weights", "found"])
    return kept.append_column("items", summed).append_column("totals", totals)


def _best(
    catalog: Broadcast[list[Id]], alpha: float, n: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    names = catalog.value
    order, workspace = GrowableArray.of(np.arange(len(names))), SearchWorkspace()
    most = min(n, len(names))
    for batch in batches:
        table = pa.Table.from_batches([batch])
        sums = zip(_rows_of(table["items"], np.uint32), _rows_of(table["totals"], np.int64), strict=True)
        rankings = []
        for query, found, (items, totals) in zip(_vectors_of(table), table["found"].to_pylist(), sums, strict=True):
            best = workspace.best_of(query, items, totals, found, alpha, order, most)
            rankings.append([(names[code], score) for code, score in best])
        item = pa.string() if isinstance(names[0], str) else pa.int64()
        kind = pa.list_(pa.struct([("item", item), ("score", pa.float64())]))
        yield pa.RecordBatch.from_arrays([batch["user"], pa.array(rankings, kind)], ["user", "recommendations"])


def _index_of(users: pa.Table, items: int) -> Index:
    """Build an index of users with their row numbers as codes."""
    codes, weights = (users[name].combine_chunks() for name in ("codes", "weights"))
    lengths = codes.value_lengths().to_numpy().astype(np.int64)
    entries = codes.flatten().to_numpy().astype(np.uint32)
    index = Index(1)
    index.admit(len(users), items)
    index.fill(np.cumsum(lengths), entries, weights.flatten().to_numpy().astype(np.uint32))
    return index


def _vectors_of(queries: pa.Table) -> Iterator[Vector]:
    """Return the vector of each query in the index's representation: without weights rounded to zero."""
    return map(Vector, _rows_of(queries["codes"], np.uint32), _rows_of(queries["weights"], np.uint32))


def _rows_of(lists: pa.ChunkedArray, kind: type) -> list[Any]:
    column = lists.combine_chunks()
    ends = np.cumsum(column.value_lengths().to_numpy())
    return np.split(column.flatten().to_numpy().astype(kind), ends)[:-1]


def _joined(arrays: list[Any], kind: type) -> Any:
    return np.concatenate([np.zeros(0, kind), *arrays]).astype(kind)
