cimport cython
from libc.stdint cimport int32_t, uint32_t


cdef struct Level:
    double value
    int32_t last


@cython.final
cdef class FoldWorkspace:
    cdef Level *levels
    cdef uint32_t *touched
    cdef readonly Py_ssize_t room, count, groups

    cdef int widen(self, Py_ssize_t items) except -1 nogil
    cdef int clean(self) except -1 nogil
