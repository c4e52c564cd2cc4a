cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.model.fold cimport FoldWorkspace, Rule, Vector, VectorEntry
from unbasket.core.model.history cimport Histories, History


cdef struct ItemSums:
    int64_t buyers  # U: users with the item
    int64_t weight  # S: sum of the users' decayed counts d, fixed point


cdef struct Regression:
    int64_t hits  # sum of x y, fixed point
    int64_t squares  # sum of x x, fixed point; of one user that is counted, plus 1


cdef struct Totals:
    int64_t users  # with two baskets or more
    Regression regression  # over these users
    int64_t purchases  # C, over all items
    ItemSums items  # U and S, over all items


@cython.final
cdef class Share:
    cdef Totals totals  # of one history
    cdef dict items  # by item: purchases, buyers (1), weight


@cython.final
cdef class LearnedSums:
    cdef Histories histories  # whose `popularity` has the purchases by item
    cdef int64_t kappa  # the evidence that a factor needs, fixed point; 0: no factors
    cdef Totals totals  # over all users that are counted
    cdef ItemSums *items  # by item
    cdef Regression *users  # by user; zero if the user is not counted
    cdef readonly Py_ssize_t user_room, item_room  # lengths of the arrays
    cdef readonly LearnedSums recount  # follows the same events, or None

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef bint counts(self, Py_ssize_t user) noexcept nogil
    cdef int add(
        self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length, Regression regression
    ) except -1 nogil
    cdef int remove(self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length) except -1 nogil
    cdef int _add(
        self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length, Regression regression, int sign
    ) except -1 nogil


cdef Regression regression_of(Rule rule, FoldWorkspace space) noexcept nogil
cdef Share share_of(const History *history, Py_ssize_t purchases, Rule rule, FoldWorkspace space)
