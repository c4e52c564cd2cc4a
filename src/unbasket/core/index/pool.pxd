cimport cython
from libc.stdint cimport uint32_t, uint64_t


@cython.final
cdef class Pool:
    cdef readonly Py_ssize_t size, count, user_room
    cdef object _precedes
    cdef uint64_t *lots
    cdef uint32_t *places
    cdef uint32_t *line

    cdef int admit(self, Py_ssize_t users) except -1 nogil
    cdef bint holds(self, Py_ssize_t user) except -1 nogil
    cdef Py_ssize_t add(self, uint32_t user, uint64_t lot) except -2
    cdef Py_ssize_t remove(self, uint32_t user) except -2
    cdef bint is_before(self, uint32_t user, uint32_t other) except -1
    cdef bint _belongs_above(self, Py_ssize_t place, Py_ssize_t other) except -1
    cdef int _put(self, Py_ssize_t place, uint32_t user) except -1
    cdef int _wipe_last(self) except -1
    cdef int _mend(self, Py_ssize_t place) except -1
    cdef Py_ssize_t _rise(self, Py_ssize_t place) except -1
    cdef int _sink(self, Py_ssize_t place) except -1
    cdef int _swap(self, Py_ssize_t place, Py_ssize_t other) except -1
