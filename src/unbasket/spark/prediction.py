"""The prediction stage (paper, section 5): recommendations for many users at once, equal to the engine's to the bit.

    vectors -> codes -> nearest in each block -> nearest of all -> sums in each block -> best items

Users are divided into blocks, queries into slices. A task compares a slice with a block in the engine's index: first to
find candidates, of which Spark keeps the k nearest over all blocks, then to add up the vectors of those. Distances and
sums are exact integers, so it does not matter who is in which block. No task holds more than a block and a slice, and
only the list of items comes to the driver.

That is without a pool. With one, `pooling` has all the work.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark import Broadcast
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql

from unbasket.core import ONE, GrowableArray, Index, SearchWorkspace
from unbasket.domain.ids import Id, in_order
from unbasket.domain.validation import checked_count, checked_users
from unbasket.params import Params
from unbasket.spark import pooling
from unbasket.spark.lists import joined, offsets, rows_of, vectors_of
from unbasket.spark.sources import item_type

BLOCK = 50_000  # users in a block, and queries in a slice

_TASKS = 4  # at least so many per core, since they differ in size


def recommend(
    vectors: DataFrame,
    params: Params,
    users: Iterable[Id] | DataFrame | None = None,
    n: int = 10,
    *,
    block: int = BLOCK,
) -> DataFrame:
    """The n best items for all users, or for some: the same answers as `recommend_many`.

    `users` are ids, or a frame with the column `user`. The answer has the columns user and recommendations, an array of
    (item, score), best first. A user who has no vector has no row. With a pool, `block` has no meaning.
    """
    n, asked = checked_count(n), _of_users(vectors, users)
    if params.pool is not None:
        return pooling.recommend(vectors, asked, params, n)
    job = _Job(vectors, params, block)
    return job.best_items(job.sums(job.nearest(job.encoded(asked))), n)


def _of_users(vectors: DataFrame, users: Iterable[Id] | DataFrame | None) -> DataFrame:
    """The vectors of the users who get recommendations."""
    if users is None:
        return vectors
    if not isinstance(users, DataFrame):
        rows = [(user,) for user in checked_users(users)]
        users = vectors.sparkSession.createDataFrame(rows, f"user {vectors.schema['user'].dataType.simpleString()}")
    return vectors.join(users.select("user"), "user", "leftsemi")


class _Job:
    """The steps, each a frame with one row per query. `_everyone` has all users, once for each slice."""

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
        self._everyone = in_block.withColumn("slice", _each(self._slices))

    def encoded(self, vectors: DataFrame) -> DataFrame:
        """Vectors by codes, in fixed point."""
        return vectors.mapInArrow(partial(_encode, self._catalog), self._query)

    def nearest(self, queries: DataFrame) -> DataFrame:
        """The k nearest other users of each query; equal distances are put in the order of ids."""
        k = self._params.neighbors
        found = f"{self._query}, neighbors array<struct<square: long, user: {self._user}>>"
        near = self._meet(queries, partial(_nearest, k, len(self._catalog.value)), found)
        all_found = sql.array_sort(sql.flatten(sql.collect_list("neighbors")))
        return near.groupBy("user").agg(*_same("codes", "weights"), sql.slice(all_found, 1, k).alias("neighbors"))

    def sums(self, nearest: DataFrame) -> DataFrame:
        """The sums over the vectors of each query's neighbors; an item appears once for each block."""
        added = f"{self._query}, found int, items array<int>, totals array<long>"
        nearest = nearest.withColumn("found", sql.size("neighbors"))
        parts = self._meet(nearest, partial(_sums, len(self._catalog.value)), added)
        lists = [sql.flatten(sql.collect_list(name)).alias(name) for name in ("items", "totals")]
        return parts.groupBy("user").agg(*_same("codes", "weights", "found"), *lists)

    def best_items(self, sums: DataFrame, n: int) -> DataFrame:
        """The answer."""
        answer = f"user {self._user}, recommendations array<struct<item: {self._item}, score: double>>"
        return sums.mapInArrow(partial(_best, self._catalog, self._params.alpha, n), answer)

    def _meet(self, queries: DataFrame, function: Callable[[pa.Table, pa.Table], pa.Table], schema: str) -> DataFrame:
        """Apply a function to every pair of a block and a slice of queries."""
        queries = queries.withColumn("block", _each(self._blocks))
        if "neighbors" in queries.columns:
            inside = f"filter(neighbors, x -> pmod(hash(x.user), {self._blocks}) = block)"
            queries = queries.withColumn("neighbors", sql.expr(f"transform({inside}, x -> x.user)"))
        queries = queries.withColumn("slice", sql.expr(f"pmod(hash(user), {self._slices})"))
        sides = (self._everyone.groupBy("block", "slice"), queries.groupBy("block", "slice"))
        return sides[0].cogroup(sides[1]).applyInArrow(function, schema)


def _each(count: int) -> Column:
    """A row for each number below the count."""
    return sql.explode(sql.sequence(sql.lit(0), sql.lit(count - 1)))


def _same(*names: str) -> list[Column]:
    """Columns that have the same value in all rows of a query."""
    return [sql.first(name).alias(name) for name in names]


def _encode(catalog: Broadcast[list[Id]], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Items as their places in the catalog, weights in fixed point."""
    names: pa.Array | None = None
    for batch in batches:
        items, weights = batch["items"], batch["weights"].flatten().to_numpy()
        names = pa.array(catalog.value, items.type.value_type) if names is None else names
        fixed = pa.array(np.rint(weights * ONE).astype(np.int32))
        codes = pc.index_in(items.flatten(), names)
        ends = offsets(np.diff(items.offsets.to_numpy()))
        lists = [pa.ListArray.from_arrays(ends, values) for values in (codes, fixed)]
        yield pa.RecordBatch.from_arrays([batch["user"], *lists], ["user", "codes", "weights"])


def _nearest(k: int, items: int, everyone: pa.Table, queries: pa.Table) -> pa.Table:
    """The k nearest users of one block."""
    everyone = everyone.sort_by("user")  # so that codes are in the order of ids, by which ties are broken
    names, index = everyone["user"].combine_chunks(), _index_of(everyone, items)
    order, space = GrowableArray.of(np.arange(len(names))), SearchWorkspace()
    own = pc.fill_null(pc.index_in(queries["user"].combine_chunks(), names), -1).to_pylist()
    found = [
        space.neighbors(index, query, code, k, order) for query, code in zip(vectors_of(queries), own, strict=True)
    ]
    users = names.take(joined([codes for codes, _ in found], np.uint32))
    squares = pa.array(joined([distances for _, distances in found], np.int64))
    pairs = pa.StructArray.from_arrays([squares, users], ["square", "user"])
    ends = offsets([len(codes) for codes, _ in found])
    neighbors = pa.ListArray.from_arrays(ends, pairs)
    return queries.select(["user", "codes", "weights"]).append_column("neighbors", neighbors)


def _sums(items: int, everyone: pa.Table, queries: pa.Table) -> pa.Table:
    """The sums over the neighbors that are in one block."""
    names, index = everyone["user"].combine_chunks(), _index_of(everyone, items)
    neighbors = queries["neighbors"].combine_chunks()
    codes = pc.index_in(neighbors.flatten(), names).to_numpy(zero_copy_only=False).astype(np.uint32)
    ends = np.cumsum(neighbors.value_lengths().to_numpy())
    space = SearchWorkspace()
    found = [space.sum_of(index, part) for part in np.split(codes, ends)[:-1]]
    lists = offsets([len(summed) for summed, _ in found])
    summed = pa.ListArray.from_arrays(lists, pa.array(joined([codes for codes, _ in found], np.int32)))
    totals = pa.ListArray.from_arrays(lists, pa.array(joined([totals for _, totals in found], np.int64)))
    kept = queries.select(["user", "codes", "weights", "found"])
    return kept.append_column("items", summed).append_column("totals", totals)


def _best(
    catalog: Broadcast[list[Id]], alpha: float, n: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The n best items of each query, with their names."""
    names = catalog.value
    order, space = GrowableArray.of(np.arange(len(names))), SearchWorkspace()
    most = min(n, len(names))
    for batch in batches:
        table = pa.Table.from_batches([batch])
        sums = zip(rows_of(table["items"], np.uint32), rows_of(table["totals"], np.int64), strict=True)
        answers = []
        for query, found, (items, totals) in zip(vectors_of(table), table["found"].to_pylist(), sums, strict=True):
            best = space.best_of(query, items, totals, found, alpha, order, most)
            answers.append([(names[code], score) for code, score in best])
        item = pa.string() if isinstance(names[0], str) else pa.int64()
        kind = pa.list_(pa.struct([("item", item), ("score", pa.float64())]))
        yield pa.RecordBatch.from_arrays([batch["user"], pa.array(answers, kind)], ["user", "recommendations"])


def _index_of(users: pa.Table, items: int) -> Index:
    """An index of users, whose codes are their rows."""
    codes, weights = (users[name].combine_chunks() for name in ("codes", "weights"))
    lengths = codes.value_lengths().to_numpy().astype(np.int64)
    entries = codes.flatten().to_numpy().astype(np.uint32)
    index = Index(1)
    index.admit(len(users), items)
    index.fill(np.cumsum(lengths), entries, weights.flatten().to_numpy().astype(np.uint32))
    return index
