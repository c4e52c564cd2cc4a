"""Ragged rows in one flat, growable array: the container of histories, vectors and postings alike.

A row is a run of records, a record any C struct: the pool knows its width, and whoever owns the pool casts what `first`
and `at` point to. Rows grow at the end of the pool; the place they leave is wiped at once and won back when the pool is
next laid out anew. Whatever is not a live record is zero, always: forgotten records leave nothing behind.
"""

cimport cython
from libc.string cimport memcpy, memmove, memset

from unbasket.core.buffers cimport allocated, give_back, grown


cdef Py_ssize_t roomy(Py_ssize_t length) noexcept nogil:
    return length + length // 4 + 1


cdef Py_ssize_t kept_capacity(const Row *row) noexcept nogil:
    return min(row.capacity, roomy(row.length))


@cython.final
cdef class Rows:
    """Rows of records of one width, in bytes. `used` is the end of the last row, `size` the room there is."""

    def __cinit__(self, size_t width):
        self.width = width
        self.rows = <Row *> allocated(0, sizeof(Row))
        self.data = <char *> allocated(0, width)

    def __dealloc__(self):
        give_back(self.rows, self.count * sizeof(Row))
        give_back(self.data, self.size * self.width)

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil:
        """Make sure that there are at least `count` rows; new ones are empty."""
        if count > self.count:
            count += count // 4
            self.rows = <Row *> grown(self.rows, self.count, count, sizeof(Row))
            self.count = count
        return 0

    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Give a row capacity for `length` records: exactly that much at first, then with room to grow."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *place = &self.rows[row]
        if length <= place.capacity:
            return 0
        if place.capacity > 0:
            length = roomy(length)
        self.make_room(length)
        cdef char *old = self.data + place.start * self.width
        memcpy(self.data + self.used * self.width, old, place.length * self.width)
        memset(old, 0, place.length * self.width)
        place.start = self.used
        place.capacity = length
        self.used += length
        return 0

    cpdef int make_room(self, Py_ssize_t records) except -1 nogil:
        """Make sure that so many records can be added without laying the pool out anew; it gets a quarter to spare."""
        cdef Py_ssize_t live = 0, row
        if self.used + records <= self.size:
            return 0
        for row in range(self.count):
            live += kept_capacity(&self.rows[row])
        return self._lay_out(live + live // 4 + records)

    cdef int _lay_out(self, Py_ssize_t size) except -1 nogil:
        """Move all rows, tightly packed, into an array of this size; the old one is wiped."""
        cdef char *data = <char *> allocated(size, self.width)
        cdef Py_ssize_t used = 0, i
        cdef Row *row
        for i in range(self.count):
            row = &self.rows[i]
            row.capacity = kept_capacity(row)
            memcpy(data + used * self.width, self.data + row.start * self.width, row.length * self.width)
            row.start = used
            used += row.capacity
        give_back(self.data, self.size * self.width)
        self.data, self.size, self.used = data, size, used
        return 0

    cpdef Py_ssize_t open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil:
        """Make room for `count` records before `position` of a row; returns the place of the first."""
        cdef Py_ssize_t length = self.length(row)
        assert 0 <= position <= length and count >= 0, "a gap outside the row"
        self.reserve(row, length + count)
        cdef char *gap = self.data + (self.rows[row].start + position) * self.width
        memmove(gap + count * self.width, gap, (length - position) * self.width)
        self.rows[row].length = length + count
        return self.rows[row].start + position

    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil:
        """Remove `count` records from `position` of a row on."""
        cdef Py_ssize_t left = self.length(row) - count
        assert 0 <= position <= left and count >= 0, "a gap outside the row"
        cdef char *first = <char *> self.first(row)
        cdef char *gap = first + position * self.width
        memmove(gap, gap + count * self.width, (left - position) * self.width)
        memset(first + left * self.width, 0, count * self.width)
        return self._set_length(row, left)

    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Note a row's new length; an empty row gives its place back."""
        self.rows[row].length = length
        if length == 0:
            self.rows[row].start = self.rows[row].capacity = 0
        return 0

    cpdef Py_ssize_t append(self, Py_ssize_t row) except -1 nogil:
        """Add a record at the end of a row; returns its place."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *place = &self.rows[row]
        if place.length == place.capacity:
            self.reserve(row, place.length + 1)
        place.length += 1
        return place.start + place.length - 1

    cpdef int pop(self, Py_ssize_t row) except -1 nogil:
        """Remove the last record of a row."""
        cdef Py_ssize_t left = self.length(row) - 1
        assert left >= 0, "nothing to remove"
        memset(<char *> self.first(row) + left * self.width, 0, self.width)
        return self._set_length(row, left)

    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil:
        """Remove all records of a row."""
        memset(self.first(row), 0, self.length(row) * self.width)
        return self._set_length(row, 0)
