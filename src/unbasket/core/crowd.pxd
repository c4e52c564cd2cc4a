cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from unbasket.core.vector cimport Entry

cdef enum:
    BLOCK = 64


@cython.final
cdef class Crowd:
    cdef readonly Py_ssize_t size, count, age, user_room, item_room
    cdef public Py_ssize_t member_count, records  # tests do damage to these, which must be found
    cdef uint32_t *members
    cdef uint8_t *is_member
    cdef int64_t *sums
    cdef int32_t *place
    cdef uint32_t *items
    cdef int64_t *listed
    cdef int64_t *peaks

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int dissolve(self) except -1 nogil
    cdef int enter(self, uint32_t user) except -1 nogil
    cdef int leave(self, uint32_t user) except -1 nogil
    cdef int join(self, const Entry *vector, Py_ssize_t length, int sign) except -1 nogil
    cdef int sort(self) except -1 nogil
    cdef void _list(self, Py_ssize_t position, int64_t total) noexcept nogil
    cdef void _unlist(self, uint32_t item) noexcept nogil
