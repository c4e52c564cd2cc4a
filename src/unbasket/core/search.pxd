cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.index cimport Index
from unbasket.core.nearest cimport Nearest, Query, Scan
from unbasket.core.vector cimport Entry


cdef struct Best:
    uint32_t *items
    double *scores
    Py_ssize_t count
    Py_ssize_t room
    const int64_t *order


cdef struct Mixture:
    double alpha
    double share
    bint crowd


@cython.final
cdef class SearchSpace:
    cdef readonly Nearest nearest
    cdef public object helpers
    cdef uint8_t *is_near
    cdef int64_t *sums
    cdef uint32_t *seen
    cdef uint32_t *own
    cdef Best best
    cdef readonly Py_ssize_t member_room, item_room, seen_count

    cdef int widen(self, Index index) except -1 nogil
    cdef int widen_items(self, Py_ssize_t items) except -1 nogil
    cdef bint use_crowd(self, Index index) except -1 nogil
    cdef int sum_neighbors(self, Index index, bint crowd) except -1 nogil
    cdef int add(self, const Entry *entries, Py_ssize_t length, int sign) except -1 nogil
    cdef int rank_items(
        self, Index index, const Query *query, double alpha, const uint32_t[::1] banned, const uint32_t[::1] allowed
    ) except -1 nogil
    cdef int offer_all(self, Index index, const Query *query, const Mixture *mixture) except -1 nogil
    cdef int offer_some(
        self, Index index, const Query *query, const Mixture *mixture, const uint32_t[::1] allowed
    ) except -1 nogil
    cdef int offer_crowd(self, Index index, double share, Py_ssize_t place) except -1 nogil
    cdef int wipe_sums(self, const Query *query, const uint32_t[::1] banned) except -1 nogil
    cdef int make_best(self, Py_ssize_t n, const int64_t *order) except -1 nogil
    cdef list take_best(self)
