cimport cython
from libc.math cimport rint
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.workspace cimport FoldWorkspace
from unbasket.core.model.vector cimport VectorEntry

cdef enum:
    ONE_BITS = 24

cdef extern from "search/simd_threshold.h":
    enum:
        BLOCK_ROWS  # rows that a search looks at together


cdef struct Posting:
    uint32_t row
    uint32_t weight


@cython.final
cdef class Shard:
    cdef readonly JaggedArray vectors, postings
    cdef int64_t *norm
    cdef uint32_t *owner
    cdef uint32_t *member
    cdef readonly Py_ssize_t size, end

    cdef int open(self, Py_ssize_t row, uint32_t owner) except -1 nogil
    cdef int64_t put(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil
    cdef int add(self, Py_ssize_t row, uint32_t item, uint32_t weight) except -1 nogil
    cdef int expect(self, const int64_t *having, Py_ssize_t items) except -1 nogil
    cdef int64_t _change_entries(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil
    cdef int64_t _add_entries(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil
    cdef int _remove(self, Py_ssize_t row, Py_ssize_t i) except -1 nogil

    cdef inline VectorEntry *vector(self, Py_ssize_t row) except NULL nogil:
        """The entries of a vector. Valid until something is added to any."""
        return <VectorEntry *> self.vectors.first(row)


cdef inline int64_t fixed_point(double value) noexcept nogil:
    """A weight as a multiple of 2^-24."""
    return <int64_t> rint(value * (1 << ONE_BITS))
