"""The hubs: k users with the smallest norms, whose vectors are summed in advance.

In Euclidean space small vectors are near to everyone, so most neighborhoods are the hubs but for a few users. A
query adds those few, and subtracts the members who are not its neighbors: a tenth of the work (see `ranking`). Sums
are exact integers at every moment, so the result is the very one of adding up all neighbors. Who is in the hubs is
only a matter of speed; the index sees to it that those with small norms join and others leave, one by one.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.model.fold cimport VectorEntry


@cython.final
cdef class Hubs:
    """The slots of the members, the sum of their vectors per item, and a heap of the items that have one.

    No item of the heap has a larger sum than the one above it, at (place - 1) // 2. `place` is an item's place in the
    heap plus 1; `count` is how many items the heap has, `records` the total length of the members' vectors.
    """

    def __cinit__(self, Py_ssize_t size):
        self.size = size

    def __dealloc__(self):
        give_back(self.members, self.member_room * sizeof(uint32_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.place, self.item_room * sizeof(uint32_t))
        give_back(self.heap, self.item_room * sizeof(Listed))

    cdef int admit(self, Py_ssize_t items) except -1 nogil:
        """Make room for item codes below `items`."""
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            self.place = <uint32_t *> grown(self.place, self.item_room, items, sizeof(uint32_t))
            self.heap = <Listed *> grown(self.heap, self.item_room, items, sizeof(Listed))
            self.item_room = items
        return 0

    cdef Py_ssize_t enter(self, Py_ssize_t slot) except -1 nogil:
        """Make a user, whose vector is to be joined next, a member; returns the member's number, from 1 on."""
        cdef Py_ssize_t room = 2 * self.member_count + 8
        assert self.member_count < self.size, "the hubs is full"
        if self.member_count == self.member_room:
            self.members = <uint32_t *> grown(self.members, self.member_room, room, sizeof(uint32_t))
            self.member_room = room
        self.members[self.member_count] = <uint32_t> slot
        self.member_count += 1
        return self.member_count

    cdef int leave(self, Py_ssize_t number) except -1 nogil:
        """Strike the member of this number, whose vector is taken out already, off the list; the last one gets it."""
        assert 0 < number <= self.member_count, "no such member"
        self.member_count -= 1
        self.members[number - 1] = self.members[self.member_count]
        self.members[self.member_count] = 0
        return 0

    cdef int join(self, const VectorEntry *vector, Py_ssize_t length, int sign) except -1 nogil:
        """Add a member's vector to the sums, or take it out with a `sign` of -1; the heap has the items with a sum."""
        cdef Py_ssize_t i
        cdef uint32_t item
        for i in range(length):
            item = vector[i].item
            assert item < self.item_room, "no such item"
            self.sums[item] += sign * <int64_t> vector[i].weight
            if self.sums[item] == 0:
                self._unlist(item)
                continue
            if self.place[item] == 0:
                self.count += 1
                self.place[item] = <uint32_t> self.count
            self._sift(self.place[item] - 1, Listed(self.sums[item], item))
        self.records += sign * length
        return 0

    cdef void _unlist(self, uint32_t item) noexcept nogil:
        """Take an item out of the heap; the last one takes its place."""
        cdef Py_ssize_t hole = <Py_ssize_t> self.place[item] - 1
        cdef Listed last = self.heap[self.count - 1]
        self.heap[self.count - 1] = Listed(0, 0)
        self.place[item] = 0
        self.count -= 1
        if hole < self.count:
            self._sift(hole, last)

    cdef void _sift(self, Py_ssize_t place, Listed listed) noexcept nogil:
        """Put an item and its sum into the hole at a place of the heap, or where the order of the heap wants it."""
        cdef Py_ssize_t other = (place - 1) // 2
        while place > 0 and self.heap[other].total < listed.total:
            self.heap[place] = self.heap[other]
            self.place[self.heap[place].item] = <uint32_t> place + 1
            place, other = other, (other - 1) // 2
        other = 2 * place + 1
        while other < self.count:
            other += other + 1 < self.count and self.heap[other + 1].total > self.heap[other].total
            if self.heap[other].total <= listed.total:
                break
            self.heap[place] = self.heap[other]
            self.place[self.heap[place].item] = <uint32_t> place + 1
            place, other = other, 2 * other + 1
        self.heap[place] = listed
        self.place[listed.item] = <uint32_t> place + 1
