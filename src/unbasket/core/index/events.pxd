cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.model.fold cimport Rule
from unbasket.core.model.history cimport Basket, Histories
from unbasket.core.index.index cimport Index
from unbasket.core.model.checkpoints cimport Checkpoints
from unbasket.core.index.pool cimport Pool
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.workspace cimport FoldWorkspace


@cython.final
cdef class Live:
    cdef readonly Histories histories
    cdef readonly Checkpoints checkpoints
    cdef readonly Index index
    cdef readonly FoldWorkspace space
    cdef readonly Rule rule
    cdef readonly Pool pool
    cdef readonly JaggedArray items, gone

    cdef uint32_t *put(self, list codes) except NULL
    cdef bint in_pool(self, Py_ssize_t user) except -1 nogil
    cdef int replay(self, Py_ssize_t user) except -1 nogil
    cdef int refresh(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int note_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil
    cdef int _insert(self, Py_ssize_t user, Py_ssize_t position, const Basket *basket) except -1 nogil
    cdef int _edit(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef Py_ssize_t _forget_basket(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int _forget_user(self, Py_ssize_t user) except -1 nogil
    cdef list _vanished(self)
    cdef list _take_gone(self)
