"""Questions to the index: who is nearest, what the nearest have, and which items are best (paper, section 2.2).

Exact: everything before the final scores is integer arithmetic.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from unbasket.core.column cimport Column
from unbasket.core.index cimport Index
from unbasket.core.nearest cimport Nearest, Query
from unbasket.core.part cimport ONE_BITS
from unbasket.core.ranking cimport Ranking
from unbasket.core.vector cimport Entry, Vector


cdef double ONE = 1 << ONE_BITS


@cython.final
cdef class SearchSpace:
    """Work space of one query at a time, all zero between queries: a search for neighbors, and a ranking of items.

    `helpers` are threads that may be asked to help with the search (None: nobody).
    """

    def __cinit__(self):
        self.nearest = Nearest()
        self.ranking = Ranking()

    def recommend(
        self, Index index, Vector vector, int64_t user, Py_ssize_t k, double alpha, choice, orders, Py_ssize_t n
    ):
        """The n best items for a vector, and their scores, best first.

        The user is left out of the neighbors (-1: nobody). `choice` has the banned items, and the only ones that are
        allowed (None: all); it may be None. `orders` decide between equals: of users, and of items.
        """
        cdef const uint32_t[::1] banned = None, allowed = None
        cdef Column people = orders[0], goods = orders[1]
        cdef Query query = Query(vector.entries, vector.length, user, k, people.data)
        if choice is not None:
            banned, allowed = choice
        n = min(n, index.item_room)
        if n == 0 or (allowed is not None and allowed.shape[0] == 0):
            return []
        self.ranking.best.expect(n, goods.data)
        self.nearest.find(index, &query, self.helpers)
        with nogil:
            self.ranking.rank(index, self.nearest.scan, &query, alpha, banned, allowed)
        return self.ranking.best.take(ONE)

    def neighbors(self, Index index, Vector vector, int64_t user, Py_ssize_t k, Column order):
        """The k nearest users, in no order, and their squared distances in units of 2^-48."""
        cdef Query query = Query(vector.entries, vector.length, user, k, order.data)
        cdef int64_t norm = 0
        cdef Py_ssize_t i
        for i in range(query.length):
            norm += <int64_t> query.entries[i].weight * query.entries[i].weight
        self.nearest.find(index, &query, self.helpers)
        codes, squares = np.empty(self.nearest.scan.found, np.uint32), np.empty(self.nearest.scan.found, np.int64)
        cdef uint32_t[::1] code = codes
        cdef int64_t[::1] square = squares
        for i in range(self.nearest.scan.found):
            code[i], square[i] = self.nearest.scan.candidates[i].code, self.nearest.scan.candidates[i].key + norm
        self.nearest.scan.forget()
        return codes, squares

    def holders(
        self, Index index, Vector vector, int64_t user, const int64_t[::1] items, Py_ssize_t k, Column order
    ):
        """For explanations: own weights of items, the neighbors' sums, how many of these have each, how many they are."""
        cdef Query query = Query(vector.entries, vector.length, user, k, order.data)
        own = np.zeros(items.shape[0], np.int64)
        totals, having = own.copy(), own.copy()
        cdef int64_t[::1] mine = own, total = totals, count = having
        cdef int64_t weight
        cdef Py_ssize_t i, j, slot, found
        self.nearest.find(index, &query, self.helpers)
        with nogil:
            found = self.nearest.scan.found
            for j in range(items.shape[0]):
                mine[j] = weight_in(query.entries, query.length, items[j])
                for i in range(found):
                    slot = self.nearest.scan.candidates[i].slot
                    weight = weight_in(index.vector(slot), index.length(slot), items[j])
                    total[j] += weight
                    count[j] += weight > 0
            self.nearest.scan.forget()
        return own, totals, having, found

    def sum_of(self, Index index, const uint32_t[::1] users):
        """The items that these users have, and the sums of their weights over the users."""
        return self.ranking.sum_over(index, users)

    def best_of(
        self, Vector vector, const uint32_t[::1] items, const int64_t[::1] totals, Py_ssize_t found, double alpha,
        Column order, Py_ssize_t n
    ):
        """The n best items, best first, for a vector whose `found` neighbors have these items with these totals.

        An item may come more than once, with parts of its total. The arithmetic is that of `recommend`, to the bit.
        """
        cdef Query query = Query(vector.entries, vector.length, -1, 0, NULL)
        n = min(n, order.count)
        if n == 0:
            return []
        self.ranking.widen(order.count, 0)
        self.ranking.best.expect(n, order.data)
        self.ranking.rank_totals(&query, alpha, found, items, totals)
        return self.ranking.best.take(ONE)

    def leftovers(self):
        """How many places of the work space are not zero, though no query is under way."""
        return self.nearest.leftovers() + self.ranking.leftovers()


cdef int64_t weight_in(const Entry *entries, Py_ssize_t length, int64_t item) except -1 nogil:
    cdef Py_ssize_t i
    for i in range(length):
        if entries[i].item == item:
            return entries[i].weight
    return 0
