"""Ids and numbers as MessagePack, as `msgspec.msgpack` writes them; baskets as rows of a store."""

cimport cython
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_AsUTF8AndSize
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy, memset

from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.model.history cimport Basket, Histories

cdef extern from "codec/crc32.h" nogil:
    uint32_t crc32_of(const uint8_t *data, size_t length, uint32_t start)

cdef extern from "codec/blake2s.h" nogil:
    enum:
        SEAL_SIZE
    void blake2s_start_seal(uint32_t *state, const uint8_t *key, const char *person)
    void blake2s_seal(uint8_t *seal, const uint32_t *start, uint64_t row, const uint8_t *payload, size_t length)


cdef inline int log_size(uint64_t value) noexcept nogil:
    """Return the logarithm of the fewest bytes, of 1, 2, 4 and 8, that hold a value."""
    return (value >> 8 != 0) + (value >> 16 != 0) + (value >> 32 != 0)


@cython.final
cdef class RowWriter:
    """A growing buffer of MessagePack that is zeroed when cleared."""

    def __cinit__(self):
        self.capacity = 4096
        self.bytes = <uint8_t *> allocated(self.capacity, 1)

    def __dealloc__(self):
        give_back(self.bytes, self.capacity)

    cdef int clear(self) except -1:
        memset(self.bytes, 0, self.length)
        self.length = 0

    cdef int put_id(self, name) except -1:
        cdef const char *text
        cdef Py_ssize_t size
        if isinstance(name, int):
            return self.put_number(name)
        text = PyUnicode_AsUTF8AndSize(name, &size)
        if size < 32:
            self.put_byte(0xA0 | size)
        else:
            self._put_big_endian(0xD9, size, log_size(size))
        self._make_room(size)
        memcpy(self.bytes + self.length, text, size)
        self.length += size

    cdef int put_number(self, int64_t number) except -1:
        if -32 <= number < 128:
            return self.put_byte(<uint8_t> number)
        if number >= 0:
            return self._put_big_endian(0xCC, number, log_size(number))
        return self._put_big_endian(0xD0, <uint64_t> number, log_size(<uint64_t> ~number << 1))  # with the sign bit

    cdef int put_time(self, int64_t time) except -1:
        """Write a time; INT64_MIN, which stands for no time, as nil."""
        return self.put_byte(0xC0) if time == INT64_MIN else self.put_number(time)

    cdef int put_bool(self, bint value) except -1:
        return self.put_byte(0xC3 if value else 0xC2)

    cdef int put_header(self, Py_ssize_t count) except -1:
        """Write the header of a list."""
        if count < 16:
            return self.put_byte(0x90 | count)
        return self._put_big_endian(0xDB, count, max(1, log_size(count)))  # lists have no one-byte length

    cdef int _put_big_endian(self, uint8_t kind, uint64_t value, int log) except -1:
        """Write a value in 2^log bytes; `kind` is the MessagePack type with one byte."""
        cdef Py_ssize_t size = <Py_ssize_t> 1 << log, i
        self._make_room(size + 1)
        self.bytes[self.length] = kind + log
        for i in range(size):
            self.bytes[self.length + size - i] = <uint8_t> (value >> 8 * i)
        self.length += size + 1

    cdef int put_byte(self, uint8_t byte) except -1:
        self._make_room(1)
        self.bytes[self.length] = byte
        self.length += 1

    cdef int _make_room(self, Py_ssize_t size) except -1:
        if self.length + size > self.capacity:
            self.bytes = <uint8_t *> grown(self.bytes, self.capacity, 2 * self.capacity + size, 1)
            self.capacity = 2 * self.capacity + size


cdef class BasketRowWriter:
    """Writer of baskets to rows of a store, which `row_reader` describes. Subclasses know where baskets come from."""

    cdef RowWriter writer  # the body of the row that is written
    cdef list users, items  # ids by code
    cdef list baskets  # ids of baskets by key, or None if a key is the id
    cdef Py_ssize_t total  # baskets to write
    cdef Py_ssize_t done  # baskets written
    cdef uint32_t seed  # of the table's checksums
    cdef uint32_t[8] sealing  # the state from which seals are computed
    cdef bint seals  # whether there is a key for them; without one they are zeros
    cdef readonly int64_t size  # bytes written
    cdef readonly int64_t checksums  # the sum of the checksums written

    cdef int start(self, list users, list items, list baskets, Py_ssize_t total, uint32_t seed, bytes key) except -1:
        self.writer = RowWriter()
        self.users, self.items, self.baskets, self.total = users, items, baskets, total
        self.seed = seed
        self.seals = key is not None
        if self.seals:
            blake2s_start_seal(self.sealing, <const uint8_t *> <const char *> key, "baskets\0")

    def take(self, int64_t first, Py_ssize_t most):
        """Return rows of the next baskets, at most `most`, numbered from `first` on."""
        cdef Py_ssize_t i, end = min(self.done + most, self.total)
        rows = [self._row(first + i, self.done + i) for i in range(end - self.done)]
        self.done = end
        return rows

    cdef tuple _row(self, int64_t number, Py_ssize_t basket):
        cdef RowWriter writer = self.writer
        cdef uint32_t checksum
        cdef int i
        for _ in range(4):
            writer.put_byte(0)  # where the checksum goes
        self._put_basket(basket)
        for _ in range(SEAL_SIZE):
            writer.put_byte(0)
        if self.seals:
            blake2s_seal(
                writer.bytes + writer.length - SEAL_SIZE,
                self.sealing, number, writer.bytes + 4, writer.length - 4 - SEAL_SIZE
            )
        checksum = crc32_of(writer.bytes + 4, writer.length - 4, <uint32_t> (self.seed + number))
        for i in range(4):
            writer.bytes[i] = <uint8_t> (checksum >> 8 * (3 - i))
        body = PyBytes_FromStringAndSize(<char *> writer.bytes, writer.length)
        self.checksums += checksum
        self.size += writer.length
        writer.clear()
        return number, body

    cdef int _put_basket(self, Py_ssize_t basket) except -1:
        """Hook: put the basket of this number."""
        raise NotImplementedError

    cdef int _put(self, Py_ssize_t user, const Basket *basket, int64_t shift, const uint32_t *items) except -1:
        cdef RowWriter writer = self.writer
        cdef Py_ssize_t i
        writer.put_header(6)
        writer.put_id(self.users[user])
        if self.baskets is None:
            writer.put_number(basket.key)
        else:
            writer.put_id(self.baskets[basket.key])
        writer.put_time(basket.time)
        writer.put_number(shift)
        writer.put_bool(basket.opens_group)
        writer.put_header(basket.size)
        for i in range(basket.size):
            writer.put_id(self.items[items[i]])


@cython.final
cdef class ColumnRowWriter(BasketRowWriter):
    """Writer of baskets that are given as `BasketColumns`."""

    cdef const uint32_t[::1] owners, purchases  # the user of each basket; the items of all baskets
    cdef const int64_t[::1] keys, times, sizes, opens  # of each basket
    cdef Py_ssize_t bought  # purchases written

    def __init__(self, columns, uint32_t seed, bytes key=None):
        self.start(columns.users, columns.items, columns.baskets, len(columns.owners), seed, key)
        self.owners, self.purchases = columns.owners, columns.purchases
        self.keys, self.times, self.sizes, self.opens = columns.keys, columns.times, columns.sizes, columns.opens

    cdef int _put_basket(self, Py_ssize_t number) except -1:
        cdef Basket basket = Basket(
            self.keys[number], self.times[number], <uint32_t> self.sizes[number], <uint8_t> self.opens[number]
        )
        self._put(self.owners[number], &basket, 0, &self.purchases[self.bought])
        self.bought += basket.size


@cython.final
cdef class HistoryRowWriter(BasketRowWriter):
    """Writer of baskets in histories. A place is a basket's user, its position, and the shift of its row."""

    cdef Histories histories
    cdef list places

    def __init__(
        self, Histories histories, list places, list users, list items, list baskets, uint32_t seed, bytes key=None
    ):
        self.start(users, items, baskets, len(places), seed, key)
        self.histories, self.places = histories, places

    cdef int _put_basket(self, Py_ssize_t number) except -1:
        cdef Py_ssize_t user, position
        cdef int64_t shift
        user, position, shift = self.places[number]
        cdef uint32_t *items = <uint32_t *> self.histories.items.first(user) + self.histories.offset(user, position)
        self._put(user, <Basket *> self.histories.baskets.first(user) + position, shift, items)
