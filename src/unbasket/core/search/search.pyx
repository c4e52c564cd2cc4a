"""Questions to the index: who is nearest, what the nearest have, and which items are best (paper, section 2.2).

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
from unbasket.core.model.fold cimport ONE_BITS
from unbasket.core.search.scoring cimport Scorer
from unbasket.core.search.parallel cimport together
from unbasket.core.model.fold cimport VectorEntry, Vector

cdef extern from "Python.h":
    void **PySequence_Fast_ITEMS(object sequence)

cdef extern from "search/atomic_counter.h" nogil:
    long fetch_increment(long *turn)


cdef double ONE = 1 << ONE_BITS


@cython.final
@cython.auto_pickle(False)
cdef class Query:
    """What the n best items for a vector are; they are put here by a `SearchWorkspace`, and can be taken then.

    The user is left out of the neighbors (-1: nobody). `choice` has the banned items, and the only ones that are allowed
    (None: all); it may be None.
    """

    def __init__(self, Vector vector, int64_t user, choice, Py_ssize_t n):
        self.vector, self.user, self.n = vector, user, n
        self.banned, self.allowed = (None, None) if choice is None else choice
        self.best = TopN()

    def take(self):
        """The best items and their scores, best first; they are forgotten here."""
        return self.best.drain(ONE)


@cython.final
cdef class QueryBatch:
    """Questions that are answered together, perhaps by several threads, which take them in turns.

    k neighbors count, the weight of a user's own vector is alpha, and `orders` decide between equals: of users, and of
    items.
    """

    def __init__(self, Index index, list questions, Py_ssize_t k, double alpha, orders):
        assert all([isinstance(question, Query) for question in questions]), "not a question"
        self.index, self.questions = index, questions
        self.table, self.count = <void **> PySequence_Fast_ITEMS(questions), len(questions)
        self.k, self.alpha = k, alpha
        self.people, self.goods = orders

    cdef KnnQuery query(self, Query question) noexcept nogil:
        return KnnQuery(question.vector.entries, question.vector.length, question.user, self.k, self.people.data)

    cdef bint expects(self, Query question) except -1 nogil:
        """Whether a question is to be searched for; if nothing can be recommended, it is answered already."""
        cdef Py_ssize_t n = min(question.n, self.index.item_room)
        if n == 0 or (question.allowed is not None and question.allowed.shape[0] == 0):
            return False
        question.best.reserve(n, self.goods.data)
        return True


@cython.final
cdef class SearchWorkspace:
    """Work space of one query at a time, all zero between queries: a search for neighbors, and a ranking of items.

    `helpers` are threads that may be asked for help (None: nobody): with the search for the neighbors of one query or,
    where there are many questions, with these, in work spaces of their own.
    """

    def __cinit__(self):
        self.nearest = NearestNeighbors()
        self.ranking = Scorer()
        self.helping = []

    def recommend(self, QueryBatch asked):
        """Answer questions."""
        if self.helpers is None:
            self.answer(asked)
        elif asked.count == 1:
            self._answer_with_help(asked, asked.questions[0])
        else:
            spaces = self._helping_with(asked)
            together(self.helpers, [partial(space.answer, asked) for space in (self, *spaces)])

    cdef list _helping_with(self, QueryBatch asked):
        """Work spaces for as many helpers as have enough to do."""
        cdef Py_ssize_t useful = asked.count * asked.index.slot_end // self.helpers.worth
        cdef Py_ssize_t wanted = max(0, min(useful, asked.count - 1, self.helpers.count))
        while len(self.helping) < wanted:
            self.helping.append(SearchWorkspace())
        return self.helping[:wanted]

    def answer(self, QueryBatch asked):
        """Answer those questions of a round whose turn it is, until there are none left; in any thread."""
        cdef Py_ssize_t number
        with nogil:
            number = fetch_increment(&asked.turn)
            while number < asked.count:
                self._answer_alone(asked, <Query> asked.table[number])
                number = fetch_increment(&asked.turn)

    cdef int _answer_alone(self, QueryBatch asked, Query question) except -1 nogil:
        cdef KnnQuery query = asked.query(question)
        if asked.expects(question):
            self.nearest.find_alone(asked.index, &query)
            self._rank(asked, question, &query)
        return 0

    cdef int _answer_with_help(self, QueryBatch asked, Query question) except -1:
        cdef KnnQuery query = asked.query(question)
        if asked.expects(question):
            self.nearest.find(asked.index, &query, self.helpers)
            with nogil:
                self._rank(asked, question, &query)
        return 0

    cdef int _rank(self, QueryBatch asked, Query question, const KnnQuery *query) except -1 nogil:
        """Find the best items with the neighbors that were found."""
        self.ranking.best.swap(question.best)
        self.ranking.rank(asked.index, self.nearest.scan, query, asked.alpha, question.banned, question.allowed)
        self.ranking.best.swap(question.best)
        return 0

    def neighbors(self, Index index, Vector vector, int64_t user, Py_ssize_t k, GrowableArray order):
        """The k nearest users, in no order, and their squared distances in units of 2^-48."""
        cdef KnnQuery query = KnnQuery(vector.entries, vector.length, user, k, order.data)
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
        self, Index index, Vector vector, int64_t user, const int64_t[::1] items, Py_ssize_t k, GrowableArray order
    ):
        """For explanations: own weights of items, the neighbors' sums, how many of these have each, how many they are."""
        cdef KnnQuery query = KnnQuery(vector.entries, vector.length, user, k, order.data)
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
        GrowableArray order, Py_ssize_t n
    ):
        """The n best items, best first, for a vector whose `found` neighbors have these items with these totals.

        An item may come more than once, with shards of its total. The arithmetic is that of `recommend`, to the bit.
        """
        cdef KnnQuery query = KnnQuery(vector.entries, vector.length, -1, 0, NULL)
        n = min(n, order.count)
        if n == 0:
            return []
        self.ranking.widen(order.count, 0)
        self.ranking.best.reserve(n, order.data)
        self.ranking.rank_totals(&query, alpha, found, items, totals)
        return self.ranking.best.drain(ONE)

    def residue(self):
        """How many places of the work space are not zero, though no query is under way."""
        own = self.nearest.residue() + self.ranking.residue()
        return own + sum([space.residue() for space in self.helping])


cdef int64_t weight_in(const VectorEntry *entries, Py_ssize_t length, int64_t item) except -1 nogil:
    cdef Py_ssize_t i
    for i in range(length):
        if entries[i].item == item:
            return entries[i].weight
    return 0
