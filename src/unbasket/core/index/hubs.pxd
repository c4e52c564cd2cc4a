cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.model.fold cimport VectorEntry


cdef struct Listed:
    int64_t total
    uint32_t item


@cython.final
cdef class Hubs:
    cdef readonly Py_ssize_t size, count, member_room, item_room
    cdef public Py_ssize_t member_count, records  # tests do damage to these, which must be found
    cdef uint32_t *members
    cdef int64_t *sums
    cdef uint32_t *place
    cdef Listed *heap

    cdef int admit(self, Py_ssize_t items) except -1 nogil
    cdef Py_ssize_t enter(self, Py_ssize_t slot) except -1 nogil
    cdef int leave(self, Py_ssize_t number) except -1 nogil
    cdef int join(self, const VectorEntry *vector, Py_ssize_t length, int sign) except -1 nogil
    cdef void _sift(self, Py_ssize_t place, Listed listed) noexcept nogil
    cdef void _unlist(self, uint32_t item) noexcept nogil
