"""The hashes of a user's id and history, over canonical bytes: equal for equal baskets, whatever codes they have.

The bytes are MessagePack: the user, then each basket, oldest first: its id, its time, whether it opens a group, and its
items sorted by id.
"""

cimport cython
from cpython.buffer cimport PyBUF_READ
from cpython.bytes cimport PyBytes_AS_STRING
from cpython.memoryview cimport PyMemoryView_FromMemory
from libc.stdint cimport int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from hashlib import blake2b

from unbasket.core.codec.row_writer cimport RowWriter
from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.model.history cimport Basket, Histories, History

cdef extern from "codec/blake2s.h" nogil:
    void blake2s_of(uint8_t *result, const uint8_t *data, size_t length, const char *person)

cdef const char *ID = "ub-id\0\0\0"


cdef struct Labeled:
    int64_t label  # sorts like the item's id
    uint32_t code  # of the item


cdef int by_label(const void *one, const void *other) noexcept nogil:
    cdef int64_t a = (<const Labeled *> one).label, b = (<const Labeled *> other).label
    return (a > b) - (a < b)


@cython.final
cdef class UserHasher:
    """BLAKE2b over canonical bytes; `person` keeps these hashes apart from others. It holds no data between calls."""

    cdef RowWriter writer  # the canonical bytes
    cdef Labeled *items  # of the basket that is written, to be sorted
    cdef Py_ssize_t capacity  # of `items`
    cdef bytes person  # the personalization, at most 16 bytes

    def __cinit__(self, bytes person):
        self.person, self.writer = person, RowWriter()

    def __dealloc__(self):
        give_back(self.items, self.capacity * sizeof(Labeled))

    def hash_users(
        self, Histories histories, list owners, list users, list items, const int64_t[::1] labels, list baskets,
        uint8_t[:, ::1] id_hashes, uint8_t[:, ::1] hashes
    ):
        """Write the hashes of each owner's id and history into the rows of the two arrays at the same position.

        `users`, `items` and `baskets` are ids by code; `baskets` is None if the keys of baskets are their ids. `labels`
        sort like the ids of items.
        """
        cdef Py_ssize_t i, owner
        assert len(labels) >= len(items), "a label for each item"
        assert hashes.shape[0] == id_hashes.shape[0] == len(owners), "a row for each hash"
        assert hashes.shape[1] == id_hashes.shape[1] == 32, "room for each hash"
        for i in range(len(owners)):
            owner = owners[i]
            self._hash_id(users[owner], &id_hashes[i, 0])
            self._put_user(histories, owner, users[owner], items, labels, baskets)
            message = PyMemoryView_FromMemory(<char *> self.writer.bytes, self.writer.length, PyBUF_READ)  # no copy
            digest = blake2b(message, digest_size=32, person=self.person).digest()
            memcpy(&hashes[i, 0], PyBytes_AS_STRING(digest), 32)
            self.writer.clear()

    def hash_id(self, name, uint8_t[::1] result):
        """Write the BLAKE2s hash of an id as text, which says where the user is in the tree: the same for 17 and "17"."""
        self._hash_id(name, &result[0])

    cdef int _hash_id(self, name, uint8_t *result) except -1:
        cdef bytes text = str(name).encode()
        blake2s_of(result, <const uint8_t *> PyBytes_AS_STRING(text), len(text), ID)

    cdef int _put_user(
        self, Histories histories, Py_ssize_t user, name, list items, const int64_t[::1] labels, list baskets
    ) except -1:
        cdef History history
        cdef Basket *basket
        cdef RowWriter writer = self.writer
        cdef Py_ssize_t i, start = 0
        histories.of(user, &history)
        writer.put_header(2)
        writer.put_id(name)
        writer.put_header(history.length)
        for i in range(history.length):
            basket = history.baskets + i
            writer.put_header(4)
            if baskets is None:
                writer.put_number(basket.key)
            else:
                writer.put_id(baskets[basket.key])
            writer.put_time(basket.time)
            writer.put_bool(basket.opens_group)
            self._put_items(history.items + start, basket.size, items, labels)
            start += basket.size

    cdef int _put_items(self, const uint32_t *codes, Py_ssize_t count, list items, const int64_t[::1] labels) except -1:
        cdef RowWriter writer = self.writer
        cdef Py_ssize_t i
        if count > self.capacity:
            self.items = <Labeled *> grown(self.items, self.capacity, count, sizeof(Labeled))
            self.capacity = count
        for i in range(count):
            self.items[i] = Labeled(labels[codes[i]], codes[i])
        qsort(self.items, count, sizeof(Labeled), by_label)
        writer.put_header(count)
        for i in range(count):
            writer.put_id(items[self.items[i].code])
        memset(self.items, 0, count * sizeof(Labeled))
