cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.memory.jagged cimport JaggedArray


cdef struct Basket:
    int64_t key  # of the basket's id: a number itself, or the code of a text
    int64_t time  # INT64_MIN if untimed
    uint32_t size  # items
    uint8_t opens_group  # under varying groups


cdef struct History:
    Basket *baskets  # oldest first
    Py_ssize_t length  # baskets
    uint32_t *items  # of all baskets, in order


cdef struct Splice:
    Py_ssize_t user  # code
    Py_ssize_t position  # of the first record
    Py_ssize_t removed  # records
    Py_ssize_t inserted  # records


cdef struct Insertion:
    Py_ssize_t position  # where the basket goes
    bint tied  # whether a basket of the same time is before the position


cdef struct Removal:
    uint32_t item  # code
    Py_ssize_t first  # position of the first basket to look at
    Py_ssize_t end  # and behind the last
    Py_ssize_t removed  # result: baskets that held the item
    Py_ssize_t oldest  # result: position of the oldest of these


@cython.final
cdef class Histories:
    cdef readonly JaggedArray baskets  # by user: `Basket` records
    cdef readonly JaggedArray items  # by user: item codes
    cdef readonly JaggedArray splices  # one row: changes since `take_changes`
    cdef int64_t *popularity  # by item: baskets that hold it
    cdef readonly Py_ssize_t item_room  # length of `popularity`
    cdef public bint notes_changes  # whether splices are recorded

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil
    cdef int of(self, Py_ssize_t user, History *history) except -1 nogil
    cpdef Py_ssize_t position_of(self, Py_ssize_t user, int64_t key) except -2 nogil
    cdef int find_insertion(self, Py_ssize_t user, int64_t time, Insertion *found) except -1 nogil
    cdef Py_ssize_t offset(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int insert(
        self, Py_ssize_t user, Py_ssize_t position, const Basket *new, const uint32_t *items, Py_ssize_t group_size
    ) except -1 nogil
    cdef int remove(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil
    cdef int replace(self, Py_ssize_t user, Py_ssize_t position, const uint32_t *items, Py_ssize_t size) except -1 nogil
    cdef bint has_item(self, Py_ssize_t user, const Removal *removal) except -1 nogil
    cdef int remove_item(self, Py_ssize_t user, Removal *removal, JaggedArray removed) except -1 nogil
    cdef int load(
        self, Py_ssize_t user, const Basket *baskets, Py_ssize_t count, const uint32_t *items, Py_ssize_t size
    ) except -1 nogil
    cdef int clear(self, Py_ssize_t user) except -1 nogil
    cdef bint _group_is_full(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t group_size) except -1 nogil
    cdef int _note(self, Py_ssize_t user, Py_ssize_t position, Py_ssize_t removed, Py_ssize_t inserted) except -1 nogil
    cdef int _add_items(
        self, Py_ssize_t user, Py_ssize_t first, const uint32_t *items, Py_ssize_t count
    ) except -1 nogil
    cdef int _drop_items(self, Py_ssize_t user, Py_ssize_t first, Py_ssize_t count) except -1 nogil
