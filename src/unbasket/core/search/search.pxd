cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.util.topn cimport TopN
from unbasket.core.memory.growable cimport GrowableArray
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport NearestNeighbors, KnnQuery
from unbasket.core.search.scoring cimport Scorer
from unbasket.core.model.fold cimport Vector


@cython.final
cdef class Query:
    cdef Vector vector  # fixed point
    cdef Vector probe  # the part of the vector that neighbors are found by
    cdef Py_ssize_t least  # items of fewer neighbors count as items of none
    cdef int64_t user  # left out of the neighbors, or -1
    cdef const uint32_t[::1] banned, allowed  # item codes, or None
    cdef Py_ssize_t n  # number of items
    cdef TopN best  # the result


@cython.final
cdef class QueryBatch:
    cdef Index index  # of all users
    cdef list queries  # keeps `table` alive
    cdef void **table  # the items of `queries`
    cdef Py_ssize_t count  # number of queries
    cdef Py_ssize_t k  # number of neighbors
    cdef double alpha  # weight of a user's own vector
    cdef GrowableArray user_order, item_order  # rank by code, for ties
    cdef long next_query  # atomic counter of the queries that are taken

    cdef KnnQuery knn_query(self, Query query, Vector vector) noexcept nogil
    cdef bint reserve(self, Query query) except -1 nogil


@cython.final
cdef class SearchWorkspace:
    cdef NearestNeighbors nearest  # search for neighbors
    cdef Scorer scorer  # ranking of items
    cdef list thread_workspaces  # one per thread of the pool
    cdef public object thread_pool  # whose threads share the work, or None

    cdef list _workspaces_for(self, QueryBatch batch)
    cdef int _answer_serial(self, QueryBatch batch, Query query) except -1 nogil
    cdef int _answer_parallel(self, QueryBatch batch, Query query) except -1
    cdef int _rank(self, QueryBatch batch, Query query, const KnnQuery *own) except -1 nogil
