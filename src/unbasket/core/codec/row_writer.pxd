cimport cython
from libc.stdint cimport int64_t, uint8_t, uint64_t


@cython.final
cdef class RowWriter:
    cdef uint8_t *bytes  # written so far, and room for more
    cdef Py_ssize_t length  # bytes written
    cdef Py_ssize_t capacity  # bytes allocated

    cdef int clear(self) except -1
    cdef int put_id(self, name) except -1
    cdef int put_number(self, int64_t number) except -1
    cdef int put_time(self, int64_t time) except -1
    cdef int put_bool(self, bint value) except -1
    cdef int put_header(self, Py_ssize_t count) except -1
    cdef int put_byte(self, uint8_t byte) except -1
    cdef int _put_big_endian(self, uint8_t kind, uint64_t value, int log) except -1
    cdef int _make_room(self, Py_ssize_t size) except -1
