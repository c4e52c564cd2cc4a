"""The live index: the vectors of users, in shards, and all that a search needs to know of them.

Weights are whole multiples of 2^-24. Dot products, squared norms and sums of vectors are then exact integers, so
they do not depend on the order of summation: neither on threads, nor on shards, nor on the order of past events.
Nothing overflows: a user's weights sum to at most the size of the largest basket (each is a decayed mean of 0/1
entries) and none exceeds 1, so with baskets of at most MAX_BASKET items a squared distance stays below 2^62.

A user who has a vector has a slot; whose vector becomes empty gives it back, for the next who gets one. So a search
costs what the users in the index cost, however many others there are.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.index.hubs cimport Hubs
from unbasket.core.index.shard cimport Posting, Shard
from unbasket.core.model.fold cimport FoldWorkspace, Vector, VectorEntry

MAX_BASKET = 8192
SHARD_SIZE = 1 << 17  # measured: accumulators of a shard should stay in a cache

cdef enum:
    GLANCES = 16  # slots that are looked at for the hubs with each event


@cython.final
cdef class Index:
    """Parts, the slot of each user, how many users there are of each magnitude of the norm, and the hubs.

    Slots from `slot_end` on have never been used. Those that were given back are chained from `unused` (a slot's number
    plus 1; 0 ends the chain), by their `owner`.
    """

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

    cdef int make_room(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
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
        return 0

    cdef int put(self, Py_ssize_t user, FoldWorkspace space, double group_decay) except -1 nogil:
        """Make a user's vector that of the fold in the work space: O(items of the user), not of all users.

        A user without a vector gets a slot; one whose vector becomes empty gives it back.
        """
        cdef Py_ssize_t slot = self.slot_of(user), row
        if slot < 0:
            if space.count == 0:
                return 0
            slot = self.claim(user)
        row = self.row_of(slot)
        cdef void *shard = self.shard_of(slot)
        cdef int64_t old_norm = (<Shard> shard).norm[row]
        if (<Shard> shard).member[row] != 0:
            self.hubs.join(self.vector(slot), self.length(slot), -1)
        cdef int64_t norm = (<Shard> shard).put(row, space, group_decay)
        if (<Shard> shard).member[row] != 0:
            self.hubs.join(self.vector(slot), self.length(slot), 1)
        self.count(old_norm, norm)
        if norm == 0:
            self.release(slot)
        return 0

    cdef Py_ssize_t claim(self, Py_ssize_t user) except -1 nogil:
        """Give a slot to a user who has none: one that was given back, or the next."""
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
        if (<Shard> shard).member[row] != 0:
            self._leave_hubs(slot)
        self.segments[user // SEGMENT][user % SEGMENT] = 0
        (<Shard> shard).owner[row] = <uint32_t> self.unused
        self.unused = slot + 1
        return 0

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
        return 0

    cdef int count(self, int64_t old_norm, int64_t norm) except -1 nogil:
        """Count a user's norm in place of the old one; one of 0 says that nothing is held of the user."""
        if old_norm != 0:
            self.population[magnitude(old_norm)] -= 1
        if norm != 0:
            self.population[magnitude(norm)] += 1
        return 0

    cdef int64_t limit_of(self, Py_ssize_t rank) noexcept nogil:
        """A squared norm that at least `rank` users stay below; the limit of all, if there are not so many."""
        cdef Py_ssize_t level, users = 0
        for level in range(MAGNITUDES):
            users += self.population[level]
            if users >= rank:
                return magnitude_end(level)
        return <int64_t> 1 << 62

    cdef int update_hubs(self) except -1 nogil:
        """Look at the next few slots, round and round: whoever has a small norm joins the hubs, others leave it.

        At most one does, and each event does this once: what it costs depends neither on the users nor on the hubs.
        """
        cdef Py_ssize_t i
        for i in range(min(GLANCES, self.slot_end)):
            if self.hand >= self.slot_end:
                self.hand = 0
            if self.hand == 0:
                self.hubs_limit = self.limit_of(self.hubs.size)
            self.hand += 1
            if self._reconsider(self.hand - 1):
                break
        return 0

    cdef int choose_hubs(self) except -1 nogil:
        """Choose the hubs anew, in one round."""
        cdef Py_ssize_t slot, i
        self.hubs_limit = self.limit_of(self.hubs.size)
        for slot in range(self.slot_end):  # first those who leave, to make room
            if (<Shard> self.shard_of(slot)).member[self.row_of(slot)] != 0:
                self._reconsider(slot)
        for slot in range(self.slot_end):
            self._reconsider(slot)
        return 0

    cdef bint _reconsider(self, Py_ssize_t slot) except -1 nogil:
        """Let a user join or leave the hubs, as the norm says; returns whether that was so."""
        cdef void *shard = self.shard_of(slot)
        cdef Py_ssize_t row = self.row_of(slot)
        cdef bint is_small = 0 < (<Shard> shard).norm[row] < self.hubs_limit
        cdef bint is_member = (<Shard> shard).member[row] != 0
        if is_small == is_member or (is_small and self.hubs.member_count == self.hubs.size):
            return False
        if is_small:
            (<Shard> shard).member[row] = <uint32_t> self.hubs.enter(slot)
            self.hubs.join(self.vector(slot), self.length(slot), 1)
        else:
            self.hubs.join(self.vector(slot), self.length(slot), -1)
            self._leave_hubs(slot)
        return True

    cdef int _leave_hubs(self, Py_ssize_t slot) except -1 nogil:
        """Strike a member off the list; the last one takes the place."""
        cdef void *shard = self.shard_of(slot)
        cdef uint32_t number = (<Shard> shard).member[self.row_of(slot)]
        cdef Py_ssize_t last = self.hubs.members[self.hubs.member_count - 1]
        (<Shard> self.shard_of(last)).member[self.row_of(last)] = number
        (<Shard> shard).member[self.row_of(slot)] = 0
        return self.hubs.leave(number)

    def admit(self, Py_ssize_t users, Py_ssize_t items):
        """Make room for user codes below `users` and item codes below `items`."""
        self.make_room(users, items)

    def fill(self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights):
        """Give vectors to new users, with codes from 0 on: entries one user after another, ending where `ends` say."""
        assert len(ends) <= self.user_room and len(items) == len(weights), "no such users, or items without weights"
        with nogil:
            self._fill(ends, items, weights)

    cdef int _fill(
        self, const int64_t[::1] ends, const uint32_t[::1] items, const uint32_t[::1] weights
    ) except -1 nogil:
        cdef Py_ssize_t user, slot, i, first = 0
        cdef int64_t norm
        cdef void *shard
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
            self.count(0, norm)
            if norm == 0:
                self.release(slot)
            first = ends[user]
        return 0

    def gather_hubs(self):
        """Choose the hubs anew."""
        with nogil:
            self.choose_hubs()

    def holds(self, Py_ssize_t user):
        """Whether a user has a vector."""
        return self.slot_of(user) >= 0

    def vector_of(self, Py_ssize_t user):
        """A copy of a user's vector."""
        cdef Py_ssize_t slot = self.slot_of(user), i
        if slot < 0:
            return Vector.of(0)
        cdef Vector copy = Vector.of(self.length(slot))
        cdef VectorEntry *entries = self.vector(slot)
        for i in range(self.length(slot)):
            copy.add(entries[i].item, entries[i].weight)
        return copy

    def entries(self, Py_ssize_t user):
        """Return a user's weights by item, the weights in the items' postings (0 if missing), and the squared norm."""
        cdef Py_ssize_t slot = self.slot_of(user), row = self.row_of(slot), i
        cdef Posting *postings
        cdef VectorEntry *entry
        cdef Shard shard
        vector, posted = {}, {}
        if not 0 <= slot < self.slot_end:
            return vector, posted, 0
        shard = self.shards[slot >> self.shard_bits]
        for i in range(shard.vectors.length(row)):
            entry = shard.vector(row) + i
            postings = <Posting *> shard.postings.first(entry.item)
            found = entry.posting < shard.postings.length(entry.item) and postings[entry.posting].row == row
            vector[entry.item] = entry.weight
            posted[entry.item] = postings[entry.posting].weight if found else 0
        return vector, posted, shard.norm[row]

    def entry_count(self):
        """Count the entries of all vectors."""
        cdef Py_ssize_t row, count = 0
        cdef Shard shard
        for shard in self.shards:
            for row in range(shard.end):
                count += shard.vectors.length(row)
        return count
