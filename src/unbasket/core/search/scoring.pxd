cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.util.topn cimport TopN
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport KnnQuery, Scan
from unbasket.core.model.fold cimport VectorEntry


cdef struct Mixture:
    double alpha
    double share


cdef struct Contender:
    uint32_t item
    uint32_t own


@cython.final
cdef class Scorer:
    cdef int64_t *sums
    cdef uint32_t *seen
    cdef uint32_t *own
    cdef Contender *contenders
    cdef uint8_t *is_contender
    cdef uint8_t *is_near
    cdef uint32_t *absent
    cdef TopN best
    cdef readonly Py_ssize_t member_room, item_room, seen_count, contender_count, absent_count

    cdef int widen(self, Py_ssize_t items, Py_ssize_t members) except -1 nogil
    cdef bint uses_hubs(self, Index index, Scan near) except -1 nogil
    cdef int rank(
        self, Index index, Scan near, const KnnQuery *query, double alpha, const uint32_t[::1] banned,
        const uint32_t[::1] allowed
    ) except -1 nogil
    cdef int begin(self, const KnnQuery *query) except -1 nogil
    cdef int add_neighbors(self, Index index, Scan near, bint hubs) except -1 nogil
    cdef int add_vector(self, const VectorEntry *entries, Py_ssize_t length) except -1 nogil
    cdef int consider_all(self, const KnnQuery *query, const Mixture *mixture, int64_t hubs) except -1 nogil
    cdef int consider_some(
        self, const KnnQuery *query, const Mixture *mixture, const int64_t *hubs, const uint32_t[::1] items
    ) except -1 nogil
    cdef int decide(self, Index index, const Mixture *mixture, bint hubs_alone) except -1 nogil
    cdef int enter_hubs(self, Index index, double share, double floor, Py_ssize_t place) except -1 nogil
    cdef int subtract_absent(self, Index index) except -1 nogil
    cdef int64_t sum_of(self, uint32_t item) noexcept nogil
    cdef void consider(self, const Mixture *mixture, uint32_t item, uint32_t own, int64_t hubs) noexcept nogil
    cdef void enter(self, Contender contender, int64_t total) noexcept nogil
    cdef int finish(self, const uint32_t[::1] banned) except -1 nogil
    cdef int rank_totals(
        self, const KnnQuery *query, double alpha, Py_ssize_t found, const uint32_t[::1] items, const int64_t[::1] totals
    ) except -1 nogil
