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
    cdef Vector vector
    cdef int64_t user
    cdef const uint32_t[::1] banned, allowed
    cdef Py_ssize_t n
    cdef TopN best


@cython.final
cdef class QueryBatch:
    cdef Index index
    cdef list questions
    cdef void **table
    cdef Py_ssize_t count, k
    cdef double alpha
    cdef GrowableArray people, goods
    cdef long turn

    cdef KnnQuery query(self, Query question) noexcept nogil
    cdef bint expects(self, Query question) except -1 nogil


@cython.final
cdef class SearchWorkspace:
    cdef readonly NearestNeighbors nearest
    cdef readonly Scorer ranking
    cdef readonly list helping
    cdef public object helpers

    cdef list _helping_with(self, QueryBatch asked)
    cdef int _answer_alone(self, QueryBatch asked, Query question) except -1 nogil
    cdef int _answer_with_help(self, QueryBatch asked, Query question) except -1
    cdef int _rank(self, QueryBatch asked, Query question, const KnnQuery *query) except -1 nogil
