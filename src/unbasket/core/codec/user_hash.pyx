"""A user's history as canonical bytes, and their hash: the same for the same baskets, whatever codes stand for them.

The bytes are MessagePack: the user, then each basket, oldest first: its id, its time, whether it opens a group, and its
items in the order of their ids. The caller has the names that codes stand for.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.model.history cimport Basket, Histories, History
from unbasket.core.codec.row_writer cimport RowWriter

cdef extern from "codec/blake2b.h" nogil:
    void blake2b(const uint8_t *message, size_t bytes, const uint8_t *person, uint8_t *hash)


cdef struct Labeled:
    int64_t label
    uint32_t code


cdef int lower_first(const void *one, const void *other) noexcept nogil:
    cdef int64_t a = (<const Labeled *> one).label, b = (<const Labeled *> other).label
    return (a > b) - (a < b)


@cython.final
cdef class UserHasher:
    """Writes canonical bytes and hashes them; `person` tells these hashes from others. Holds nothing in between."""

    cdef RowWriter packer
    cdef Labeled *items
    cdef Py_ssize_t item_room
    cdef uint8_t person[16]

    def __cinit__(self, bytes person):
        assert len(person) <= 16, "at most 16 bytes"
        memcpy(self.person, PyBytes_AS_STRING(person), len(person))
        self.packer = RowWriter()

    def __dealloc__(self):
        give_back(self.items, self.item_room * sizeof(Labeled))

    def hash_users(
        self, Histories histories, list owners, list users, list items, const int64_t[::1] labels, list texts,
        uint8_t[:, ::1] hashes
    ):
        """Put the hashes of some users into the rows of `hashes`, one after the other.

        `users`, `items` and `texts` are the names of users, of items and of the baskets with a text as their id, each by
        code; `labels` are in the order of items.
        """
        cdef Py_ssize_t i, owner
        assert len(labels) >= len(items), "a label for each item"
        assert hashes.shape[0] == len(owners) and hashes.shape[1] == 32, "a row for each hash"
        for i in range(len(owners)):
            owner = owners[i]
            self._write_user(histories, owner, users[owner], items, labels, texts)
            blake2b(self.packer.bytes, self.packer.length, self.person, &hashes[i, 0])
            self.packer.clear()

    cdef int _write_user(
        self, Histories histories, Py_ssize_t user, name, list items, const int64_t[::1] labels, list texts
    ) except -1:
        cdef History history
        cdef Basket *basket
        cdef RowWriter packer = self.packer
        cdef Py_ssize_t position, place = 0
        histories.of(user, &history)
        packer.put_header(2)
        packer.put_id(name)
        packer.put_header(history.length)
        for position in range(history.length):
            basket = history.baskets + position
            packer.put_header(4)
            if basket.is_text:
                packer.put_id(texts[basket.key])
            else:
                packer.put_number(basket.key)
            if basket.time == INT64_MIN:
                packer.put_byte(0xc0)
            else:
                packer.put_number(basket.time)
            packer.put_byte(0xc3 if basket.opens_group else 0xc2)
            self._items(history.items + place, basket.size, items, labels)
            place += basket.size
        return 0

    cdef int _items(self, const uint32_t *codes, Py_ssize_t count, list items, const int64_t[::1] labels) except -1:
        """Write items in the order of their labels."""
        cdef RowWriter packer = self.packer
        cdef Py_ssize_t i
        if count > self.item_room:
            self.items = <Labeled *> grown(self.items, self.item_room, count, sizeof(Labeled))
            self.item_room = count
        for i in range(count):
            self.items[i] = Labeled(labels[codes[i]], codes[i])
        qsort(self.items, count, sizeof(Labeled), lower_first)
        packer.put_header(count)
        for i in range(count):
            packer.put_id(items[self.items[i].code])
        memset(self.items, 0, count * sizeof(Labeled))
        return 0
