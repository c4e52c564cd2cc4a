cimport cython
from libc.stdint cimport int64_t

from unbasket.core.index.index cimport Index
from unbasket.core.index.shard cimport Shard
from unbasket.core.util.topn cimport Candidate
from unbasket.core.model.fold cimport VectorEntry

cdef extern from *:
    """
    /* Prefetch the start of an array; the hardware prefetcher fetches the rest. A macro, since compilers drop calls of
       a function that only prefetches. */
    #define prefetch(memory, bytes) \\
        for (size_t i_ = 0; i_ < (size_t)(bytes) && i_ < 1024; i_ += 64) \\
            __builtin_prefetch((const char *)(memory) + i_)
    """
    void prefetch(const void *memory, size_t bytes) nogil


cdef struct KnnQuery:
    const VectorEntry *entries  # the vector
    const double *own  # by entry: its weight in the user's own part of a score
    Py_ssize_t length  # number of entries
    int64_t user  # left out of the neighbors, or -1
    Py_ssize_t k  # number of neighbors
    const int64_t *order  # rank by user code, for ties


@cython.final
cdef class Scan:
    cdef int64_t *dot  # dot product with the query by row of the current shard
    cdef Candidate *candidates  # the nearest users so far
    cdef readonly Py_ssize_t row_room  # capacity of `dot`
    cdef readonly Py_ssize_t room  # capacity of `candidates`
    cdef readonly Py_ssize_t found  # number of candidates
    cdef int64_t limit  # the k nearest users have a key below this

    cdef int widen(self, Index index, Py_ssize_t k) except -1 nogil
    cdef int search_shard(self, Shard shard, Py_ssize_t first_slot, const KnnQuery *query) except -1 nogil
    cdef int accumulate(self, Shard shard, const KnnQuery *query) except -1 nogil
    cdef int keep_nearest(self, const KnnQuery *query) except -1 nogil
    cdef int merge(self, Scan other, const KnnQuery *query) except -1 nogil
    cdef int clear(self) except -1 nogil
    cdef Py_ssize_t residue(self) noexcept nogil


@cython.final
cdef class NearestNeighbors:
    cdef Scan scan  # of the calling thread; has the result
    cdef list thread_scans  # one per thread of the pool
    cdef KnnQuery query  # the current query
    cdef long next_shard  # atomic counter of the shards that are taken

    cdef int find(self, Index index, const KnnQuery *query, thread_pool) except -1
    cdef int find_serial(self, Index index, const KnnQuery *query) except -1 nogil
    cdef int search_shards(self, Index index, Scan scan) except -1 nogil
    cdef Py_ssize_t residue(self) except -1
