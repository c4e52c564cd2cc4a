"""The live index: events change a history, and its user's checkpoints, vector and position in the pool follow at once.

A change drops the checkpoints behind it, replays the fold from the newest one left, and puts the vector into the index.

With a pool, the index has only the vectors of users in the pool. A new or removed user may move another user into or
out of it. Learned sums have the shares of all users, in the pool or not.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t, uint64_t

from unbasket.core.index.index cimport Index
from unbasket.core.index.pool cimport Pool
from unbasket.core.index.shard cimport Shard
from unbasket.core.memory.buffers cimport allocated, give_back
from unbasket.core.memory.jagged cimport JaggedArray
from unbasket.core.model.checkpoints cimport Checkpoints
from unbasket.core.model.events cimport Batch, EventApplier
from unbasket.core.model.fold cimport FoldWorkspace, Rule, VectorEntry, rounded, rounded_weight
from unbasket.core.model.history cimport Histories
from unbasket.core.model.learned cimport LearnedSums, Regression, regression_of


@cython.final
cdef class LiveIndex(EventApplier):
    """An event applier that keeps checkpoints, index, hubs, pool and learned sums up to date."""

    def __init__(self, Histories histories, Rule rule, Index index, Pool pool=None, LearnedSums sums=None):
        assert rule.learns == (sums is not None), "sums are for learned weights"
        EventApplier.__init__(self, histories, rule)
        self.checkpoints = Checkpoints()
        self.index = index
        self.pool = pool
        self.space = FoldWorkspace()
        self.sums = sums
        self.rounded = JaggedArray(sizeof(VectorEntry))
        self.rounded.add_rows(1)

    def admit(self, Py_ssize_t users, Py_ssize_t items):
        self.histories.admit(users, items)
        self.checkpoints.admit(users)
        self.index.admit(users, items)
        if self.pool is not None:
            self.pool.admit(users)
        if self.sums is not None:
            self.sums.admit(users, items)

    cdef bint in_pool(self, Py_ssize_t user) except -1 nogil:
        """Return whether a user's vector belongs into the index."""
        return self.pool is None or self.pool.holds(user)

    def join(self, Py_ssize_t user, uint64_t priority):
        """Add a new user to the pool or its waiting list; a user pushed out of the pool leaves the index."""
        assert self.pool is not None, "no pool"
        cdef Py_ssize_t leaver = self.pool.add(<uint32_t> user, priority)
        if leaver >= 0:
            self.space.widen(self.histories.item_room)
            self.index.put(leaver, self.space, self.rule)

    def leave(self, Py_ssize_t user):
        """Remove a user without baskets from the pool or its waiting list; a user who enters it enters the index."""
        assert self.pool is not None, "no pool"
        cdef Py_ssize_t entrant = self.pool.remove(<uint32_t> user)
        if entrant >= 0:
            with nogil:
                self.replay(entrant)
                self.index.update_hubs()

    def refresh(self, Py_ssize_t user):
        """Rebuild a user's checkpoints and vector from a history that another applier changed."""
        with nogil:
            self.changed(user, 0)

    def withdraw(self, Py_ssize_t user):
        """Remove a user from checkpoints, index and pool, whatever the history says."""
        self.checkpoints.drop_from(user, 0)
        self.space.widen(self.histories.item_room)
        self.index.put(user, self.space, self.rule)
        self.leave(user)

    def vector_of(self, Py_ssize_t user, FoldWorkspace space):
        """Return a user's fixed-point vector: a copy from the index, or folded if the user is not in the pool."""
        if self.in_pool(user):
            return self.index.vector_of(user)
        with nogil:
            self.checkpoints.peek(self.histories, user, self.rule, space)
        return rounded(space, self.rule)

    cdef int changing(self, Py_ssize_t user) except -1 nogil:
        """Subtract the user's share from the learned sums, while the history that it follows from is still there."""
        if self.sums is not None and self.sums.counts(user):
            self.remove_share(user)
        return 0 if self.successor is None else self.successor.changing(user)

    cdef int remove_share(self, Py_ssize_t user) except -1 nogil:
        cdef Py_ssize_t slot = self.index.slot_of(user)
        if slot >= 0:
            return self.sums.remove(user, self.index.vector(slot), self.index.length(slot))
        self.checkpoints.peek(self.histories, user, self.rule, self.space)
        self.sums.remove(user, self._rounded(), self.space.count)
        self.rounded.clear_row(0)
        return self.space.clean()

    cdef int add_share(self, Py_ssize_t user, Regression regression) except -1 nogil:
        """Add the share of a user whose vector is in the index by now, or still in the workspace."""
        cdef Py_ssize_t slot = self.index.slot_of(user)
        if slot >= 0:
            return self.sums.add(user, self.index.vector(slot), self.index.length(slot), regression)
        self.sums.add(user, self._rounded(), self.space.count, regression)
        return self.rounded.clear_row(0)

    cdef VectorEntry *_rounded(self) except NULL nogil:
        """Return the entries of the vector in the workspace."""
        cdef VectorEntry *entries = <VectorEntry *> self.rounded.open_gap(0, 0, self.space.count)
        cdef Py_ssize_t i
        for i in range(self.space.count):
            entries[i].item = self.space.touched[i]
            entries[i].weight = <uint32_t> rounded_weight(self.space, entries[i].item, self.rule)
        return entries

    cdef bint lacks_share(self, Py_ssize_t user) except -1 nogil:
        """Return whether the user's share is missing in the learned sums."""
        return self.sums is not None and not self.sums.counts(user) and self.histories.baskets.length(user) > 0

    cdef int changed(self, Py_ssize_t user, Py_ssize_t position) except -1 nogil:
        self.checkpoints.drop_from(user, position)
        self.replay(user)
        return self.index.update_hubs() if self.in_pool(user) else 0

    cdef int replay(self, Py_ssize_t user) except -1 nogil:
        """Fold a history from its newest checkpoint on, add its share, and put the vector of a user in the pool in."""
        cdef bint in_pool = self.in_pool(user), lacks_share = self.lacks_share(user)
        if not in_pool and not lacks_share and self.histories.baskets.length(user) <= self.rule.stride:
            return 0  # too short for checkpoints
        self.checkpoints.fold(self.histories, user, self.rule, self.space)
        cdef Regression regression = regression_of(self.rule, self.space) if lacks_share else Regression(0, 0)
        if in_pool:
            self.index.put(user, self.space, self.rule)
        if lacks_share:
            self.add_share(user, regression)
        return self.space.clean()

    # Bulk load: no user is in the index before, and with a pool all users have joined it.

    cdef int reserve(self, const Batch *batch) except -1:
        try:
            EventApplier.reserve(self, batch)
            with nogil:
                self._claim_slots(batch)
        except MemoryError:
            self._release_slots(batch)
            raise

    cdef int loaded(self, const Batch *batch) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(batch.count):
            self.replay(batch.users[i])
        return self.index.choose_hubs()

    cdef int _claim_slots(self, const Batch *batch) except -1 nogil:
        """Give slots to the new users in the pool, and reserve memory for their entries."""
        cdef Py_ssize_t i
        for i in range(batch.count):
            if self.in_pool(batch.users[i]):
                self.index.claim(batch.users[i])
        for i in range(self.index.shard_count):
            reserve_shard(self.index, batch, i)

    cdef int _release_slots(self, const Batch *batch) except -1 nogil:
        cdef Py_ssize_t slot, i
        for i in range(batch.count):
            slot = self.index.slot_of(batch.users[i])
            if slot >= 0:
                self.index.release(slot)


cdef int reserve_shard(Index index, const Batch *batch, Py_ssize_t number) except -1 nogil:
    """Reserve room for the new entries of a shard: no row moves while they are added."""
    cdef Py_ssize_t room = index.item_room, size = 2 * room + index.shard_size, user, slot, row, i, first = 0
    cdef int64_t *memory = <int64_t *> allocated(size, sizeof(int64_t))
    cdef int64_t *users = memory  # by item: new users of the shard who have it
    cdef int64_t *newest = memory + room  # by item: the last user seen with it, counted from 1
    cdef int64_t *items = memory + 2 * room  # by row: distinct items of the new user
    cdef void *shard = index.table[number]
    cdef uint32_t item
    for user in range(batch.count):
        slot = index.slot_of(batch.users[user])
        if slot >= 0 and slot // index.shard_size == number:
            for i in range(first, batch.item_ends[user]):
                item = batch.items[batch.purchases[i]]
                if newest[item] != user + 1:
                    newest[item] = user + 1
                    users[item] += 1
                    items[index.row_of(slot)] += 1
        first = batch.item_ends[user]
    for i in range(room):
        if users[i]:
            (<Shard> shard).postings.reserve(i, (<Shard> shard).postings.length(i) + users[i])
    for row in range((<Shard> shard).end):
        if items[row]:
            (<Shard> shard).vectors.reserve(row, items[row])
    give_back(memory, size * sizeof(int64_t))
