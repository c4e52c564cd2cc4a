"""Which items are best for a query whose neighbors are known: p = alpha u + (1 - alpha) mean of the neighbors.

Most neighbors of most queries are members of the hubs, whose vectors are summed in advance. So only what the other
neighbors have is added up. To that come the hubs's sums, less what those members have who are no neighbors. These are
looked at last, and only for contenders, the items that may be among the n best: what an item has without the hubs is
the least that it may have in the end, and with all of the hubs it is the most. An item is a contender if its most is
as good as the n-th best least.

Sums are exact integers, and a score, rounded as it is, never falls when a sum rises. So the answer is the very one of
scoring all items by all neighbors.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from unbasket.core.util.topn cimport TopN
from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.index.hubs cimport HubSum
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport KnnQuery, Scan
from unbasket.core.index.shard cimport Shard
from unbasket.core.model.fold cimport VectorEntry

cdef extern from "search/prefetch.h" nogil:
    void prefetch(const void *memory, size_t bytes)

cdef enum:
    AHEAD = 4  # vectors that are asked for before they are needed

cdef int64_t BIAS = 1 << 61  # what a sum is stored with, to tell one of 0 from none; no sum comes near it
cdef int64_t BANNED = -1  # in place of an item's sum


cdef inline uint32_t number_in_hubs(Index index, Py_ssize_t slot) noexcept nogil:
    """The number of a member of the hubs, from 1 on; 0 of one who is none."""
    return (<Shard> index.shard_of(slot)).hub_number[index.row_of(slot)]


@cython.final
cdef class Scorer:
    """Work space of one ranking at a time; all zero between two.

    Per item: the sum over neighbors, plus BIAS; the query's own weight, where only some items are allowed; and whether
    it is a contender. Lists of the items seen, and of the contenders with the query's own weights. Per member of the
    hubs, whether they are a neighbor, and a list of those who are not.
    """

    def __cinit__(self):
        self.best = TopN()

    def __dealloc__(self):
        give_back(self.is_near, self.member_room * sizeof(uint8_t))
        give_back(self.absent, (self.member_room + 1) * sizeof(uint32_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.seen, (self.item_room + 1) * sizeof(uint32_t))
        give_back(self.own, self.item_room * sizeof(uint32_t))
        give_back(self.contenders, self.item_room * sizeof(Contender))
        give_back(self.is_contender, self.item_room * sizeof(uint8_t))

    cdef int widen(self, Py_ssize_t items, Py_ssize_t members) except -1 nogil:
        """Make room for item codes below `items`, and for so many members of the hubs."""
        if members > self.member_room:
            self.is_near = <uint8_t *> grown(self.is_near, self.member_room, members, sizeof(uint8_t))
            self.absent = <uint32_t *> grown(self.absent, self.member_room + 1, members + 1, sizeof(uint32_t))
            self.member_room = members
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            # One place more than there are items: appending needs no branch.
            self.seen = <uint32_t *> grown(self.seen, self.item_room + 1, items + 1, sizeof(uint32_t))
            self.own = <uint32_t *> grown(self.own, self.item_room, items, sizeof(uint32_t))
            self.contenders = <Contender *> grown(self.contenders, self.item_room, items, sizeof(Contender))
            self.is_contender = <uint8_t *> grown(self.is_contender, self.item_room, items, sizeof(uint8_t))
            self.item_room = items
        return 0

    cdef bint uses_hubs(self, Index index, Scan near) except -1 nogil:
        """Whether it is less work to start from the hubs's sums than from zero."""
        cdef Py_ssize_t i, shared = 0
        for i in range(near.found):
            shared += number_in_hubs(index, near.candidates[i].slot) != 0
        return index.hubs.hub_count < 4 * shared

    cdef int rank(
        self, Index index, Scan near, const KnnQuery *query, double alpha, const uint32_t[::1] banned,
        const uint32_t[::1] allowed
    ) except -1 nogil:
        """Find the best items, with the neighbors that were found, who are forgotten."""
        cdef bint hubs = self.uses_hubs(index, near)
        cdef Mixture mixture = Mixture(alpha, (1.0 - alpha) / max(near.found, 1))
        cdef Py_ssize_t i
        self.widen(index.item_room, index.hubs.hub_room)
        self.begin(query)
        self.add_neighbors(index, near, hubs)
        near.forget()
        if banned is not None:
            for i in range(banned.shape[0]):
                assert banned[i] < self.item_room, "no such item"
                self.sums[banned[i]] = BANNED
        if allowed is None:
            self.consider_all(query, &mixture, index.hubs.heap[0].total if hubs else 0)
        else:
            self.consider_some(query, &mixture, index.hubs.sums if hubs else NULL, allowed)
        if hubs:
            self.decide(index, &mixture, allowed is None)
        return self.finish(banned)

    cdef int begin(self, const KnnQuery *query) except -1 nogil:
        """See the query's own items, before all others."""
        cdef Py_ssize_t i
        for i in range(query.length):
            assert query.entries[i].item < self.item_room, "no such item"
            self.sums[query.entries[i].item] = BIAS
            self.seen[i] = query.entries[i].item
        self.seen_count = query.length
        return 0

    cdef int add_neighbors(self, Index index, Scan near, bint hubs) except -1 nogil:
        """Add up the vectors of the neighbors; with the hubs, of those who are not in it, and note who is absent."""
        cdef Py_ssize_t i, slot, number, others = 0
        for i in range(near.found):
            slot = near.candidates[i].slot
            number = number_in_hubs(index, slot) if hubs else 0
            if number != 0:
                self.is_near[number - 1] = True
            else:
                prefetch(&(<Shard> index.shard_of(slot)).vectors.rows[index.row_of(slot)], 1)
                near.candidates[others].slot = <uint32_t> slot
                others += 1
        for i in range(-AHEAD, others):
            if i + AHEAD < others:
                slot = near.candidates[i + AHEAD].slot
                prefetch(index.vector(slot), index.length(slot) * sizeof(VectorEntry))
            if i >= 0:
                slot = near.candidates[i].slot
                self.add_vector(index.vector(slot), index.length(slot))
        if hubs:
            for i in range(index.hubs.hub_count):
                self.absent[self.absent_count] = index.hubs.slots[i]
                self.absent_count += not self.is_near[i]
                self.is_near[i] = False
        return 0

    cdef int add_vector(self, const VectorEntry *entries, Py_ssize_t length) except -1 nogil:
        """Add a vector to the sums, and list the items that were not seen before."""
        cdef Py_ssize_t i, seen = self.seen_count
        cdef int64_t total, is_new
        cdef int64_t *sums = self.sums
        cdef uint32_t *list_of_seen = self.seen
        cdef uint32_t item
        for i in range(length):
            item = entries[i].item
            assert item < self.item_room, "no such item"
            total = sums[item]
            is_new = total == 0
            list_of_seen[seen] = item
            seen += is_new
            sums[item] = total + is_new * BIAS + entries[i].weight
        self.seen_count = seen
        return 0

    cdef inline void consider(self, const Mixture *mixture, uint32_t item, uint32_t own, int64_t hubs) noexcept nogil:
        """Offer an item with the least that it may have; it is a contender if its most is good enough so far.

        The hubs has `hubs` of it, or less.
        """
        cdef int64_t total = self.sum_of(item)
        cdef double alone = mixture.alpha * own
        if self.sums[item] == BANNED:
            return
        if alone + mixture.share * (total + hubs) >= self.best.threshold:
            self.contenders[self.contender_count] = Contender(item, own)
            self.contender_count += 1
            self.best.push(item, alone + mixture.share * total)

    cdef int consider_all(self, const KnnQuery *query, const Mixture *mixture, int64_t hubs) except -1 nogil:
        """Consider the items that were seen: the query's own, then those of the neighbors.

        The hubs has `hubs` of an item at most: to look for how much that is would take longer.
        """
        cdef Py_ssize_t i
        for i in range(query.length):
            self.consider(mixture, query.entries[i].item, query.entries[i].weight, hubs)
        for i in range(query.length, self.seen_count):
            self.consider(mixture, self.seen[i], 0, hubs)
        return 0

    cdef int consider_some(
        self, const KnnQuery *query, const Mixture *mixture, const int64_t *hubs, const uint32_t[::1] items
    ) except -1 nogil:
        """Consider these items only, seen or not; the hubs has these sums (NULL: there is none)."""
        cdef Py_ssize_t i
        for i in range(query.length):
            self.own[query.entries[i].item] = query.entries[i].weight
        for i in range(items.shape[0]):
            assert items[i] < self.item_room, "no such item"
            if not self.is_contender[items[i]]:  # it may be listed twice
                self.is_contender[items[i]] = True
                self.consider(mixture, items[i], self.own[items[i]], hubs[items[i]] if hubs != NULL else 0)
        for i in range(items.shape[0]):
            self.is_contender[items[i]] = False
        for i in range(query.length):
            self.own[query.entries[i].item] = 0
        return 0

    cdef int decide(self, Index index, const Mixture *mixture, bint hubs_alone) except -1 nogil:
        """Find the best among the contenders, with the hubs now; if `hubs_alone`, also among items that only it has."""
        cdef double floor = self.best.threshold
        cdef Py_ssize_t i, count = self.contender_count
        cdef Contender contender
        cdef int64_t total
        self.best.clear()
        self.contender_count = 0
        for i in range(count):
            contender = self.contenders[i]
            self.contenders[i] = Contender(0, 0)
            total = self.sum_of(contender.item) + index.hubs.sums[contender.item]
            if mixture.alpha * contender.own + mixture.share * total >= floor:
                self.enter(contender, total)
        if hubs_alone:
            self.enter_hubs(index, mixture.share, floor, 0)
        self.subtract_absent(index)
        for i in range(self.contender_count):
            contender = self.contenders[i]
            total = self.sum_of(contender.item)
            self.best.push(contender.item, mixture.alpha * contender.own + mixture.share * total)
        return 0

    cdef inline void enter(self, Contender contender, int64_t total) noexcept nogil:
        self.contenders[self.contender_count] = contender
        self.contender_count += 1
        self.is_contender[contender.item] = True
        self.sums[contender.item] = total + BIAS

    cdef int enter_hubs(self, Index index, double share, double floor, Py_ssize_t place) except -1 nogil:
        """Let items that only the hubs has be contenders: those from a place of its heap on that reach the floor."""
        cdef const HubSum *listed = &index.hubs.heap[place]
        if place < index.hubs.item_count and share * listed.total > 0.0 and share * listed.total >= floor:
            if self.sums[listed.item] == 0:
                self.enter(Contender(listed.item, 0), listed.total)
            self.enter_hubs(index, share, floor, 2 * place + 1)
            self.enter_hubs(index, share, floor, 2 * place + 2)
        return 0

    cdef int subtract_absent(self, Index index) except -1 nogil:
        """Take what the absent members have out of the sums of the contenders."""
        cdef Py_ssize_t i, j, length
        cdef const VectorEntry *entries
        cdef const uint8_t *is_contender = self.is_contender
        cdef int64_t *sums = self.sums
        for i in range(self.absent_count):
            if i + 1 < self.absent_count:
                prefetch(index.vector(self.absent[i + 1]), index.length(self.absent[i + 1]) * sizeof(VectorEntry))
            entries, length = index.vector(self.absent[i]), index.length(self.absent[i])
            for j in range(length):
                if is_contender[entries[j].item]:
                    sums[entries[j].item] -= entries[j].weight
        return 0

    cdef inline int64_t sum_of(self, uint32_t item) noexcept nogil:
        """The sum of an item; of one that was not seen, 0."""
        return self.sums[item] - BIAS if self.sums[item] != 0 else 0

    cdef int finish(self, const uint32_t[::1] banned) except -1 nogil:
        """Wipe all but the best."""
        cdef Py_ssize_t i
        for i in range(self.seen_count):
            self.sums[self.seen[i]] = 0
            self.seen[i] = 0
        for i in range(self.contender_count):
            self.sums[self.contenders[i].item] = 0
            self.is_contender[self.contenders[i].item] = False
            self.contenders[i] = Contender(0, 0)
        for i in range(self.absent_count):
            self.absent[i] = 0
        if banned is not None:
            for i in range(banned.shape[0]):
                self.sums[banned[i]] = 0
        if self.seen != NULL:
            self.seen[self.seen_count] = 0
        if self.absent != NULL:
            self.absent[self.absent_count] = 0
        self.seen_count = self.contender_count = self.absent_count = 0
        return 0

    cdef int rank_totals(
        self, const KnnQuery *query, double alpha, Py_ssize_t found, const uint32_t[::1] items, const int64_t[::1] totals
    ) except -1 nogil:
        """Find the best items, given sums over the neighbors; an item may come several times, with shards of its sum."""
        cdef Mixture mixture = Mixture(alpha, (1.0 - alpha) / max(found, 1))
        cdef Py_ssize_t i
        self.begin(query)
        for i in range(items.shape[0]):
            assert items[i] < self.item_room, "no such item"
            if self.sums[items[i]] == 0:
                self.sums[items[i]] = BIAS
                self.seen[self.seen_count] = items[i]
                self.seen_count += 1
            self.sums[items[i]] += totals[i]
        self.consider_all(query, &mixture, 0)
        return self.finish(None)

    def sum_over(self, Index index, const uint32_t[::1] users):
        """The items that these users have, and the sums of their weights over the users."""
        cdef Py_ssize_t i, slot
        with nogil:
            self.widen(index.item_room, 0)
            for i in range(users.shape[0]):
                slot = index.slot_of(users[i])
                self.add_vector(index.vector(slot), index.length(slot))
        items, totals = np.empty(self.seen_count, np.uint32), np.empty(self.seen_count, np.int64)
        cdef uint32_t[::1] item = items
        cdef int64_t[::1] total = totals
        for i in range(self.seen_count):
            item[i], total[i] = self.seen[i], self.sum_of(self.seen[i])
        self.finish(None)
        return items, totals

    def residue(self):
        """How many places of the work space are not zero, though no ranking is under way."""
        cdef Py_ssize_t i, count = self.seen_count + self.contender_count + self.absent_count
        for i in range(self.member_room):
            count += self.is_near[i] + (self.absent[i] != 0)
        for i in range(self.item_room):
            count += (self.sums[i] != 0) + (self.seen[i] != 0) + (self.own[i] != 0) + (self.is_contender[i] != 0)
            count += self.contenders[i].item != 0 or self.contenders[i].own != 0
        return count + self.best.residue()
