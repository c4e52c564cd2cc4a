cimport cython
from libc.stdint cimport uint32_t

from unbasket.core.memory.slab cimport SlabAllocator
from unbasket.core.memory.buffers cimport check


cdef struct Row:
    void *first
    uint32_t length
    uint32_t capacity


@cython.final
cdef class JaggedArray:
    cdef Row *rows
    cdef readonly Py_ssize_t count
    cdef readonly size_t width
    cdef readonly SlabAllocator blocks

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil
    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil
    cpdef int trim(self, Py_ssize_t row) except -1 nogil
    cpdef int pop(self, Py_ssize_t row) except -1 nogil
    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil
    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil
    cdef void *append(self, Py_ssize_t row) except NULL nogil
    cdef void *open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except NULL nogil
    cpdef Py_ssize_t residue(self) noexcept nogil
    cdef size_t _room(self, const Row *row) noexcept nogil
    cdef int _move(self, Row *row, Py_ssize_t capacity) except -1 nogil
    cdef int _give_back(self, Row *row) except -1 nogil
    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil

    cdef inline Py_ssize_t length(self, Py_ssize_t row) except -1 nogil:
        """How many records a row has."""
        check(0 <= row < self.count, "no such row")
        return self.rows[row].length

    cdef inline void *first(self, Py_ssize_t row) except NULL nogil:
        """The first record of a row; the others follow. Valid until the row changes its length.

        Removing its last record with `pop` leaves the others where they are.
        """
        check(0 <= row < self.count, "no such row")
        cdef Row *place = &self.rows[row]
        return place.first if place.first != NULL else place  # an empty row is nowhere, but NULL would be an error
