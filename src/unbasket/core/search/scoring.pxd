cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.util.topn cimport TopN
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport KnnQuery, Scan
from unbasket.core.model.fold cimport VectorEntry


cdef struct Mixture:
    double alpha  # weight of the query's own vector
    double share  # weight of each neighbor's vector


cdef struct ItemCandidate:
    uint32_t item  # code
    double own  # weight in the own part of the score


@cython.final
cdef class Scorer:
    cdef int64_t *sums  # by item: sum over the neighbors plus BIAS, 0 if not seen, or BANNED
    cdef uint32_t *seen  # list of the items that have a sum
    cdef double *own  # by item: own part of the score, while allowed items are pushed; neighbors, while counted
    cdef ItemCandidate *candidates  # items that may be among the n best
    cdef uint8_t *is_candidate  # by item
    cdef uint8_t *is_near  # by hub: whether it is a neighbor
    cdef uint32_t *absent  # list of the slots of hubs that are not neighbors
    cdef TopN best  # the n best items
    cdef readonly Py_ssize_t member_room, item_room  # capacity in hubs and in items
    cdef readonly Py_ssize_t seen_count, candidate_count, absent_count  # lengths of the lists

    cdef int widen(self, Py_ssize_t items, Py_ssize_t members) except -1 nogil
    cdef bint uses_hubs(self, Index index, Scan near) except -1 nogil
    cdef int rank(
        self, Index index, Scan near, const KnnQuery *query, double alpha, const uint32_t[::1] banned,
        const uint32_t[::1] allowed, Py_ssize_t least
    ) except -1 nogil
    cdef int begin(self, const KnnQuery *query) except -1 nogil
    cdef int add_neighbors(self, Index index, Scan near, bint hubs) except -1 nogil
    cdef int drop_rare(self, Index index, Scan near, Py_ssize_t least) except -1 nogil
    cdef int add_vector(self, const VectorEntry *entries, Py_ssize_t length, uint32_t scale) except -1 nogil
    cdef void push_candidate(
        self, const Mixture *mixture, uint32_t item, double own, int64_t most, const int64_t *hubs
    ) noexcept nogil
    cdef int push_seen(
        self, const KnnQuery *query, const Mixture *mixture, int64_t most, const int64_t *hubs
    ) except -1 nogil
    cdef int push_allowed(
        self, const KnnQuery *query, const Mixture *mixture, const int64_t *hubs, const uint32_t[::1] items
    ) except -1 nogil
    cdef int resolve_bounds(self, Index index, const Mixture *mixture, bint hubs_alone) except -1 nogil
    cdef void keep_candidate(self, ItemCandidate candidate, int64_t total) noexcept nogil
    cdef int keep_hub_items(self, Index index, double share, double threshold, Py_ssize_t position) except -1 nogil
    cdef int subtract_absent(self, Index index) except -1 nogil
    cdef int64_t sum_of(self, uint32_t item) noexcept nogil
    cdef int finish(self, const uint32_t[::1] banned) except -1 nogil
