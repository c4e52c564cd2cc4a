"""The index: the vectors of users, in shards, with the norm histogram and the hubs that a search starts from.

Weights are whole multiples of 2^-24. Dot products, squared norms and sums of vectors are then exact integers, so
they do not depend on the order of summation: neither on threads, nor on shards, nor on the order of past events.
Nothing overflows: a user's weights sum to at most the size of the largest basket (each is a decayed mean of 0/1
entries) and none exceeds 1, so with baskets of at most MAX_BASKET items a squared distance stays below 2^62.

A user with a vector has a slot. A user whose vector becomes empty gives the slot back, for the next user. So the cost
of a search depends on the users in the index, and on no others.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from unbasket.core.index.hubs cimport Hubs
from unbasket.core.index.shard cimport Posting, Shard
from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.model.fold cimport FoldWorkspace, Rule, Vector, VectorEntry

MAX_BASKET = 8192
SHARD_SIZE = 1 << 17  # measured: the accumulators of a shard should fit into a cache

cdef enum:
    SLOTS_PER_EVENT = 16  # that `update_hubs` looks at


@cython.final
cdef class Index:
    """Shards, the slot of each user, a histogram of squared norms, and the hubs."""

    def __cinit__(self, Py_ssize_t hubs_size, Py_ssize_t shard_size=SHARD_SIZE):
        assert shard_size > 0 and shard_size & (shard_size - 1) == 0, "a power of two"
        self.shard_size, self.shard_bits = shard_size, shard_size.bit_length() - 1
        self.shards = []
        self.hubs = Hubs(hubs_size)

    def __dealloc__(self):
        cdef Py_ssize_t i
        for i in range(self.user_room // SEGMENT):
            give_back(self.segments[i], SEGMENT * sizeof(uint32_t))
        give_back(self.segments, self.user_room // SEGMENT * sizeof(uint32_t *))
        give_back(self.table, self.shard_count * sizeof(void *))

    cpdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        cdef Py_ssize_t count = self.user_room // SEGMENT, i
        while self.user_room < users:
            self.segments = <uint32_t **> grown(self.segments, count, count + 1, sizeof(uint32_t *))
            self.segments[count] = <uint32_t *> allocated(SEGMENT, sizeof(uint32_t))
            count += 1
            self.user_room = count * SEGMENT
        if items > self.item_room:
            for i in range(self.shard_count):
                (<Shard> self.table[i]).postings.add_rows(items)
            self.hubs.admit(items)
            self.item_room = items

    cdef int put(self, Py_ssize_t user, FoldWorkspace space, Rule rule) except -1 nogil:
        """Replace a user's vector by the fold in the workspace: O(items of the user), not of all users.

        A user without a vector gets a slot; a user whose vector becomes empty gives it back.
        """
        cdef Py_ssize_t slot = self.slot_of(user), row
        if slot < 0:
            if space.count == 0:
                return 0
            slot = self.claim(user)
        row = self.row_of(slot)
        cdef void *shard = self.shard_of(slot)
        cdef int64_t old_norm = (<Shard> shard).norm[row]
        if (<Shard> shard).hub_number[row] != 0:
            self.hubs.subtract_vector(self.vector(slot), self.length(slot), self.scale(slot))
        cdef int64_t norm = (<Shard> shard).put(row, space, rule)
        if (<Shard> shard).hub_number[row] != 0:
            self.hubs.add_vector(self.vector(slot), self.length(slot), self.scale(slot))
            self.hubs.settle()
        self.count_norm(old_norm, norm)
        if norm == 0:
            self.release(slot)

    cdef Py_ssize_t claim(self, Py_ssize_t user) except -1 nogil:
        """Give a slot to a user without one: a slot that was given back, or the next."""
        assert self.slot_of(user) < 0, "has a slot"
        cdef Py_ssize_t slot = self.unused - 1 if self.unused else self.slot_end
        if slot == self.shard_count * self.shard_size:
            self._add_shard()
        cdef uint32_t next_unused = (<Shard> self.shard_of(slot)).owner[self.row_of(slot)]
        (<Shard> self.shard_of(slot)).open(self.row_of(slot), <uint32_t> user)
        self.unused = next_unused
        self.slot_end = max(self.slot_end, slot + 1)
        self.segments[user // SEGMENT][user % SEGMENT] = <uint32_t> slot + 1
        return slot

    cdef int release(self, Py_ssize_t slot) except -1 nogil:
        """Take back a slot whose vector is empty."""
        cdef void *shard = self.shard_of(slot)
        cdef Py_ssize_t row = self.row_of(slot), user = (<Shard> shard).owner[row]
        if (<Shard> shard).hub_number[row] != 0:
            self._remove_hub(slot)
        self.segments[user // SEGMENT][user % SEGMENT] = 0
        (<Shard> shard).owner[row] = <uint32_t> self.unused
        self.unused = slot + 1

    cdef int _add_shard(self) except -1 nogil:
        cdef void **table = <void **> allocated(self.shard_count + 1, sizeof(void *))
        cdef Py_ssize_t i
        with gil:
            shard = Shard(self.shard_size)
            shard.postings.add_rows(self.item_room)
            self.shards.append(shard)
            table[self.shard_count] = <void *> shard
        for i in range(self.shard_count):
            table[i] = self.table[i]
        give_back(self.table, self.shard_count * sizeof(void *))
        self.table = table
        self.shard_count += 1

    cdef int count_norm(self, int64_t old_norm, int64_t norm) except -1 nogil:
        """Replace a user's squared norm in the histogram; 0 stands for no vector."""
        if old_norm != 0:
            self.norm_histogram[norm_bin(old_norm)] -= 1
        if norm != 0:
            self.norm_histogram[norm_bin(norm)] += 1

    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil:
        """Return a bound that the squared norms of at least `rank` users, or of all if they are fewer, are below."""
        cdef Py_ssize_t bin, users = 0
        for bin in range(NORM_BINS):
            users += self.norm_histogram[bin]
            if users >= rank:
                return norm_bin_end(bin)
        return <int64_t> 1 << 62

    cdef int update_hubs(self) except -1 nogil:
        """Look at the next few slots, in a circle; make the first user with a small norm a hub, or remove one hub.

        Each event does this once, at a cost that depends neither on the number of users nor on that of hubs.
        """
        for _ in range(min(SLOTS_PER_EVENT, self.slot_end)):
            if self.hand >= self.slot_end:
                self.hand = 0
            if self.hand == 0:
                self.hubs_limit = self.limit_of(self.hubs.size)
            self.hand += 1
            if self._reconsider(self.hand - 1):
                break

    cdef int choose_hubs(self) except -1 nogil:
        """Choose the hubs among all users."""
        cdef Py_ssize_t slot
        self.hubs_limit = self.limit_of(self.hubs.size)
        for slot in range(self.slot_end):  # first remove hubs, to make room
            if (<Shard> self.shard_of(slot)).hub_number[self.row_of(slot)] != 0:
                self._reconsider(slot)
        for slot in range(self.slot_end):
            self._reconsider(slot)

    cdef bint _reconsider(self, Py_ssize_t slot) except -1 nogil:
        """Make a user with a small norm a hub, or another user no hub; return whether that was a change."""
        cdef void *shard = self.shard_of(slot)
        cdef Py_ssize_t row = self.row_of(slot)
        cdef bint is_small = 0 < (<Shard> shard).norm[row] < self.hubs_limit
        cdef bint is_hub = (<Shard> shard).hub_number[row] != 0
        if is_small == is_hub or (is_small and self.hubs.hub_count == self.hubs.size):
            return False
        if is_small:
            (<Shard> shard).hub_number[row] = <uint32_t> self.hubs.add(slot)
            self.hubs.add_vector(self.vector(slot), self.length(slot), self.scale(slot))
        else:
            self.hubs.subtract_vector(self.vector(slot), self.length(slot), self.scale(slot))
            self.hubs.settle()
            self._remove_hub(slot)
        return True

    cdef int _remove_hub(self, Py_ssize_t slot) except -1 nogil:
        """Remove a hub, whose vector is subtracted already; the last hub gets its number."""
        cdef void *shard = self.shard_of(slot)
        cdef uint32_t number = (<Shard> shard).hub_number[self.row_of(slot)]
        cdef Py_ssize_t last = self.hubs.slots[self.hubs.hub_count - 1]
        (<Shard> self.shard_of(last)).hub_number[self.row_of(last)] = number
        (<Shard> shard).hub_number[self.row_of(slot)] = 0
        return self.hubs.remove(number)

    def fill(
        self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights,
        const uint32_t[::1] scales
    ):
        """Load the vectors of new users, with codes from 0 on: entries user after user, up to the `ends`."""
        assert len(ends) == len(scales) <= self.user_room and len(items) == len(weights), "equally long, and room"
        cdef Py_ssize_t user, slot, i, first = 0
        cdef int64_t norm
        cdef void *shard
        with nogil:
            for user in range(ends.shape[0]):
                norm = 0
                slot = self.claim(user)
                shard = self.shard_of(slot)
                (<Shard> shard).vectors.reserve(self.row_of(slot), ends[user] - first)
                for i in range(first, ends[user]):
                    assert items[i] < self.item_room, "no such item"
                    if weights[i] != 0:
                        (<Shard> shard).add(self.row_of(slot), items[i], weights[i])
                        norm += <int64_t> weights[i] * weights[i]
                (<Shard> shard).norm[self.row_of(slot)] = norm
                (<Shard> shard).scale[self.row_of(slot)] = scales[user] if norm else 0
                self.count_norm(0, norm)
                if norm == 0:
                    self.release(slot)
                first = ends[user]

    def rebuild_hubs(self):
        """Choose the hubs among all users."""
        with nogil:
            self.choose_hubs()

    def vector_of(self, Py_ssize_t user):
        cdef Py_ssize_t slot = self.slot_of(user), i
        if slot < 0:
            return Vector.of(0)
        cdef Vector copy = Vector.of(self.length(slot))
        copy.scale = self.scale(slot)
        cdef VectorEntry *entries = self.vector(slot)
        for i in range(self.length(slot)):
            copy.add(entries[i].item, entries[i].weight)
        return copy

    def entries(self, Py_ssize_t user):
        """Return a user's weights by item, those in the items' postings (0 if missing), the squared norm, the scale."""
        cdef Py_ssize_t slot = self.slot_of(user), row = self.row_of(slot), i
        cdef Posting *postings
        cdef VectorEntry *entry
        cdef Shard shard
        vector, posted = {}, {}
        if not 0 <= slot < self.slot_end:
            return vector, posted, 0, 0
        shard = self.shards[slot >> self.shard_bits]
        for i in range(shard.vectors.length(row)):
            entry = shard.vector(row) + i
            postings = <Posting *> shard.postings.first(entry.item)
            found = entry.posting < shard.postings.length(entry.item) and postings[entry.posting].row == row
            vector[entry.item] = entry.weight
            posted[entry.item] = postings[entry.posting].weight if found else 0
        return vector, posted, shard.norm[row], shard.scale[row]

    def holder_counts(self, const uint32_t[::1] items):
        """Return how many users have each of these items."""
        counts = np.zeros(items.shape[0], np.int64)
        cdef int64_t[::1] count = counts
        cdef Shard shard
        cdef Py_ssize_t i
        for shard in self.shards:
            for i in range(items.shape[0]):
                assert items[i] < self.item_room, "no such item"
                count[i] += shard.postings.length(items[i])
        return counts

    def entry_count(self):
        cdef Py_ssize_t row, count = 0
        cdef Shard shard
        for shard in self.shards:
            for row in range(shard.end):
                count += shard.vectors.length(row)
        return count
