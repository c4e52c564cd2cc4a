cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport Rule
from unbasket.core.model.history cimport Basket, Histories


@cython.final
cdef class Baskets:
    cdef const int64_t[::1] keys, times, sizes  # of all users, one after the other
    cdef const uint8_t[::1] opens

    cdef int copy(self, Py_ssize_t first, Py_ssize_t count, Basket *records) noexcept nogil


cdef struct Batch:
    Py_ssize_t count  # users
    const int64_t *users  # codes
    const int64_t *basket_ends  # by user: where the user's records end
    const int64_t *item_ends  # by user: where the user's purchases end
    const uint32_t *items  # codes
    const uint32_t *purchases  # positions in `items`


cdef class EventApplier:
    cdef readonly Histories histories  # that events change
    cdef readonly Rule rule  # that groups baskets
    cdef readonly JaggedArray items  # one row: items of the present event
    cdef readonly JaggedArray removed  # one row: baskets that the present event removed

    cdef int changing(self, Py_ssize_t user) except -1 nogil
    cdef int changed(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int reserve(self, const Batch *batch) except -1
    cdef int loaded(self, const Batch *batch) except -1 nogil
    cdef uint32_t *_set_items(self, list codes) except NULL
    cdef int _note_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil
    cdef int _insert(self, Py_ssize_t user, Py_ssize_t position, Basket basket, list items) except -1
    cdef bint _insert_new(
        self, Py_ssize_t user, Basket basket, const uint32_t *items, Py_ssize_t longest, Py_ssize_t *oldest
    ) except -1 nogil
    cdef Py_ssize_t _note_basket(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int _load(self, Baskets baskets, const Batch *batch, uint32_t *codes, Basket *records) except -1 nogil
    cdef list _take_orphaned_items(self)
    cdef list _take_removed(self)
