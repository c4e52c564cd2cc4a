cimport cython
from libc.stdint cimport int32_t, uint32_t

from unbasket.core.rows cimport Rows
from unbasket.core.space cimport FoldSpace


cdef struct Mark:
    Py_ssize_t older
    Py_ssize_t baskets
    Py_ssize_t items
    Py_ssize_t groups


cdef struct SavedLevel:
    double value
    int32_t last
    uint32_t item


@cython.final
cdef class Marks:
    cdef int32_t *newest
    cdef readonly Py_ssize_t user_room
    cdef Mark *table
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t unused
    cdef readonly Rows levels

    cdef int admit(self, Py_ssize_t users) except -1 nogil
    cdef int drop_from(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int thin(self, Py_ssize_t user, Py_ssize_t groups, Py_ssize_t stride) except -1 nogil
    cdef int save(self, Py_ssize_t user, const Mark *state, FoldSpace space) except -1 nogil
    cdef int restore(self, Py_ssize_t mark, FoldSpace space) except -1 nogil
    cdef Py_ssize_t _claim(self) except -1 nogil
    cdef int _release(self, Py_ssize_t mark) except -1 nogil


cpdef bint worth_keeping(Py_ssize_t group, Py_ssize_t groups, Py_ssize_t stride) noexcept nogil
