"""JaggedArray of records that grow and shrink: the container of histories, vectors and postings alike.

A record is any C struct: the rows know its width, and whoever owns them casts what `first`, `append` and `open_gap`
point to. Each row has memory of its own, a block or, if it is long, an allocation, so a change costs what its row
costs, however many rows there are. Whatever is not a live record is zero, always: forgotten records leave nothing
behind.
"""

cimport cython
from libc.stdint cimport UINT32_MAX, uint32_t
from libc.string cimport memcpy, memmove, memset

from unbasket.core.memory.slab cimport LARGEST, SlabAllocator, bytes_of, size_class_of
from unbasket.core.memory.buffers cimport allocated, check, give_back, grown, nonzero_bytes


@cython.final
cdef class JaggedArray:
    """JaggedArray of records of one width, in bytes."""

    def __cinit__(self, size_t width):
        self.width = width
        self.blocks = SlabAllocator()
        self.rows = <Row *> allocated(0, sizeof(Row))

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            if self._room(&self.rows[i]) > LARGEST:
                give_back(self.rows[i].first, self._room(&self.rows[i]))
        give_back(self.rows, self.count * sizeof(Row))

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil:
        """Make sure that there are at least `count` rows; new ones are empty."""
        if count > self.count:
            count += count // 4
            self.rows = <Row *> grown(self.rows, self.count, count, sizeof(Row))
            self.count = count
        return 0

    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Give a row capacity for `length` records: just that at first, later with a quarter to spare."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *place = &self.rows[row]
        if length <= place.capacity:
            return 0
        if place.capacity > 0:
            length += length // 4 + 1
        return self._move(place, length)

    cpdef int trim(self, Py_ssize_t row) except -1 nogil:
        """Let a row that is less than half full have less room."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *place = &self.rows[row]
        cdef Py_ssize_t length = place.length + place.length // 4 + 1
        if 2 * place.length >= place.capacity or size_class_of(length * self.width) >= size_class_of(self._room(place)):
            return 0
        return self._move(place, length)

    cdef size_t _room(self, const Row *row) noexcept nogil:
        """The bytes that a row has room for."""
        return row.capacity * self.width

    cdef int _move(self, Row *row, Py_ssize_t capacity) except -1 nogil:
        """Give a row memory for `capacity` records or a few more; what it leaves is wiped."""
        cdef size_t room = self._room(row), bytes = capacity * self.width
        cdef void *memory
        assert row.length <= capacity <= UINT32_MAX, "too long a row"
        if room > LARGEST and bytes > room:
            row.first = grown(row.first, row.capacity, capacity, self.width)
            row.capacity = <uint32_t> capacity
            return 0
        if bytes > LARGEST:
            memory = allocated(capacity, self.width)
        else:
            memory = self.blocks.allocate(bytes)
            capacity = bytes_of(size_class_of(bytes)) // self.width
        if row.first != NULL:
            memcpy(memory, row.first, row.length * self.width)
            self._give_back(row)
        row.first, row.capacity = memory, <uint32_t> capacity
        return 0

    cdef int _give_back(self, Row *row) except -1 nogil:
        """Wipe a row's records and give back its memory."""
        cdef size_t room = self._room(row)
        memset(row.first, 0, row.length * self.width)
        if room > LARGEST:
            give_back(row.first, room)
        else:
            self.blocks.free(row.first)
        row.first, row.capacity = NULL, 0
        return 0

    cdef void *open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except NULL nogil:
        """Make room for `count` records before `position` of a row; returns the first of them, to be written to."""
        cdef Py_ssize_t length = self.length(row)
        check(0 <= position <= length and count >= 0, "a gap outside the row")
        self.reserve(row, length + count)
        cdef char *gap = <char *> self.first(row) + position * self.width
        memmove(gap + count * self.width, gap, (length - position) * self.width)
        self.rows[row].length = <uint32_t> (length + count)
        return gap

    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil:
        """Remove `count` records from `position` of a row on."""
        cdef Py_ssize_t left = self.length(row) - count
        assert 0 <= position <= left and count >= 0, "a gap outside the row"
        cdef char *first = <char *> self.first(row)
        cdef char *gap = first + position * self.width
        memmove(gap, gap + count * self.width, (left - position) * self.width)
        memset(first + left * self.width, 0, count * self.width)
        self._set_length(row, left)
        return self.trim(row)

    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Note a row's new length; an empty row gives its memory back."""
        self.rows[row].length = <uint32_t> length
        if length == 0 and self.rows[row].first != NULL:
            self._give_back(&self.rows[row])
        return 0

    cdef void *append(self, Py_ssize_t row) except NULL nogil:
        """Add a record at the end of a row; returns it, to be written to."""
        check(0 <= row < self.count, "no such row")
        cdef Row *place = &self.rows[row]
        if place.length == place.capacity:
            self.reserve(row, place.length + 1)
        place.length += 1
        return <char *> place.first + (place.length - 1) * self.width

    cpdef int pop(self, Py_ssize_t row) except -1 nogil:
        """Remove the last record of a row."""
        cdef Py_ssize_t left = self.length(row) - 1
        assert left >= 0, "nothing to remove"
        memset(<char *> self.first(row) + left * self.width, 0, self.width)
        return self._set_length(row, left)

    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil:
        """Remove all records of a row."""
        cdef Row *place = &self.rows[row]
        assert 0 <= row < self.count, "no such row"
        memset(self.first(row), 0, place.length * self.width)
        return self._set_length(row, 0)

    cpdef Py_ssize_t residue(self) noexcept nogil:
        """How many bytes are no record's, and not zero. A block that is no row's counts as one."""
        cdef Py_ssize_t i, blocks = self.blocks.used
        cdef size_t used, room, count = self.blocks.residue()
        for i in range(self.count):
            if self.rows[i].first != NULL:
                room = self._room(&self.rows[i])
                if room <= LARGEST:
                    room = self.blocks.room(self.rows[i].first)
                    blocks -= 1
                used = self.rows[i].length * self.width
                count += nonzero_bytes(<char *> self.rows[i].first + used, room - used)
        return count + (blocks if blocks > 0 else -blocks)
