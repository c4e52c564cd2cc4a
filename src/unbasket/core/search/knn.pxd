cimport cython
from libc.stdint cimport int64_t

from unbasket.core.index.index cimport Index
from unbasket.core.index.shard cimport Shard
from unbasket.core.util.topn cimport Candidate
from unbasket.core.model.fold cimport VectorEntry


cdef struct KnnQuery:
    const VectorEntry *entries
    Py_ssize_t length
    int64_t user
    Py_ssize_t k
    const int64_t *order


@cython.final
cdef class Scan:
    cdef int64_t *dot
    cdef Candidate *candidates
    cdef readonly Py_ssize_t row_room, room, found
    cdef int64_t limit

    cdef int widen(self, Index index, Py_ssize_t k) except -1 nogil
    cdef int search_shard(self, Shard shard, Py_ssize_t first_slot, const KnnQuery *query) except -1 nogil
    cdef int accumulate(self, Shard shard, const KnnQuery *query) except -1 nogil
    cdef int keep_nearest(self, const KnnQuery *query) except -1 nogil
    cdef int take(self, Scan other, const KnnQuery *query) except -1 nogil
    cdef int forget(self) except -1 nogil


@cython.final
cdef class NearestNeighbors:
    cdef readonly Scan scan
    cdef readonly list helping
    cdef KnnQuery query
    cdef long turn

    cdef int find(self, Index index, const KnnQuery *query, helpers) except -1
    cdef int find_alone(self, Index index, const KnnQuery *query) except -1 nogil
    cdef int search_shards(self, Index index, Scan scan) except -1 nogil
