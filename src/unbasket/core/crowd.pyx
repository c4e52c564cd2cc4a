"""The crowd: the k users with the smallest norms, whose vectors are summed in advance.

In Euclidean space small vectors are near to everyone, so most neighborhoods are the crowd but for a few users. A
query adds those few, subtracts the members that are not its neighbors, and is done with a fifth of the work. Sums
are exact integers, so the result is the very one of adding up all neighbors; who is in the crowd is only a matter
of speed, and is chosen anew from time to time.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.stdlib cimport qsort
from libc.string cimport memset

from unbasket.core.buffers cimport allocated, give_back, grown
from unbasket.core.vector cimport Entry


cdef struct Listed:
    int64_t total
    uint32_t item


cdef int larger_first(const void *one, const void *other) noexcept nogil:
    cdef int64_t a = (<const Listed *> one).total, b = (<const Listed *> other).total
    return (a < b) - (a > b)


@cython.final
cdef class Crowd:
    """Members, the sum of their vectors per item, and a list of the items that have one: `items`, their sums `listed`.

    `place` is an item's position in that list, from 1 on; `peaks` has the largest sum of each BLOCK of the list;
    `count` is the length of the list, `records` the total length of the members' vectors, `age` the number of changes
    to the index since the members were chosen.
    """

    def __cinit__(self, Py_ssize_t size):
        self.size = size

    def __dealloc__(self):
        give_back(self.members, self.user_room * sizeof(uint32_t))
        give_back(self.is_member, self.user_room * sizeof(uint8_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.place, self.item_room * sizeof(int32_t))
        give_back(self.items, self.item_room * sizeof(uint32_t))
        give_back(self.listed, self.item_room * sizeof(int64_t))
        give_back(self.peaks, self.item_room // BLOCK * sizeof(int64_t))

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`: whole blocks of them."""
        cdef Py_ssize_t room = self.item_room
        if users > self.user_room:
            self.members = <uint32_t *> grown(self.members, self.user_room, users, sizeof(uint32_t))
            self.is_member = <uint8_t *> grown(self.is_member, self.user_room, users, sizeof(uint8_t))
            self.user_room = users
        if items > room:
            items = (items + BLOCK - 1) // BLOCK * BLOCK
            self.sums = <int64_t *> grown(self.sums, room, items, sizeof(int64_t))
            self.place = <int32_t *> grown(self.place, room, items, sizeof(int32_t))
            self.items = <uint32_t *> grown(self.items, room, items, sizeof(uint32_t))
            self.listed = <int64_t *> grown(self.listed, room, items, sizeof(int64_t))
            self.peaks = <int64_t *> grown(self.peaks, room // BLOCK, items // BLOCK, sizeof(int64_t))
            self.item_room = items
        return 0

    cdef int dissolve(self) except -1 nogil:
        """Let there be no members."""
        cdef Py_ssize_t i
        for i in range(self.member_count):
            self.is_member[self.members[i]] = False
            self.members[i] = 0
        for i in range(self.count):
            self.sums[self.items[i]] = 0
            self.place[self.items[i]] = 0
            self.items[i] = 0
            self.listed[i] = 0
        if self.peaks != NULL:
            memset(self.peaks, 0, self.item_room // BLOCK * sizeof(int64_t))
        self.member_count = self.count = self.records = self.age = 0
        return 0

    cdef int enter(self, uint32_t user) except -1 nogil:
        """Make a user, whose vector is to be joined next, a member."""
        assert user < self.user_room and not self.is_member[user], "no such user, or a member already"
        self.members[self.member_count] = user
        self.member_count += 1
        self.is_member[user] = True
        return 0

    cdef int leave(self, uint32_t user) except -1 nogil:
        """Strike a member whose vector is gone off the list."""
        cdef Py_ssize_t i, kept = 0
        for i in range(self.member_count):
            if self.members[i] != user:
                self.members[kept] = self.members[i]
                kept += 1
        for i in range(kept, self.member_count):
            self.members[i] = 0
        self.member_count = kept
        self.is_member[user] = False
        return 0

    cdef int join(self, const Entry *vector, Py_ssize_t length, int sign) except -1 nogil:
        """Add a member's vector to the sums, or take it out with a `sign` of -1; the list has the items with a sum."""
        cdef Py_ssize_t i
        cdef uint32_t item
        for i in range(length):
            item = vector[i].item
            assert item < self.item_room, "no such item"
            self.sums[item] += sign * <int64_t> vector[i].weight
            if self.place[item] == 0:
                self.items[self.count] = item
                self.count += 1
                self.place[item] = <int32_t> self.count
            self._list(self.place[item] - 1, self.sums[item])
            if self.sums[item] == 0:
                self._unlist(item)
        self.records += sign * length
        return 0

    cdef void _unlist(self, uint32_t item) noexcept nogil:
        """Take an item off the list; the last one takes its place."""
        cdef Py_ssize_t last = self.count - 1, hole = self.place[item] - 1
        cdef uint32_t moved = self.items[last]
        self.items[hole], self.place[moved] = moved, <int32_t> hole + 1
        self._list(hole, self.listed[last])
        self._list(last, 0)
        self.items[last], self.place[item] = 0, 0
        self.count = last

    cdef void _list(self, Py_ssize_t position, int64_t total) noexcept nogil:
        """Set a sum of the list; the peak of its block is looked for anew if it was this one and has sunk."""
        cdef Py_ssize_t block = position // BLOCK, i
        cdef int64_t old = self.listed[position], peak = self.peaks[block]
        self.listed[position] = total
        if old == peak and total < peak:
            peak = total
            for i in range(block * BLOCK, block * BLOCK + BLOCK):
                peak = max(peak, self.listed[i])
        self.peaks[block] = max(peak, total)

    cdef int sort(self) except -1 nogil:
        """Put the largest sums first on the list, which makes the peaks tell."""
        cdef Listed *best = <Listed *> allocated(self.count, sizeof(Listed))
        cdef Py_ssize_t i
        for i in range(self.count):
            best[i] = Listed(self.listed[i], self.items[i])
        qsort(best, self.count, sizeof(Listed), larger_first)
        for i in range(self.count):
            self.items[i], self.listed[i] = best[i].item, best[i].total
            self.place[best[i].item] = <int32_t> i + 1
        for i in range(self.item_room // BLOCK):
            self.peaks[i] = self.listed[i * BLOCK]  # the first of a block is its largest
        give_back(best, self.count * sizeof(Listed))
        return 0
