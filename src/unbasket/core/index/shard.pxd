cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport FoldWorkspace, Rule, VectorEntry

cdef extern from "index/simd_threshold.h":
    enum:
        BLOCK_ROWS  # rows that a search compares at once


cdef struct Posting:
    uint32_t row  # of the shard
    uint32_t weight  # fixed point


@cython.final
cdef class Shard:
    cdef readonly JaggedArray vectors  # by row: `VectorEntry` records
    cdef readonly JaggedArray postings  # by item: `Posting` records
    cdef int64_t *norm  # by row: squared norm; 0 if the row is free
    cdef uint32_t *owner  # by row: user code; of a free row, the next free slot plus 1
    cdef uint32_t *scale  # by row: of the history, fixed point; 0 if the row is free
    cdef uint32_t *hub_number  # by row: the user's 1-based index among the hubs, or 0
    cdef Py_ssize_t size  # rows
    cdef readonly Py_ssize_t end  # rows from here on have never been used

    cdef int open(self, Py_ssize_t row, uint32_t owner) except -1 nogil
    cdef int64_t put(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil
    cdef int add(self, Py_ssize_t row, uint32_t item, uint32_t value) except -1 nogil
    cdef int64_t _change_entries(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil
    cdef int64_t _add_entries(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil
    cdef int _remove(self, Py_ssize_t row, Py_ssize_t i) except -1 nogil

    cdef inline VectorEntry *vector(self, Py_ssize_t row) except NULL nogil:
        """Return the entries of a vector. Valid until an entry is added to any vector."""
        return <VectorEntry *> self.vectors.first(row)
