cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray


cdef struct Basket:
    int64_t key
    int64_t time
    uint32_t size
    uint8_t is_text
    uint8_t opens_group


cdef struct History:
    Basket *baskets
    Py_ssize_t length
    uint32_t *items


cdef struct Splice:
    Py_ssize_t user
    Py_ssize_t position
    Py_ssize_t removed
    Py_ssize_t inserted


cdef struct Slot:
    Py_ssize_t position
    bint tied


@cython.final
cdef class Histories:
    cdef readonly JaggedArray baskets, items, splices
    cdef int64_t *popularity
    cdef readonly Py_ssize_t item_room
    cdef public bint notes_changes

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int of(self, Py_ssize_t user, History *history) except -1 nogil
    cdef Py_ssize_t position_of(self, Py_ssize_t user, int64_t key, bint is_text) except -2 nogil
    cdef int find_slot(self, Py_ssize_t user, int64_t time, Slot *slot) except -1 nogil
    cdef Py_ssize_t offset(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int insert(
        self, Py_ssize_t user, Py_ssize_t position, const Basket *new, const uint32_t *items, Py_ssize_t group_size
    ) except -1 nogil
    cdef int remove(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int replace(
        self, Py_ssize_t user, Py_ssize_t position, const uint32_t *items, Py_ssize_t size
    ) except -1 nogil
    cdef int remove_item(self, Py_ssize_t user, Removal *removal, JaggedArray gone) except -1 nogil
    cdef int load(
        self, Py_ssize_t user, const Basket *baskets, Py_ssize_t count, const uint32_t *items, Py_ssize_t size
    ) except -1 nogil
    cdef int clear(self, Py_ssize_t user) except -1 nogil
    cdef bint _group_is_full(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t group_size) except -1 nogil
    cdef int _note(
        self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted
    ) except -1 nogil
    cdef int _add_items(
        self, Py_ssize_t user, Py_ssize_t first, const uint32_t *items, Py_ssize_t count
    ) except -1 nogil
    cdef int _drop_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil


cdef struct Removal:
    uint32_t item
    Py_ssize_t first
    Py_ssize_t end
    Py_ssize_t removed
    Py_ssize_t oldest
