"""A jagged array: rows of records that grow and shrink. Histories, vectors and postings are stored in it.

A record is any C struct: the array knows its width, and the caller casts the pointers that `first`, `append` and
`open_gap` return. Each row has memory of its own: a block of the slab allocator or, if it is long, an allocation. So
the cost of a change depends on its row, not on the number of rows. All bytes outside records are zero: forgotten
records leave no residue.
"""

cimport cython
from libc.stdint cimport UINT32_MAX, uint32_t
from libc.string cimport memcpy, memmove, memset

from unbasket.core.memory.buffers cimport allocated, check, give_back, grown, nonzero_bytes
from unbasket.core.memory.slab cimport LARGEST, SlabAllocator, bytes_of, size_class_of


@cython.final
cdef class JaggedArray:
    """Rows of records that are `width` bytes each."""

    def __cinit__(self, size_t width):
        self.width = width
        self.blocks = SlabAllocator()
        self.rows = <Row *> allocated(0, sizeof(Row))

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.count):
            if self._bytes(&self.rows[i]) > LARGEST:
                give_back(self.rows[i].first, self._bytes(&self.rows[i]))
        give_back(self.rows, self.count * sizeof(Row))

    cpdef int add_rows(self, Py_ssize_t count) except -1 nogil:
        """Grow to at least `count` rows; new ones are empty."""
        if count > self.count:
            count += count // 4
            self.rows = <Row *> grown(self.rows, self.count, count, sizeof(Row))
            self.count = count

    cpdef int reserve(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Give a row capacity for `length` records: exactly at first, later with a quarter to spare."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *header = &self.rows[row]
        if length <= header.capacity:
            return 0
        if header.capacity > 0:
            length += length // 4 + 1
        return self._move(header, length)

    cpdef int trim(self, Py_ssize_t row) except -1 nogil:
        """Shrink the capacity of a row that is less than half full."""
        assert 0 <= row < self.count, "no such row"
        cdef Row *header = &self.rows[row]
        cdef Py_ssize_t length = header.length + header.length // 4 + 1
        if 2 * header.length >= header.capacity:
            return 0
        if size_class_of(length * self.width) >= size_class_of(self._bytes(header)):
            return 0
        return self._move(header, length)

    cdef size_t _bytes(self, const Row *row) noexcept nogil:
        return row.capacity * self.width

    cdef int _move(self, Row *row, Py_ssize_t capacity) except -1 nogil:
        """Move a row to memory for at least `capacity` records; its old memory is zeroed."""
        cdef size_t old_bytes = self._bytes(row), bytes = capacity * self.width
        cdef void *memory
        assert row.length <= capacity <= UINT32_MAX, "row too long"
        if old_bytes > LARGEST and bytes > old_bytes:
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

    cdef int _give_back(self, Row *row) except -1 nogil:
        """Zero the records of a row and free its memory."""
        cdef size_t bytes = self._bytes(row)
        memset(row.first, 0, row.length * self.width)
        if bytes > LARGEST:
            give_back(row.first, bytes)
        else:
            self.blocks.free(row.first)
        row.first, row.capacity = NULL, 0

    cdef void *open_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except NULL nogil:
        """Insert `count` records before `position` of a row; return the first, for the caller to write."""
        cdef Py_ssize_t length = self.length(row)
        check(0 <= position <= length and count >= 0, "gap outside the row")
        self.reserve(row, length + count)
        cdef char *gap = <char *> self.first(row) + position * self.width
        memmove(gap + count * self.width, gap, (length - position) * self.width)
        self.rows[row].length = <uint32_t> (length + count)
        return gap

    cpdef int close_gap(self, Py_ssize_t row, Py_ssize_t position, Py_ssize_t count) except -1 nogil:
        """Remove `count` records of a row, from `position` on."""
        cdef Py_ssize_t left = self.length(row) - count
        assert 0 <= position <= left and count >= 0, "gap outside the row"
        cdef char *first = <char *> self.first(row)
        cdef char *gap = first + position * self.width
        memmove(gap, gap + count * self.width, (left - position) * self.width)
        memset(first + left * self.width, 0, count * self.width)
        self._set_length(row, left)
        return self.trim(row)

    cdef int _set_length(self, Py_ssize_t row, Py_ssize_t length) except -1 nogil:
        """Set the length of a row; free the memory of an empty one."""
        self.rows[row].length = <uint32_t> length
        if length == 0 and self.rows[row].first != NULL:
            self._give_back(&self.rows[row])

    cdef void *append(self, Py_ssize_t row) except NULL nogil:
        """Add a record at the end of a row; return it, for the caller to write."""
        check(0 <= row < self.count, "no such row")
        cdef Row *header = &self.rows[row]
        if header.length == header.capacity:
            self.reserve(row, header.length + 1)
        header.length += 1
        return <char *> header.first + (header.length - 1) * self.width

    cpdef int pop(self, Py_ssize_t row) except -1 nogil:
        cdef Py_ssize_t left = self.length(row) - 1
        assert left >= 0, "nothing to remove"
        memset(<char *> self.first(row) + left * self.width, 0, self.width)
        return self._set_length(row, left)

    cpdef int clear_row(self, Py_ssize_t row) except -1 nogil:
        assert 0 <= row < self.count, "no such row"
        memset(self.first(row), 0, self.rows[row].length * self.width)
        return self._set_length(row, 0)

    cpdef Py_ssize_t residue(self) noexcept nogil:
        """Count the nonzero bytes outside records, plus one for each block in use that no row points to."""
        cdef Py_ssize_t i, blocks = self.blocks.used
        cdef size_t used, bytes, count = self.blocks.residue()
        for i in range(self.count):
            if self.rows[i].first != NULL:
                bytes = self._bytes(&self.rows[i])
                if bytes <= LARGEST:
                    bytes = self.blocks.block_size(self.rows[i].first)
                    blocks -= 1
                used = self.rows[i].length * self.width
                count += nonzero_bytes(<char *> self.rows[i].first + used, bytes - used)
        return count + (blocks if blocks > 0 else -blocks)
