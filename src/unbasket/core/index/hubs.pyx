"""The hubs: k users with the smallest norms, whose vectors are summed in advance.

In Euclidean space small vectors are near to every query ("hubness"), so most neighborhoods are the hubs except for a
few users. A query adds these users and subtracts the hubs that are not its neighbors: a tenth of the work (see
`scoring`). Sums are exact integers at every moment, so the result equals the sum over all neighbors. The choice of hubs
affects only speed; the index replaces hubs one by one as norms change.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.fold cimport VectorEntry, scaled_weight


@cython.final
cdef class Hubs:
    """The slots of the hubs, the sum of their vectors per item, and a heap of the items by their sums."""

    def __cinit__(self, Py_ssize_t size):
        self.size = size
        self.unsettled = JaggedArray(sizeof(uint32_t))
        self.unsettled.add_rows(1)

    def __dealloc__(self):
        give_back(self.slots, self.hub_room * sizeof(uint32_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.heap_position, self.item_room * sizeof(uint32_t))
        give_back(self.heap, self.item_room * sizeof(HubSum))

    cdef int admit(self, Py_ssize_t items) except -1 nogil:
        """Make room for item codes below `items`."""
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            self.heap_position = <uint32_t *> grown(self.heap_position, self.item_room, items, sizeof(uint32_t))
            self.heap = <HubSum *> grown(self.heap, self.item_room, items, sizeof(HubSum))
            self.item_room = items

    cdef Py_ssize_t add(self, Py_ssize_t slot) except -1 nogil:
        """Make a user a hub, whose vector is added next; return the hub's number, counted from 1."""
        cdef Py_ssize_t room = 2 * self.hub_count + 8
        assert self.hub_count < self.size, "too many hubs"
        if self.hub_count == self.hub_room:
            self.slots = <uint32_t *> grown(self.slots, self.hub_room, room, sizeof(uint32_t))
            self.hub_room = room
        self.slots[self.hub_count] = <uint32_t> slot
        self.hub_count += 1
        return self.hub_count

    cdef int remove(self, Py_ssize_t number) except -1 nogil:
        """Remove a hub, whose vector is subtracted already; the last hub gets its number."""
        assert 0 < number <= self.hub_count, "no such hub"
        self.hub_count -= 1
        self.slots[number - 1] = self.slots[self.hub_count]
        self.slots[self.hub_count] = 0

    cdef int add_vector(self, const VectorEntry *vector, Py_ssize_t length, uint32_t scale) except -1 nogil:
        """Add a hub's vector, times the scale, to the sums."""
        cdef Py_ssize_t i
        cdef uint32_t item
        for i in range(length):
            item = vector[i].item
            assert item < self.item_room, "no such item"
            self.sums[item] += scaled_weight(vector[i].weight, scale)
            self._settle(item)
        self.entry_count += length

    cdef int subtract_vector(self, const VectorEntry *vector, Py_ssize_t length, uint32_t scale) except -1 nogil:
        """Subtract a hub's vector, times the scale, from the sums. The heap follows in `settle`.

        In between, the hub's new vector may be added: most of its sums are about what they were.
        """
        cdef uint32_t *items = <uint32_t *> self.unsettled.open_gap(0, 0, length)
        cdef Py_ssize_t i
        for i in range(length):
            items[i] = vector[i].item
            assert items[i] < self.item_room, "no such item"
            self.sums[items[i]] -= scaled_weight(vector[i].weight, scale)
        self.entry_count -= length

    cdef int settle(self) except -1 nogil:
        """Bring the heap up to date with the vectors that were subtracted."""
        cdef const uint32_t *items = <uint32_t *> self.unsettled.first(0)
        cdef Py_ssize_t i
        for i in range(self.unsettled.length(0)):
            self._settle(items[i])
        return self.unsettled.clear_row(0)

    cdef void _settle(self, uint32_t item) noexcept nogil:
        """Put an item where its sum belongs in the heap."""
        cdef int64_t total = self.sums[item]
        cdef uint32_t position = self.heap_position[item]
        if total == 0:
            if position != 0:
                self._remove_item(item)
        elif position == 0:
            self.item_count += 1
            self._sift(self.item_count - 1, HubSum(total, item))
        elif self.heap[position - 1].total != total:
            self._sift(position - 1, HubSum(total, item))

    cdef void _remove_item(self, uint32_t item) noexcept nogil:
        """Remove an item from the heap; the last one fills the gap."""
        cdef Py_ssize_t gap = <Py_ssize_t> self.heap_position[item] - 1
        cdef HubSum last = self.heap[self.item_count - 1]
        self.heap[self.item_count - 1] = HubSum(0, 0)
        self.heap_position[item] = 0
        self.item_count -= 1
        if gap < self.item_count:
            self._sift(gap, last)

    cdef void _sift(self, Py_ssize_t position, HubSum entry) noexcept nogil:
        """Put an entry into the gap at a position of the heap, and sift it up or down."""
        cdef Py_ssize_t other = (position - 1) // 2
        while position > 0 and self.heap[other].total < entry.total:
            self.heap[position] = self.heap[other]
            self.heap_position[self.heap[position].item] = <uint32_t> position + 1
            position, other = other, (other - 1) // 2
        other = 2 * position + 1
        while other < self.item_count:
            other += other + 1 < self.item_count and self.heap[other + 1].total > self.heap[other].total
            if self.heap[other].total <= entry.total:
                break
            self.heap[position] = self.heap[other]
            self.heap_position[self.heap[position].item] = <uint32_t> position + 1
            position, other = other, 2 * other + 1
        self.heap[position] = entry
        self.heap_position[entry.item] = <uint32_t> position + 1
