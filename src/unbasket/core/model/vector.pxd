cimport cython
from libc.stdint cimport uint32_t


cdef struct VectorEntry:
    uint32_t item
    uint32_t weight
    uint32_t place


@cython.final
cdef class Vector:
    cdef VectorEntry *entries
    cdef Py_ssize_t length, room

    @staticmethod
    cdef Vector of(Py_ssize_t room)
    cdef int add(self, uint32_t item, uint32_t weight) except -1 nogil
