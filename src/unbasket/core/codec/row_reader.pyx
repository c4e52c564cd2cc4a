"""Rows of a store as columns: MessagePack in, arrays and distinct ids out, without an object per basket.

A row is (number, body). A body is a checksum of four bytes, a list (user, basket, time or nil, shift, whether the basket
opens a group, items), and a seal of eight bytes. The checksum is a CRC-32 that starts from the seed of the table plus
the number of the row, so a body is valid in its own row only. The seal is a keyed hash of that number and of the list.
The body of an erased row is zeroed.
"""

cimport cython
from libc.stdint cimport INT64_MIN, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back, grown

cdef extern from "codec/crc32.h" nogil:
    uint32_t crc32_of(const uint8_t *data, size_t length, uint32_t start)

cdef extern from "codec/blake2s.h" nogil:
    enum:
        SEAL_SIZE
    void blake2s_start_seal(uint32_t *state, const uint8_t *key, const char *person)
    void blake2s_seal(uint8_t *seal, const uint32_t *start, uint64_t row, const uint8_t *payload, size_t length)


cdef struct Id:
    int64_t value  # the number, or the start of the text in `texts`
    uint32_t length  # bytes of the text


cdef enum:
    MIXED = -2


@cython.final
cdef class _IdTable:
    """A hash table that gives distinct ids codes, from 0 on. The first id decides whether all are numbers or texts."""

    cdef Id *ids  # by code
    cdef bint holds_texts  # whether the ids are texts
    cdef uint32_t *table  # open addressing with linear probing: codes plus 1, 0 if free
    cdef uint8_t *texts  # UTF-8 of all texts, one after the other
    cdef Py_ssize_t count  # ids
    cdef Py_ssize_t capacity  # of `ids`
    cdef Py_ssize_t size  # of `table`: a power of two, twice the capacity
    cdef Py_ssize_t text_end  # bytes used of `texts`
    cdef Py_ssize_t text_capacity  # bytes of `texts`

    def __cinit__(self):
        self.capacity, self.size, self.text_capacity = 512, 1024, 4096
        self.ids = <Id *> allocated(self.capacity, sizeof(Id))
        self.table = <uint32_t *> allocated(self.size, sizeof(uint32_t))
        self.texts = <uint8_t *> allocated(self.text_capacity, 1)

    def __dealloc__(self):
        give_back(self.ids, self.capacity * sizeof(Id))
        give_back(self.table, self.size * sizeof(uint32_t))
        give_back(self.texts, self.text_capacity)

    cdef int64_t code_of(self, const Token *token) except -1 nogil:
        """Return the code of an id; a new id gets the next one. An id of the other type gets MIXED."""
        if self.count == 0:
            self.holds_texts = token.text != NULL
        elif self.holds_texts != (token.text != NULL):
            return MIXED
        cdef Py_ssize_t i = hash_of(token) & (self.size - 1)
        while self.table[i]:
            if self._is(&self.ids[self.table[i] - 1], token):
                return self.table[i] - 1
            i = (i + 1) & (self.size - 1)
        self._add(token)
        self.table[i] = <uint32_t> self.count
        if self.count == self.capacity:
            self._grow()
        return self.count - 1

    cdef bint _is(self, const Id *known, const Token *token) noexcept nogil:
        if not self.holds_texts:
            return known.value == token.number
        return known.length == token.length and memcmp(self.texts + known.value, token.text, token.length) == 0

    cdef int _add(self, const Token *token) except -1 nogil:
        cdef Id *new = &self.ids[self.count]
        cdef Py_ssize_t capacity = self.text_capacity
        if self.holds_texts:
            if self.text_end + token.length > capacity:
                self.texts = <uint8_t *> grown(self.texts, capacity, 2 * capacity + token.length, 1)
                self.text_capacity = 2 * capacity + token.length
            memcpy(self.texts + self.text_end, token.text, token.length)
            new.value, new.length = self.text_end, <uint32_t> token.length
            self.text_end += token.length
        else:
            new.value = token.number
        self.count += 1

    cdef int _grow(self) except -1 nogil:
        cdef Token token
        cdef Py_ssize_t code, i
        self.ids = <Id *> grown(self.ids, self.capacity, 2 * self.capacity, sizeof(Id))
        self.capacity *= 2
        give_back(self.table, self.size * sizeof(uint32_t))
        self.size *= 2
        self.table = <uint32_t *> allocated(self.size, sizeof(uint32_t))
        for code in range(self.count):
            token.number, token.length = self.ids[code].value, self.ids[code].length
            token.text = self.texts + self.ids[code].value if self.holds_texts else NULL
            i = hash_of(&token) & (self.size - 1)
            while self.table[i]:
                i = (i + 1) & (self.size - 1)
            self.table[i] = <uint32_t> (code + 1)

    def to_list(self):
        cdef Py_ssize_t i
        return [
            (<char *> self.texts + self.ids[i].value)[:self.ids[i].length].decode()
            if self.holds_texts else self.ids[i].value
            for i in range(self.count)
        ]


cdef struct Token:  # an id in a body
    const uint8_t *text  # UTF-8 of a text, NULL for a number
    Py_ssize_t length  # bytes of the text
    int64_t number  # if it is one


cdef uint64_t hash_of(const Token *token) noexcept nogil:
    cdef uint64_t value = <uint64_t> token.number
    cdef Py_ssize_t i
    if token.text != NULL:
        value = 0xCBF29CE484222325u
        for i in range(token.length):
            value = (value ^ token.text[i]) * 0x100000001B3u
    value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15u
    return value ^ (value >> 29)


cdef struct Cursor:
    const uint8_t *at  # the next byte to read
    const uint8_t *end  # of the body


cdef uint64_t big_endian(const uint8_t *bytes, Py_ssize_t size) noexcept nogil:
    cdef uint64_t value = 0
    cdef Py_ssize_t i
    for i in range(size):
        value = value << 8 | bytes[i]
    return value


cdef bint read_number(Cursor *cursor, int64_t *number) noexcept nogil:
    """Read an int64; return whether there is one."""
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
    """Read an id; return whether there is one."""
    if cursor.at >= cursor.end:
        return False
    cdef uint8_t kind = cursor.at[0]
    cdef Py_ssize_t head = 1
    if not (0xA0 <= kind <= 0xBF or 0xD9 <= kind <= 0xDB):
        token.text = NULL
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
    """Read the header of a list; return its length, or -1 if there is no list."""
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
    """Skip a byte if it is the given one; return whether it is."""
    if cursor.at >= cursor.end or cursor.at[0] != byte:
        return False
    cursor.at += 1
    return True


cdef struct Chunk:  # the columns of the baskets in some rows
    uint32_t *owners  # code of the user
    int64_t *keys  # the basket's id: a number, or the code of a text in `RowReader.baskets`
    int64_t *times  # INT64_MIN without a time
    int64_t *positions  # sort the baskets of a user
    uint8_t *opens  # whether the basket opens a group
    int64_t *sizes  # items of the basket
    int64_t *rows  # number of the row
    uint32_t *purchases  # codes of the items of all baskets, one after the other
    Py_ssize_t count  # baskets
    Py_ssize_t bought  # purchases


cdef struct Body:
    int64_t row  # its number
    const uint8_t *bytes  # borrowed from a bytes object
    Py_ssize_t length  # bytes


cdef void *data_of(array) except? NULL:
    return <void *> <size_t> array.ctypes.data


@cython.final
cdef class RowReader:
    """Reader of rows into columns."""

    cdef _IdTable users, items, baskets  # distinct ids; of baskets only texts
    cdef bint has_numbers  # whether a basket has a number as its id
    cdef readonly bint mixed  # whether some ids of a kind are numbers, and others texts: then columns are invalid
    cdef list chunks  # lists of columns, one per call of `add`
    cdef uint32_t seed  # of the table's checksums
    cdef uint32_t[8] sealing  # the state from which seals are computed
    cdef bint checks_seals  # whether there is a key for them
    cdef int64_t step  # the distance between the positions of neighboring rows
    cdef int64_t upto  # rows after this one are counted by `count_since` and `checksums_since` as well
    cdef readonly int64_t count, count_since  # rows that are not erased
    cdef readonly int64_t checksums, checksums_since  # the sum of their checksums
    cdef readonly int64_t size  # their bytes
    cdef readonly int64_t zeroed  # bytes of erased rows

    def __cinit__(self, uint32_t seed, int64_t step, int64_t upto, bytes key=None):
        self.users, self.items, self.baskets = _IdTable(), _IdTable(), _IdTable()
        self.seed, self.step, self.upto = seed, step, upto
        self.chunks = []
        self.checks_seals = key is not None
        if self.checks_seals:
            blake2s_start_seal(self.sealing, <const uint8_t *> <const char *> key, "baskets\0")

    def add(self, list rows):
        """Read rows; return the position of the first that is damaged, or -1."""
        cdef Py_ssize_t i, wrong = -1, total = 0, length = len(rows)
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
                total += len(body)
            columns = self._columns(length, total, &chunk)
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

    cdef list _columns(self, Py_ssize_t baskets, Py_ssize_t purchases, Chunk *chunk):
        """Return new columns with these capacities, and point `chunk` to them."""
        kinds = [np.uint32, np.int64, np.int64, np.int64, np.uint8, np.int64, np.int64]
        columns = [*(np.empty(baskets, kind) for kind in kinds), np.empty(purchases, np.uint32)]
        chunk.owners, chunk.keys = <uint32_t *> data_of(columns[0]), <int64_t *> data_of(columns[1])
        chunk.times, chunk.positions = <int64_t *> data_of(columns[2]), <int64_t *> data_of(columns[3])
        chunk.opens, chunk.sizes = <uint8_t *> data_of(columns[4]), <int64_t *> data_of(columns[5])
        chunk.rows, chunk.purchases = <int64_t *> data_of(columns[6]), <uint32_t *> data_of(columns[7])
        chunk.count = chunk.bought = 0
        return columns

    cdef bint _read(self, const Body *body, Chunk *chunk) except -1 nogil:
        """Read one row; return whether it is undamaged."""
        cdef const uint8_t *payload = body.bytes + 4
        cdef Py_ssize_t i
        cdef uint8_t[SEAL_SIZE] seal
        cdef uint32_t checksum
        cdef Cursor cursor
        if body.length < 5:
            return False
        if payload[0] == 0:
            for i in range(body.length):
                if body.bytes[i]:
                    return False
            self.zeroed += body.length
            return True
        if body.length < 5 + SEAL_SIZE:
            return False
        checksum = <uint32_t> big_endian(body.bytes, 4)
        if crc32_of(payload, body.length - 4, <uint32_t> (self.seed + body.row)) != checksum:
            return False
        self.count += 1
        self.size += body.length
        self.checksums += checksum
        if body.row > self.upto:
            self.count_since += 1
            self.checksums_since += checksum
        cursor.at, cursor.end = payload, body.bytes + body.length - SEAL_SIZE
        if self.checks_seals:
            blake2s_seal(seal, self.sealing, body.row, payload, cursor.end - payload)
            if memcmp(seal, cursor.end, SEAL_SIZE) != 0:
                return False
        chunk.rows[chunk.count] = body.row
        return self._read_basket(&cursor, chunk) and cursor.at == cursor.end

    cdef bint _read_basket(self, Cursor *cursor, Chunk *chunk) except -1 nogil:
        cdef Py_ssize_t i = chunk.count, size
        cdef int64_t shift, owner, item
        cdef Token token
        if read_list(cursor) != 6 or not read_id(cursor, &token):
            return False
        owner = self.users.code_of(&token)
        chunk.owners[i] = <uint32_t> owner
        if not read_id(cursor, &token):
            return False
        chunk.keys[i] = token.number if token.text == NULL else self.baskets.code_of(&token)
        self.has_numbers |= token.text == NULL
        self.mixed |= owner == MIXED or (self.has_numbers and self.baskets.count > 0)
        if read_byte(cursor, 0xC0):
            chunk.times[i] = INT64_MIN
        elif not read_number(cursor, &chunk.times[i]):
            return False
        if not read_number(cursor, &shift):
            return False
        chunk.positions[i] = chunk.rows[i] * self.step + shift
        chunk.opens[i] = read_byte(cursor, 0xC3)
        if not chunk.opens[i] and not read_byte(cursor, 0xC2):
            return False
        size = read_list(cursor)
        chunk.sizes[i] = size
        while size > 0:
            if not read_id(cursor, &token):
                return False
            item = self.items.code_of(&token)
            self.mixed |= item == MIXED
            chunk.purchases[chunk.bought] = <uint32_t> item
            chunk.bought += 1
            size -= 1
        chunk.count += 1
        return size == 0

    def columns(self):
        """Return the ids of users, items and baskets by code, and the other columns by name, which hold codes.

        The ids of baskets are None if a basket's key is its id.
        """
        cdef Chunk empty
        names = ("owners", "keys", "times", "positions", "opens", "sizes", "rows", "purchases")
        self.chunks.append(self._columns(0, 0, &empty))  # for the types of the columns
        columns = {}
        for i, name in enumerate(names):
            columns[name] = np.concatenate([chunk[i] for chunk in self.chunks])
            for chunk in self.chunks:
                chunk[i] = None
        self.chunks = []
        texts = self.baskets.to_list() if self.baskets.count else None
        return self.users.to_list(), self.items.to_list(), texts, columns


def sorted_by_user(const uint32_t[::1] owners, const int64_t[::1] positions, Py_ssize_t users):
    """Return the order of baskets by user and position, as `np.argsort` does."""
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
            while j > starts[user] and positions[result[j - 1]] > positions[i]:
                result[j] = result[j - 1]
                j -= 1
            result[j] = i
    return order


def gathered(const uint32_t[::1] purchases, const int64_t[::1] sizes, const int64_t[::1] order):
    """Return the purchases with the baskets reordered."""
    cdef Py_ssize_t i, count = sizes.shape[0], end = 0
    result = np.empty(purchases.shape[0], np.uint32)
    cdef uint32_t[::1] target = result
    cdef int64_t[::1] starts = np.empty(count + 1, np.int64)
    with nogil:
        starts[0] = 0
        for i in range(count):
            starts[i + 1] = starts[i] + sizes[i]
        for i in range(count):
            if sizes[order[i]]:
                memcpy(&target[end], &purchases[starts[order[i]]], sizes[order[i]] * sizeof(uint32_t))
            end += sizes[order[i]]
    return result
