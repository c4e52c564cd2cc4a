"""A shard of the index: the vectors of some users, and for every item its postings: the rows of those who have it.

A shard has a fixed number of rows, so whatever is done to a shard as a whole has a bounded cost, and the accumulators of
a search fit into a cache. Its memory is reserved when it is made, and taken by the system when it is first used.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, release, set_memory
from unbasket.core.model.fold cimport weight
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.workspace cimport FoldWorkspace
from unbasket.core.model.vector cimport VectorEntry


cdef void drop(void *memory, size_t used, size_t bytes) noexcept nogil:
    """Wipe what was used of memory, then free it: the rest was never taken from the system."""
    if memory != NULL:
        set_memory(memory, 0, used)
        release(memory, bytes)


@cython.final
cdef class Shard:
    """Vectors and, for each, its squared norm, the code of its user, and its number in the hubs (from 1; 0: none).

    JaggedArray from `end` on have never been used. A row with a norm of 0 is nobody's.
    """

    def __cinit__(self, Py_ssize_t size):
        self.size = size
        self.vectors = JaggedArray(sizeof(VectorEntry))
        self.postings = JaggedArray(sizeof(Posting))
        self.norm = <int64_t *> allocated(size + BLOCK_ROWS, sizeof(int64_t))  # the last few are never used
        self.owner = <uint32_t *> allocated(size, sizeof(uint32_t))
        self.member = <uint32_t *> allocated(size, sizeof(uint32_t))

    def __dealloc__(self):
        drop(self.norm, self.end * sizeof(int64_t), (self.size + BLOCK_ROWS) * sizeof(int64_t))
        drop(self.owner, self.end * sizeof(uint32_t), self.size * sizeof(uint32_t))
        drop(self.member, self.end * sizeof(uint32_t), self.size * sizeof(uint32_t))

    cdef int open(self, Py_ssize_t row, uint32_t owner) except -1 nogil:
        """Let a user, whose vector is put there next, have a row."""
        assert 0 <= row < self.size and self.norm[row] == 0, "no such row, or another's"
        self.vectors.add_rows(row + 1)
        self.end = max(self.end, row + 1)
        self.owner[row] = owner
        return 0

    cdef int64_t put(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil:
        """Make a vector that of the fold in the work space; returns its squared norm: O(items of the user).

        Items whose weight rounds to zero are not in the index. Leaves `last` zero for the items that the vector had
        before, which tells the new ones apart.
        """
        assert 0 <= row < self.end, "no such row"
        cdef int64_t norm = self._change_entries(row, space, group_decay)
        norm += self._add_entries(row, space, group_decay)
        self.vectors.trim(row)
        self.norm[row] = norm
        return norm

    cdef int64_t _change_entries(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil:
        """Set the new weights of the items that a vector has; returns the sum of their squares."""
        cdef VectorEntry *entries = self.vector(row)
        cdef VectorEntry *entry
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i = 0
        while i < self.vectors.length(row):
            entry = entries + i
            value = 0
            assert entry.item < space.room, "no such item"
            if space.levels[entry.item].last != 0:
                value = fixed_point(weight(space, entry.item, group_decay))
                space.levels[entry.item].last = 0
            if value == 0:
                self._remove(row, i)
                continue
            if value != entry.weight:
                entry.weight = <uint32_t> value
                (<Posting *> self.postings.first(entry.item))[entry.place].weight = entry.weight
            norm += value * value
            i += 1
        return norm

    cdef int64_t _add_entries(self, Py_ssize_t row, FoldWorkspace space, double group_decay) except -1 nogil:
        """Add the items that a vector lacks; returns the sum of their squared weights."""
        cdef int64_t norm = 0, value
        cdef Py_ssize_t i
        for i in range(space.count):
            if space.levels[space.touched[i]].last != 0:
                value = fixed_point(weight(space, space.touched[i], group_decay))
                if value != 0:
                    self.add(row, space.touched[i], <uint32_t> value)
                    norm += value * value
        return norm

    cdef int add(self, Py_ssize_t row, uint32_t item, uint32_t weight) except -1 nogil:
        """Add an entry to a vector that lacks the item."""
        cdef uint32_t place = <uint32_t> self.postings.length(item)
        (<Posting *> self.postings.append(item))[0] = Posting(<uint32_t> row, weight)
        (<VectorEntry *> self.vectors.append(row))[0] = VectorEntry(item, weight, place)
        return 0

    cdef int _remove(self, Py_ssize_t row, Py_ssize_t i) except -1 nogil:
        """Remove the i-th entry of a vector. The last record of its vector, and of its item, moves into the hole."""
        cdef VectorEntry *entries = self.vector(row)
        cdef VectorEntry *moved
        cdef uint32_t item = entries[i].item, place = entries[i].place
        cdef Posting *postings = <Posting *> self.postings.first(item)
        cdef Py_ssize_t last = self.postings.length(item) - 1
        assert place <= last and postings[place].row == row, "an entry without its posting"
        if place != last:
            postings[place] = postings[last]
            moved = self.vector(postings[place].row)
            while moved.item != item:
                moved += 1
            moved.place = place
        self.postings.pop(item)
        self.postings.trim(item)
        last = self.vectors.length(row) - 1
        if i != last:
            entries[i] = entries[last]
        return self.vectors.pop(row)

    cdef int expect(self, const int64_t *having, Py_ssize_t items) except -1 nogil:
        """Reserve room for as many new entries of each item as `having` says: no row moves while they are added."""
        cdef Py_ssize_t item
        for item in range(items):
            if having[item]:
                self.postings.reserve(item, self.postings.length(item) + having[item])
        return 0
