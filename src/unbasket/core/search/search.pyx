"""Queries to the index: recommendations and neighbors (paper, section 2.2).

Exact: everything before the final scores is integer arithmetic.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from functools import partial

import numpy as np

from unbasket.core.util.topn cimport TopN
from unbasket.core.memory.growable cimport GrowableArray
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport NearestNeighbors, KnnQuery
from unbasket.core.search.scoring cimport Scorer
from unbasket.core.search.parallel cimport fork_join, next_index
from unbasket.core.model.fold cimport ONE_BITS, VectorEntry, Vector, scaled_weight

cdef extern from "Python.h":
    void **PySequence_Fast_ITEMS(object sequence)


cdef double ONE = 1 << ONE_BITS


@cython.final
@cython.auto_pickle(False)
cdef class Query:
    """A query for the n best items for a vector, and its result, which a `SearchWorkspace` puts here.

    The user is left out of the neighbors (-1: no user is). `choice` has the banned items, and the only ones that are
    allowed (None: all); it may be None. For privacy, neighbors may be found by a `probe`, a part of the vector, and only
    the items of at least so many neighbors count.
    """

    def __init__(self, Vector vector, int64_t user, choice, Py_ssize_t n, Vector probe=None, Py_ssize_t least=0):
        self.vector, self.user, self.n = vector, user, n
        self.probe, self.least = vector if probe is None else probe, least
        self.banned, self.allowed = (None, None) if choice is None else choice
        self.best = TopN()

    def take(self):
        """Remove the result: the best items and their scores, best first."""
        return self.best.drain(ONE)


@cython.final
cdef class QueryBatch:
    """Queries with the same parameters, which several threads may share.

    k neighbors count, the weight of a user's own vector is alpha, and `orders` break ties: between users, and between
    items.
    """

    def __init__(self, Index index, list queries, Py_ssize_t k, double alpha, orders):
        assert all([isinstance(query, Query) for query in queries]), "not a query"
        self.index, self.queries = index, queries
        self.table, self.count = <void **> PySequence_Fast_ITEMS(queries), len(queries)
        self.k, self.alpha = k, alpha
        self.user_order, self.item_order = orders

    cdef KnnQuery knn_query(self, Query query, Vector vector) noexcept nogil:
        return KnnQuery(vector.entries, vector.own, vector.length, query.user, self.k, self.user_order.data)

    cdef bint reserve(self, Query query) except -1 nogil:
        """Make room for the result of a query; return False if nothing can be recommended."""
        cdef Py_ssize_t n = min(query.n, self.index.item_room)
        if n == 0 or (query.allowed is not None and query.allowed.shape[0] == 0):
            return False
        query.best.reserve(n, self.item_order.data)
        return True


@cython.final
cdef class SearchWorkspace:
    """The workspace of one search at a time: neighbors, and a ranking of items. All zero between searches.

    Threads of the `thread_pool` (None: no pool) share the shards of one query or the queries of a batch. In a batch,
    each thread has a workspace of its own.
    """

    def __cinit__(self):
        self.nearest = NearestNeighbors()
        self.scorer = Scorer()
        self.thread_workspaces = []

    def recommend(self, QueryBatch batch):
        """Answer the queries of a batch."""
        if self.thread_pool is None:
            self.answer(batch)
        elif batch.count == 1:
            self._answer_parallel(batch, batch.queries[0])
        else:
            spaces = self._workspaces_for(batch)
            fork_join(self.thread_pool, [partial(space.answer, batch) for space in (self, *spaces)])

    cdef list _workspaces_for(self, QueryBatch batch):
        """Return workspaces for as many threads as have enough to do."""
        cdef Py_ssize_t useful = batch.count * batch.index.slot_end // self.thread_pool.users_per_thread
        cdef Py_ssize_t wanted = max(0, min(useful, batch.count - 1, self.thread_pool.size))
        while len(self.thread_workspaces) < wanted:
            self.thread_workspaces.append(SearchWorkspace())
        return self.thread_workspaces[:wanted]

    def answer(self, QueryBatch batch):
        """Answer queries of a batch until all are taken, in any thread."""
        cdef Py_ssize_t number
        with nogil:
            number = next_index(&batch.next_query)
            while number < batch.count:
                self._answer_serial(batch, <Query> batch.table[number])
                number = next_index(&batch.next_query)

    cdef int _answer_serial(self, QueryBatch batch, Query query) except -1 nogil:
        cdef KnnQuery probe = batch.knn_query(query, query.probe), own = batch.knn_query(query, query.vector)
        if batch.reserve(query):
            self.nearest.find_serial(batch.index, &probe)
            self._rank(batch, query, &own)

    cdef int _answer_parallel(self, QueryBatch batch, Query query) except -1:
        cdef KnnQuery probe = batch.knn_query(query, query.probe), own = batch.knn_query(query, query.vector)
        if batch.reserve(query):
            self.nearest.find(batch.index, &probe, self.thread_pool)
            with nogil:
                self._rank(batch, query, &own)

    cdef int _rank(self, QueryBatch batch, Query query, const KnnQuery *own) except -1 nogil:
        """Rank items using the neighbors that were found."""
        self.scorer.best.swap(query.best)
        self.scorer.rank(batch.index, self.nearest.scan, own, batch.alpha, query.banned, query.allowed, query.least)
        self.scorer.best.swap(query.best)

    def neighbors(self, Index index, Vector vector, int64_t user, Py_ssize_t k, GrowableArray order):
        """Return the k nearest users, unordered, and their squared distances in units of 2^-48."""
        cdef KnnQuery query = KnnQuery(vector.entries, vector.own, vector.length, user, k, order.data)
        cdef int64_t norm = 0
        cdef Py_ssize_t i
        for i in range(query.length):
            norm += <int64_t> query.entries[i].weight * query.entries[i].weight
        self.nearest.find(index, &query, self.thread_pool)
        codes, squares = np.empty(self.nearest.scan.found, np.uint32), np.empty(self.nearest.scan.found, np.int64)
        cdef uint32_t[::1] code = codes
        cdef int64_t[::1] square = squares
        for i in range(self.nearest.scan.found):
            code[i], square[i] = self.nearest.scan.candidates[i].code, self.nearest.scan.candidates[i].key + norm
        self.nearest.scan.clear()
        return codes, squares

    def holders(
        self, Index index, Vector vector, Vector probe, int64_t user, const int64_t[::1] items, Py_ssize_t k,
        GrowableArray order
    ):
        """Return own weights of items, the neighbors' sums, how many neighbors have each, and how many there are.

        The neighbors are those of the probe.
        """
        cdef KnnQuery query = KnnQuery(probe.entries, probe.own, probe.length, user, k, order.data)
        own = np.zeros(items.shape[0], np.int64)
        totals, having = own.copy(), own.copy()
        cdef int64_t[::1] mine = own, total = totals, count = having
        cdef int64_t weight
        cdef Py_ssize_t i, j, slot, found
        self.nearest.find(index, &query, self.thread_pool)
        with nogil:
            found = self.nearest.scan.found
            for j in range(items.shape[0]):
                mine[j] = scaled_weight(weight_in(vector.entries, vector.length, items[j]), vector.scale)
                for i in range(found):
                    slot = self.nearest.scan.candidates[i].slot
                    weight = scaled_weight(weight_in(index.vector(slot), index.length(slot), items[j]), index.scale(slot))
                    total[j] += weight
                    count[j] += weight > 0
            self.nearest.scan.clear()
        return own, totals, having, found

    def residue(self):
        """Count the bytes that are not zero; between searches there are none."""
        own = self.nearest.residue() + self.scorer.residue()
        return own + sum([space.residue() for space in self.thread_workspaces])


cdef int64_t weight_in(const VectorEntry *entries, Py_ssize_t length, int64_t item) except -1 nogil:
    """Return the weight of an item in a vector, or 0."""
    cdef Py_ssize_t i
    for i in range(length):
        if entries[i].item == item:
            return entries[i].weight
    return 0
