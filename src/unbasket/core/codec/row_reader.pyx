"""JaggedArray of a store to columns: sealed MessagePack in, arrays and distinct ids out, without an object per basket.

A row is (number, body); a body is a checksum of four bytes and a list: user, basket, time or none, shift, opens, items.
A row that was erased is all zeros.
"""

cimport cython
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back, grown

cdef extern from "codec/crc32.h" nogil:
    void crc32_prepare()
    uint32_t crc32_of(const uint8_t *data, size_t length, uint32_t start)

crc32_prepare()


cdef struct Name:
    int64_t value  # a number, or where a text starts
    uint32_t length
    uint8_t is_text


@cython.final
cdef class Names:
    """Distinct ids, each under a code, from 0 on."""

    cdef Name *names
    cdef uint32_t *table  # codes plus one, by hash
    cdef uint8_t *texts
    cdef Py_ssize_t count, room, size, text_end, text_room

    def __cinit__(self):
        self.room, self.size, self.text_room = 512, 1024, 4096
        self.names = <Name *> allocated(self.room, sizeof(Name))
        self.table = <uint32_t *> allocated(self.size, sizeof(uint32_t))
        self.texts = <uint8_t *> allocated(self.text_room, 1)

    def __dealloc__(self):
        give_back(self.names, self.room * sizeof(Name))
        give_back(self.table, self.size * sizeof(uint32_t))
        give_back(self.texts, self.text_room)

    cdef int64_t code_of(self, const Token *token) except -1 nogil:
        """The code of an id, given to it now if it is new."""
        cdef Py_ssize_t place = hash_of(token) & (self.size - 1)
        while self.table[place]:
            if self._is(&self.names[self.table[place] - 1], token):
                return self.table[place] - 1
            place = (place + 1) & (self.size - 1)
        self._add(token)
        self.table[place] = <uint32_t> self.count
        if self.count == self.room:
            self._grow()
        return self.count - 1

    cdef bint _is(self, const Name *name, const Token *token) noexcept nogil:
        if name.is_text != token.is_text:
            return False
        if not token.is_text:
            return name.value == token.number
        return name.length == token.length and memcmp(self.texts + name.value, token.text, token.length) == 0

    cdef int _add(self, const Token *token) except -1 nogil:
        cdef Name *name = &self.names[self.count]
        name.is_text = token.is_text
        if token.is_text:
            if self.text_end + token.length > self.text_room:
                self.texts = <uint8_t *> grown(self.texts, self.text_room, 2 * self.text_room + token.length, 1)
                self.text_room = 2 * self.text_room + token.length
            memcpy(self.texts + self.text_end, token.text, token.length)
            name.value, name.length = self.text_end, <uint32_t> token.length
            self.text_end += token.length
        else:
            name.value = token.number
        self.count += 1
        return 0

    cdef int _grow(self) except -1 nogil:
        cdef Token token
        cdef Py_ssize_t i, place
        self.names = <Name *> grown(self.names, self.room, 2 * self.room, sizeof(Name))
        self.room *= 2
        give_back(self.table, self.size * sizeof(uint32_t))
        self.size *= 2
        self.table = <uint32_t *> allocated(self.size, sizeof(uint32_t))
        for i in range(self.count):
            token.is_text, token.number = self.names[i].is_text, self.names[i].value
            token.text, token.length = self.texts + self.names[i].value, self.names[i].length
            place = hash_of(&token) & (self.size - 1)
            while self.table[place]:
                place = (place + 1) & (self.size - 1)
            self.table[place] = <uint32_t> (i + 1)
        return 0

    def to_list(self):
        """The ids, in the order of their codes."""
        cdef Py_ssize_t i
        return [
            (<char *> self.texts + self.names[i].value)[:self.names[i].length].decode()
            if self.names[i].is_text else self.names[i].value
            for i in range(self.count)
        ]


cdef struct Token:
    const uint8_t *text
    Py_ssize_t length
    int64_t number
    bint is_text


cdef uint64_t hash_of(const Token *token) noexcept nogil:
    cdef uint64_t value = <uint64_t> token.number
    cdef Py_ssize_t i
    if token.is_text:
        value = 0xCBF29CE484222325u
        for i in range(token.length):
            value = (value ^ token.text[i]) * 0x100000001B3u
    value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15u
    return value ^ (value >> 29)


cdef struct Cursor:
    const uint8_t *at
    const uint8_t *end


cdef uint64_t big_endian(const uint8_t *bytes, Py_ssize_t size) noexcept nogil:
    cdef uint64_t value = 0
    cdef Py_ssize_t i
    for i in range(size):
        value = value << 8 | bytes[i]
    return value


cdef bint read_number(Cursor *cursor, int64_t *number) noexcept nogil:
    """Whether a whole number of 64 bits comes next."""
    if cursor.at >= cursor.end:
        return False
    cdef uint8_t kind = cursor.at[0]
    cdef Py_ssize_t size
    cdef uint64_t value
    if kind < 0x80 or kind >= 0xE0:
        number[0] = <int64_t> kind if kind < 0x80 else <int64_t> kind - 256
        cursor.at += 1
        return True
    if not 0xCC <= kind <= 0xD3:
        return False
    size = 1 << ((kind - 0xCC) & 3)
    if cursor.end - cursor.at < size + 1:
        return False
    value = big_endian(cursor.at + 1, size)
    if kind >= 0xD0 and size < 8 and value >> (8 * size - 1):
        value |= ~(<uint64_t> 0) << 8 * size
    if kind == 0xCF and value >> 63:
        return False
    number[0] = <int64_t> value
    cursor.at += size + 1
    return True


cdef bint read_id(Cursor *cursor, Token *token) noexcept nogil:
    """Whether an id comes next."""
    if cursor.at >= cursor.end:
        return False
    cdef uint8_t kind = cursor.at[0]
    cdef Py_ssize_t head = 1
    token.is_text = 0xA0 <= kind <= 0xBF or 0xD9 <= kind <= 0xDB
    if not token.is_text:
        return read_number(cursor, &token.number)
    token.length = kind & 0x1F
    if kind >= 0xD9:
        head += 1 << (kind - 0xD9)
        if cursor.end - cursor.at < head:
            return False
        token.length = big_endian(cursor.at + 1, head - 1)
    if cursor.end - cursor.at < head + token.length:
        return False
    token.text = cursor.at + head
    cursor.at += head + token.length
    return True


cdef Py_ssize_t read_list(Cursor *cursor) noexcept nogil:
    """The length of the list that comes next, or -1 if none does."""
    if cursor.at >= cursor.end:
        return -1
    cdef uint8_t kind = cursor.at[0]
    cdef Py_ssize_t size
    if 0x90 <= kind <= 0x9F:
        cursor.at += 1
        return kind & 0x0F
    size = 2 if kind == 0xDC else 4 if kind == 0xDD else 0
    if size == 0 or cursor.end - cursor.at < size + 1:
        return -1
    cursor.at += size + 1
    return big_endian(cursor.at - size, size)


cdef bint read_byte(Cursor *cursor, uint8_t byte) noexcept nogil:
    """Whether this byte comes next."""
    if cursor.at >= cursor.end or cursor.at[0] != byte:
        return False
    cursor.at += 1
    return True


cdef struct Chunk:  # where the columns of some rows go
    uint32_t *owners
    int64_t *keys
    uint8_t *are_texts
    int64_t *times
    int64_t *places
    uint8_t *opens
    int64_t *sizes
    int64_t *rows
    uint32_t *purchases
    Py_ssize_t count
    Py_ssize_t bought


cdef struct Body:
    int64_t row
    const uint8_t *bytes
    Py_ssize_t length


cdef void *start(array) except? NULL:
    """The first byte of an array."""
    return <void *> <size_t> array.ctypes.data


@cython.final
cdef class RowReader:
    """Reads rows into columns. JaggedArray after number `upto` are counted apart."""

    cdef Names users, items, texts
    cdef list chunks
    cdef uint32_t seed
    cdef int64_t step, upto
    cdef readonly int64_t count, size, zeroed, checksums, count_since, checksums_since, zeroed_since

    def __cinit__(self, uint32_t seed, int64_t step, int64_t upto):
        self.users, self.items, self.texts = Names(), Names(), Names()
        self.seed, self.step, self.upto = seed, step, upto
        self.chunks = []

    def add(self, list rows):
        """Read rows. Returns the position of the first one that is not as it was written, or -1."""
        cdef Py_ssize_t i, wrong = -1, room = 0, length = len(rows)
        cdef Body *bodies = <Body *> allocated(length, sizeof(Body))
        cdef Chunk chunk
        cdef bytes body
        try:
            for i in range(length):
                row, content = rows[i]
                if not isinstance(content, bytes):
                    return i
                body = content
                bodies[i] = Body(row, <const uint8_t *> <char *> body, len(body))
                room += len(body)
            columns = self._columns(length, room, &chunk)
            with nogil:
                for i in range(length):
                    if not self._read(&bodies[i], &chunk):
                        wrong = i
                        break
            *of_baskets, bought = columns
            self.chunks.append([*(column[:chunk.count] for column in of_baskets), bought[:chunk.bought].copy()])
            return wrong
        finally:
            give_back(bodies, length * sizeof(Body))

    cdef list _columns(self, Py_ssize_t length, Py_ssize_t room, Chunk *chunk):
        """New columns for so many baskets and purchases at most."""
        kinds = [np.uint32, np.int64, np.uint8, np.int64, np.int64, np.uint8, np.int64, np.int64]
        columns = [*(np.empty(length, kind) for kind in kinds), np.empty(room, np.uint32)]
        chunk.owners, chunk.keys = <uint32_t *> start(columns[0]), <int64_t *> start(columns[1])
        chunk.are_texts = <uint8_t *> start(columns[2])
        chunk.times, chunk.places = <int64_t *> start(columns[3]), <int64_t *> start(columns[4])
        chunk.opens, chunk.sizes = <uint8_t *> start(columns[5]), <int64_t *> start(columns[6])
        chunk.rows, chunk.purchases = <int64_t *> start(columns[7]), <uint32_t *> start(columns[8])
        chunk.count = chunk.bought = 0
        return columns

    cdef bint _read(self, const Body *body, Chunk *chunk) except -1 nogil:
        """Read one row; whether it is as it was written."""
        cdef const uint8_t *payload = body.bytes + 4
        cdef Py_ssize_t i
        cdef uint32_t checksum
        cdef Cursor cursor
        if body.length < 5:
            return False
        if payload[0] == 0:
            for i in range(body.length):
                if body.bytes[i]:
                    return False
            self.zeroed += body.length
            self.zeroed_since += body.row > self.upto
            return True
        checksum = <uint32_t> big_endian(body.bytes, 4)
        if crc32_of(payload, body.length - 4, <uint32_t> (self.seed + body.row)) != checksum:
            return False
        self.count += 1
        self.size += body.length
        self.checksums += checksum
        if body.row > self.upto:
            self.count_since += 1
            self.checksums_since += checksum
        cursor.at, cursor.end = payload, body.bytes + body.length
        chunk.rows[chunk.count] = body.row
        return self._read_basket(&cursor, chunk) and cursor.at == cursor.end

    cdef bint _read_basket(self, Cursor *cursor, Chunk *chunk) except -1 nogil:
        cdef Py_ssize_t i = chunk.count, size
        cdef int64_t shift
        cdef Token token
        if read_list(cursor) != 6 or not read_id(cursor, &token):
            return False
        chunk.owners[i] = <uint32_t> self.users.code_of(&token)
        if not read_id(cursor, &token):
            return False
        chunk.are_texts[i] = token.is_text
        chunk.keys[i] = self.texts.code_of(&token) if token.is_text else token.number
        if read_byte(cursor, 0xC0):
            chunk.times[i] = INT64_MIN
        elif not read_number(cursor, &chunk.times[i]):
            return False
        if not read_number(cursor, &shift):
            return False
        chunk.places[i] = chunk.rows[i] * self.step + shift
        chunk.opens[i] = read_byte(cursor, 0xC3)
        if not chunk.opens[i] and not read_byte(cursor, 0xC2):
            return False
        size = read_list(cursor)
        chunk.sizes[i] = size
        while size > 0:
            if not read_id(cursor, &token):
                return False
            chunk.purchases[chunk.bought] = <uint32_t> self.items.code_of(&token)
            chunk.bought += 1
            size -= 1
        chunk.count += 1
        return size == 0

    def columns(self):
        """All that was read, by names. Users, items and texts are lists, in which other columns are positions."""
        cdef Chunk chunk_of_nothing
        names = ("owners", "keys", "are_texts", "times", "positions", "opens", "sizes", "rows", "purchases")
        self.chunks.append(self._columns(0, 0, &chunk_of_nothing))  # of the right types, if nothing was read
        columns = {}
        for i, name in enumerate(names):
            columns[name] = np.concatenate([chunk[i] for chunk in self.chunks])
            for chunk in self.chunks:
                chunk[i] = None
        self.chunks = []
        return self.users.to_list(), self.items.to_list(), self.texts.to_list(), columns


def sorted_by_user(const uint32_t[::1] owners, const int64_t[::1] places, Py_ssize_t users):
    """The positions of baskets, user after user, each user's in the order of their places."""
    cdef Py_ssize_t i, j, user, count = owners.shape[0]
    order = np.empty(count, np.int64)
    cdef int64_t[::1] result = order, starts = np.zeros(users + 1, np.int64), filled = np.zeros(users, np.int64)
    with nogil:
        for i in range(count):
            starts[owners[i] + 1] += 1
        for user in range(users):
            starts[user + 1] += starts[user]
        for i in range(count):
            user = owners[i]
            j = starts[user] + filled[user]
            filled[user] += 1
            while j > starts[user] and places[result[j - 1]] > places[i]:
                result[j] = result[j - 1]
                j -= 1
            result[j] = i
    return order


def gathered(const uint32_t[::1] purchases, const int64_t[::1] sizes, const int64_t[::1] order):
    """The purchases of baskets, in another order of the baskets."""
    cdef Py_ssize_t i, count = sizes.shape[0], place = 0
    result = np.empty(purchases.shape[0], np.uint32)
    cdef uint32_t[::1] target = result
    cdef int64_t[::1] starts = np.empty(count + 1, np.int64)
    with nogil:
        starts[0] = 0
        for i in range(count):
            starts[i + 1] = starts[i] + sizes[i]
        for i in range(count):
            if sizes[order[i]]:
                memcpy(&target[place], &purchases[starts[order[i]]], sizes[order[i]] * sizeof(uint32_t))
            place += sizes[order[i]]
    return result
