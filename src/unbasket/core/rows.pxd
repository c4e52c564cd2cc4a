cimport cython

from unbasket.core.buffers cimport check


cdef struct Row:
    Py_ssize_t start
    Py_ssize_t length
    Py_ssize_t capacity


@cython.final
cdef class Rows:
    cdef Row *rows
    cdef char *data
    cdef readonly Py_ssize_t count, size, used
    cdef readonly size_t width

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil
    cpdef int make_room(self, Py_ssize_t records) except -1 nogil
    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil
    cpdef Py_ssize_t append(self, Py_ssize_t row) except -1 nogil
    cpdef int pop(self, Py_ssize_t row) except -1 nogil
    cpdef Py_ssize_t open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil
    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil
    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil
    cdef int _lay_out(self, Py_ssize_t size) except -1 nogil
    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil

    cdef inline Py_ssize_t length(self, Py_ssize_t row) except -1 nogil:
        """How many records a row has."""
        check(0 <= row < self.count, "no such row")
        return self.rows[row].length

    cdef inline void *first(self, Py_ssize_t row) except NULL nogil:
        """The first record of a row; the others follow. Valid until something is added to the pool."""
        check(0 <= row < self.count, "no such row")
        check(0 <= self.rows[row].start, "a row outside the pool")
        check(self.rows[row].start + self.rows[row].length <= self.size, "a row outside the pool")
        return self.data + self.rows[row].start * self.width

    cdef inline void *at(self, Py_ssize_t place) except NULL nogil:
        """The record at a place of the pool. Valid until something is added to the pool."""
        check(0 <= place < self.size, "a record outside the pool")
        return self.data + place * self.width
