cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport VectorEntry


cdef struct HubSum:
    int64_t total  # of the item's weights over all hubs
    uint32_t item  # code


@cython.final
cdef class Hubs:
    cdef Py_ssize_t size  # hubs at most
    cdef public Py_ssize_t hub_count  # hubs now; writable for tests of verification
    cdef Py_ssize_t hub_room  # length of `slots`
    cdef uint32_t *slots  # of the hubs
    cdef public Py_ssize_t entry_count  # entries of their vectors; writable for tests of verification
    cdef Py_ssize_t item_room  # length of the arrays by item
    cdef int64_t *sums  # by item: total weight over all hubs
    cdef HubSum *heap  # items with a sum; each sum is at most that at (position - 1) // 2
    cdef readonly Py_ssize_t item_count  # length of the heap
    cdef uint32_t *heap_position  # by item: position in the heap plus 1, or 0
    cdef JaggedArray unsettled  # one row: items of vectors that were subtracted, until `settle`

    cdef int admit(self, Py_ssize_t items) except -1 nogil
    cdef Py_ssize_t add(self, Py_ssize_t slot) except -1 nogil
    cdef int remove(self, Py_ssize_t number) except -1 nogil
    cdef int add_vector(self, const VectorEntry *vector, Py_ssize_t length, uint32_t scale) except -1 nogil
    cdef int subtract_vector(self, const VectorEntry *vector, Py_ssize_t length, uint32_t scale) except -1 nogil
    cdef int settle(self) except -1 nogil
    cdef void _settle(self, uint32_t item) noexcept nogil
    cdef void _sift(self, Py_ssize_t position, HubSum entry) noexcept nogil
    cdef void _remove_item(self, uint32_t item) noexcept nogil
