cimport cython
from libc.stdint cimport int64_t

from unbasket.core.index cimport Index
from unbasket.core.part cimport Part
from unbasket.core.select cimport Candidate
from unbasket.core.vector cimport Entry


cdef struct Query:
    const Entry *entries
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
    cdef int search_part(self, Part part, Py_ssize_t first_slot, const Query *query) except -1 nogil
    cdef int accumulate(self, Part part, const Query *query) except -1 nogil
    cdef int keep_nearest(self, const Query *query) except -1 nogil
    cdef int take(self, Scan other, const Query *query) except -1 nogil
    cdef int forget(self) except -1 nogil


@cython.final
cdef class Nearest:
    cdef readonly Scan scan
    cdef readonly list helping
    cdef Query query
    cdef long turn

    cdef int find(self, Index index, const Query *query, helpers) except -1
    cdef int find_alone(self, Index index, const Query *query) except -1 nogil
    cdef int search_parts(self, Index index, Scan scan) except -1 nogil
