cimport cython
from libc.stdint cimport int32_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.workspace cimport FoldWorkspace


cdef struct Checkpoint:
    Py_ssize_t older
    Py_ssize_t baskets
    Py_ssize_t items
    Py_ssize_t groups


cdef struct SavedLevel:
    double value
    int32_t last
    uint32_t item


@cython.final
cdef class Checkpoints:
    cdef int32_t *newest
    cdef readonly Py_ssize_t user_room
    cdef Checkpoint *table
    cdef readonly Py_ssize_t size
    cdef Py_ssize_t unused
    cdef readonly JaggedArray levels

    cdef int admit(self, Py_ssize_t users) except -1 nogil
    cdef int drop_from(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int thin(self, Py_ssize_t user, Py_ssize_t groups, Py_ssize_t stride) except -1 nogil
    cdef int save(self, Py_ssize_t user, const Checkpoint *state, FoldWorkspace space) except -1 nogil
    cdef int restore(self, Py_ssize_t checkpoint, FoldWorkspace space) except -1 nogil
    cdef Py_ssize_t _claim(self) except -1 nogil
    cdef int _release(self, Py_ssize_t checkpoint) except -1 nogil


cpdef bint worth_keeping(Py_ssize_t group, Py_ssize_t groups, Py_ssize_t stride) noexcept nogil
