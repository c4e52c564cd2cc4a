cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.best cimport Best
from unbasket.core.column cimport Column
from unbasket.core.index cimport Index
from unbasket.core.nearest cimport Nearest, Query
from unbasket.core.ranking cimport Ranking
from unbasket.core.vector cimport Vector


@cython.final
cdef class Question:
    cdef Vector vector
    cdef int64_t user
    cdef const uint32_t[::1] banned, allowed
    cdef Py_ssize_t n
    cdef Best best


@cython.final
cdef class Round:
    cdef Index index
    cdef list questions
    cdef void **table
    cdef Py_ssize_t count, k
    cdef double alpha
    cdef Column people, goods
    cdef long turn

    cdef Query query(self, Question question) noexcept nogil
    cdef bint expects(self, Question question) except -1 nogil


@cython.final
cdef class SearchSpace:
    cdef readonly Nearest nearest
    cdef readonly Ranking ranking
    cdef readonly list helping
    cdef public object helpers

    cdef list _helping_with(self, Round asked)
    cdef int _answer_alone(self, Round asked, Question question) except -1 nogil
    cdef int _answer_with_help(self, Round asked, Question question) except -1
    cdef int _rank(self, Round asked, Question question, const Query *query) except -1 nogil
