cimport cython
from libc.stdint cimport int32_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport Checkpoint, FoldWorkspace, Rule
from unbasket.core.model.history cimport Histories, History


cdef struct SavedLevel:
    double value  # as in `Level`
    int32_t last  # as in `Level`
    uint32_t item  # code


@cython.final
cdef class Checkpoints:
    cdef int32_t *newest  # by user: the newest checkpoint, or 0
    cdef Py_ssize_t user_room  # length of `newest`
    cdef Checkpoint *table  # all checkpoints; number 0 is the start of a history
    cdef readonly Py_ssize_t size  # length of `table`
    cdef Py_ssize_t unused  # the first unused checkpoint; others follow by `older`
    cdef readonly JaggedArray levels  # by checkpoint: the saved levels

    cdef int admit(self, Py_ssize_t users) except -1 nogil
    cdef int fold(self, Histories histories, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil
    cdef int peek(self, Histories histories, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil
    cdef int drop_from(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int thin(self, Py_ssize_t user, Py_ssize_t groups, Py_ssize_t stride) except -1 nogil
    cdef int save(self, Py_ssize_t user, const Checkpoint *state, FoldWorkspace space) except -1 nogil
    cdef int restore(self, Py_ssize_t user, FoldWorkspace space, Checkpoint *state) except -1 nogil
    cdef Py_ssize_t _claim(self) except -1 nogil
    cdef int _release(self, Py_ssize_t checkpoint) except -1 nogil


cpdef bint worth_keeping(Py_ssize_t group, Py_ssize_t groups, Py_ssize_t stride) noexcept nogil
