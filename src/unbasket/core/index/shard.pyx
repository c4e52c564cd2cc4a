"""A shard of the index: the vectors of some users, and for every item its postings, the rows with the item.

The number of rows is fixed, so work on a whole shard has a bounded cost, and the accumulators of a search fit into a
cache. Memory for all rows is reserved at once; the system provides pages when they are first used.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, release, set_memory
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport FoldWorkspace, Rule, VectorEntry, rounded_weight


cdef extern from *:
    void prefetch "__builtin_prefetch"(const void *memory) noexcept nogil

cdef enum:
    AHEAD = 8  # entries whose postings are on their way while one is changed


cdef void drop(void *memory, size_t used, size_t bytes) noexcept nogil:
    """Wipe the used part of memory, then free it: the system has never provided the rest."""
    if memory != NULL:
        set_memory(memory, 0, used)
        release(memory, bytes)


@cython.final
cdef class Shard:
    """Vectors by row, postings by item, and by row the squared norm, the scale, the user and the user's hub number."""

    def __cinit__(self, Py_ssize_t size):
        self.size = size
        self.vectors = JaggedArray(sizeof(VectorEntry))
        self.postings = JaggedArray(sizeof(Posting))
        self.norm = <int64_t *> allocated(size + BLOCK_ROWS, sizeof(int64_t))  # a search reads past the end
        self.owner = <uint32_t *> allocated(size, sizeof(uint32_t))
        self.scale = <uint32_t *> allocated(size, sizeof(uint32_t))
        self.hub_number = <uint32_t *> allocated(size, sizeof(uint32_t))

    def __dealloc__(self):
        drop(self.norm, self.end * sizeof(int64_t), (self.size + BLOCK_ROWS) * sizeof(int64_t))
        drop(self.owner, self.end * sizeof(uint32_t), self.size * sizeof(uint32_t))
        drop(self.scale, self.end * sizeof(uint32_t), self.size * sizeof(uint32_t))
        drop(self.hub_number, self.end * sizeof(uint32_t), self.size * sizeof(uint32_t))

    cdef int open(self, Py_ssize_t row, uint32_t owner) except -1 nogil:
        """Give a free row to a user, whose vector is put there next."""
        assert 0 <= row < self.size and self.norm[row] == 0, "no such row, or not free"
        self.vectors.add_rows(row + 1)
        self.end = max(self.end, row + 1)
        self.owner[row] = owner

    cdef int64_t put(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil:
        """Replace a vector by the fold in the workspace; return its squared norm: O(items of the user).

        Items whose weight rounds to zero are not in the index. Sets `last` to zero for the items that the vector had
        before, which tells new items apart.
        """
        assert 0 <= row < self.end, "no such row"
        cdef int64_t norm = self._change_entries(row, space, rule)
        norm += self._add_entries(row, space, rule)
        self.vectors.trim(row)
        self.norm[row], self.scale[row] = norm, rule.scale(space.groups) if norm else 0
        return norm

    cdef int64_t _change_entries(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil:
        """Update or remove the entries of a vector; return the sum of their squared weights."""
        cdef VectorEntry *entries = self.vector(row)
        cdef VectorEntry *entry
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i = 0
        while i < self.vectors.length(row):
            entry = entries + i
            if i + AHEAD < self.vectors.length(row):
                prefetch(<Posting *> self.postings.first(entry[AHEAD].item) + entry[AHEAD].posting)
            value = 0
            assert entry.item < space.room, "no such item"
            if space.levels[entry.item].last != 0:
                value = rounded_weight(space, entry.item, rule)
                space.levels[entry.item].last = 0
            if value == 0:
                self._remove(row, i)
                continue
            if value != entry.weight:
                entry.weight = <uint32_t> value
                (<Posting *> self.postings.first(entry.item))[entry.posting].weight = entry.weight
            norm += value * value
            i += 1
        return norm

    cdef int64_t _add_entries(self, Py_ssize_t row, FoldWorkspace space, Rule rule) except -1 nogil:
        """Add the items that a vector lacks; return the sum of their squared weights."""
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i
        for i in range(space.count):
            if space.levels[space.touched[i]].last != 0:
                value = rounded_weight(space, space.touched[i], rule)
                if value != 0:
                    self.add(row, space.touched[i], <uint32_t> value)
                    norm += value * value
        return norm

    cdef int add(self, Py_ssize_t row, uint32_t item, uint32_t value) except -1 nogil:
        """Add an entry to a vector that lacks the item."""
        cdef uint32_t posting = <uint32_t> self.postings.length(item)
        (<Posting *> self.postings.append(item))[0] = Posting(<uint32_t> row, value)
        (<VectorEntry *> self.vectors.append(row))[0] = VectorEntry(item, value, posting)

    cdef int _remove(self, Py_ssize_t row, Py_ssize_t i) except -1 nogil:
        """Remove an entry of a vector. The last entry of the vector and the last posting of the item fill the gaps."""
        cdef VectorEntry *entries = self.vector(row)
        cdef VectorEntry *moved
        cdef uint32_t item = entries[i].item, posting = entries[i].posting
        cdef Posting *postings = <Posting *> self.postings.first(item)
        cdef Py_ssize_t last = self.postings.length(item) - 1
        assert posting <= last and postings[posting].row == row, "an entry without its posting"
        if posting != last:
            postings[posting] = postings[last]
            moved = self.vector(postings[posting].row)
            while moved.item != item:
                moved += 1
            moved.posting = posting
        self.postings.pop(item)
        self.postings.trim(item)
        last = self.vectors.length(row) - 1
        if i != last:
            entries[i] = entries[last]
        return self.vectors.pop(row)
