cimport cython
from libc.stdint cimport uint32_t

from unbasket.core.memory.buffers cimport check
from unbasket.core.memory.slab cimport SlabAllocator


cdef struct Row:
    void *first  # its first record; NULL if it has no memory
    uint32_t length  # records
    uint32_t capacity  # records that fit


@cython.final
cdef class JaggedArray:
    cdef Row *rows  # the headers of all rows
    cdef readonly Py_ssize_t count  # rows
    cdef readonly size_t width  # bytes of a record
    cdef readonly SlabAllocator blocks  # the memory of short rows

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil
    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil
    cpdef int trim(self, Py_ssize_t row) except -1 nogil
    cpdef int pop(self, Py_ssize_t row) except -1 nogil
    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil
    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil
    cdef void *append(self, Py_ssize_t row) except NULL nogil
    cdef void *open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except NULL nogil
    cpdef Py_ssize_t residue(self) noexcept nogil
    cdef size_t _bytes(self, const Row *row) noexcept nogil
    cdef int _move(self, Row *row, Py_ssize_t capacity) except -1 nogil
    cdef int _give_back(self, Row *row) except -1 nogil
    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil

    cdef inline Py_ssize_t length(self, Py_ssize_t row) except -1 nogil:
        check(0 <= row < self.count, "no such row")
        return self.rows[row].length

    cdef inline void *first(self, Py_ssize_t row) except NULL nogil:
        """Return the first record of a row; the others follow.

        The pointer is valid until the length of the row changes; `pop` leaves the other records in place.
        """
        check(0 <= row < self.count, "no such row")
        cdef Row *header = &self.rows[row]
        return header.first if header.first != NULL else header  # NULL would be an error
