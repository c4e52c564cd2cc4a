"""A user's history as canonical bytes, and their hash: the same for the same baskets, whatever codes stand for them.

The bytes are MessagePack: the user, then each basket, oldest first: its id, its time, whether it opens a group, and its
items in the order of their ids. The caller has the names that codes stand for.
"""

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport qsort
from libc.string cimport memcpy, memset

from unbasket.core.buffers cimport give_back, grown
from unbasket.core.history cimport Basket, Histories, History

cdef extern from "blake2b.h" nogil:
    void blake2b(const uint8_t *message, size_t bytes, const uint8_t *person, uint8_t *hash)


cdef struct Labeled:
    int64_t label
    uint32_t code


cdef int lower_first(const void *one, const void *other) noexcept nogil:
    cdef int64_t a = (<const Labeled *> one).label, b = (<const Labeled *> other).label
    return (a > b) - (a < b)


@cython.final
cdef class Canon:
    """Writes canonical bytes and hashes them; `person` tells these hashes from others. Holds nothing in between."""

    cdef uint8_t *data
    cdef Py_ssize_t length, room
    cdef Labeled *items
    cdef Py_ssize_t item_room
    cdef uint8_t person[16]

    def __cinit__(self, bytes person):
        assert len(person) <= 16, "at most 16 bytes"
        memcpy(self.person, PyBytes_AS_STRING(person), len(person))

    def __dealloc__(self):
        give_back(self.data, self.room)
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
            blake2b(self.data, self.length, self.person, &hashes[i, 0])
            memset(self.data, 0, self.length)
            self.length = 0

    cdef int _write_user(
        self, Histories histories, Py_ssize_t user, name, list items, const int64_t[::1] labels, list texts
    ) except -1:
        cdef History history
        cdef Basket *basket
        cdef Py_ssize_t position, place = 0
        histories.of(user, &history)
        self._head(0x90, 0xdc, 2)
        self._name(name)
        self._head(0x90, 0xdc, history.length)
        for position in range(history.length):
            basket = history.baskets + position
            self._head(0x90, 0xdc, 4)
            if basket.is_text:
                self._name(texts[basket.key])
            else:
                self._number(basket.key)
            if basket.time == INT64_MIN:
                self._byte(0xc0)
            else:
                self._number(basket.time)
            self._byte(0xc3 if basket.opens_group else 0xc2)
            self._items(history.items + place, basket.size, items, labels)
            place += basket.size
        return 0

    cdef int _items(self, const uint32_t *codes, Py_ssize_t count, list items, const int64_t[::1] labels) except -1:
        """Write items in the order of their labels."""
        cdef Py_ssize_t i
        if count > self.item_room:
            self.items = <Labeled *> grown(self.items, self.item_room, count, sizeof(Labeled))
            self.item_room = count
        for i in range(count):
            self.items[i] = Labeled(labels[codes[i]], codes[i])
        qsort(self.items, count, sizeof(Labeled), lower_first)
        self._head(0x90, 0xdc, count)
        for i in range(count):
            self._name(items[self.items[i].code])
        memset(self.items, 0, count * sizeof(Labeled))
        return 0

    cdef int _name(self, name) except -1:
        """Write an id."""
        cdef bytes text
        if isinstance(name, int):
            return self._number(name)
        text = (<str> name).encode()
        if PyBytes_GET_SIZE(text) > 31 and PyBytes_GET_SIZE(text) < 256:
            self._big_endian(0xd9, PyBytes_GET_SIZE(text), 1)
        else:
            self._head(0xa0, 0xda, PyBytes_GET_SIZE(text))
        self._make_room(PyBytes_GET_SIZE(text))
        memcpy(self.data + self.length, PyBytes_AS_STRING(text), PyBytes_GET_SIZE(text))
        self.length += PyBytes_GET_SIZE(text)
        return 0

    cdef int _number(self, int64_t number) except -1:
        """Write a whole number in the shortest way."""
        if -32 <= number < 128:
            return self._byte(<uint8_t> number)
        if number >= 0:
            if number < 1 << 8:
                return self._big_endian(0xcc, number, 1)
            if number < 1 << 16:
                return self._big_endian(0xcd, number, 2)
            if number < <int64_t> 1 << 32:
                return self._big_endian(0xce, number, 4)
            return self._big_endian(0xcf, number, 8)
        if number >= -(1 << 7):
            return self._big_endian(0xd0, number, 1)
        if number >= -(1 << 15):
            return self._big_endian(0xd1, number, 2)
        if number >= -(<int64_t> 1 << 31):
            return self._big_endian(0xd2, number, 4)
        return self._big_endian(0xd3, number, 8)

    cdef int _head(self, int small, int large, Py_ssize_t count) except -1:
        """Write how long something is: in the byte that says what it is, or in the 2 or 4 bytes that follow."""
        if count < (32 if small == 0xa0 else 16):
            return self._byte(small | count)
        if count < 1 << 16:
            return self._big_endian(large, count, 2)
        return self._big_endian(large + 1, count, 4)

    cdef int _big_endian(self, int kind, int64_t number, int size) except -1:
        cdef int i
        self._byte(kind)
        for i in range(size - 1, -1, -1):
            self._byte((<uint64_t> number >> 8 * i) & 0xff)
        return 0

    cdef int _byte(self, int byte) except -1:
        if self.length == self.room:
            self._make_room(1)
        self.data[self.length] = <uint8_t> byte
        self.length += 1
        return 0

    cdef int _make_room(self, Py_ssize_t count) except -1:
        cdef Py_ssize_t room = 2 * (self.length + count) + 256
        if self.length + count > self.room:
            self.data = <uint8_t *> grown(self.data, self.room, room, 1)
            self.room = room
        return 0
