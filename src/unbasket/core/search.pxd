cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.index cimport Index
from unbasket.core.select cimport Candidate
from unbasket.core.vector cimport Entry


cdef struct Query:
    const Entry *entries
    Py_ssize_t length
    int64_t user
    Py_ssize_t k
    const int64_t *order


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
    cdef int64_t *dot
    cdef Candidate *candidates
    cdef int64_t *sums
    cdef uint32_t *seen
    cdef Best best
    cdef readonly Py_ssize_t user_room, item_room, found, seen_count

    cdef int widen(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int find_nearest(self, Index index, const Query *query) except -1 nogil
    cdef int accumulate(self, Index index, const Query *query) except -1 nogil
    cdef int forget_candidates(self) except -1 nogil
    cdef bint use_crowd(self, Index index) noexcept nogil
    cdef int sum_neighbors(self, Index index, bint crowd) except -1 nogil
    cdef int add(self, const Entry *entries, Py_ssize_t length, int sign) except -1 nogil
    cdef int rank_items(
        self, Index index, const Query *query, double alpha, const uint32_t[::1] banned
    ) except -1 nogil
    cdef int offer_all(self, Index index, const Query *query, const Mixture *mixture) except -1 nogil
    cdef int offer_crowd(self, Index index, double share) except -1 nogil
    cdef int wipe_sums(self, const Query *query, const uint32_t[::1] banned) except -1 nogil
    cdef int make_best(self, Py_ssize_t n, const int64_t *order) except -1 nogil
    cdef list take_best(self)
