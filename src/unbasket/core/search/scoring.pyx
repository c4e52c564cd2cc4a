"""The items with the highest scores, given the neighbors: p = alpha u + (1 - alpha) mean of the neighbors.

Here u are the own weights of the query, and a neighbor's vector is multiplied by its scale, with learned weights.

Most neighbors of most queries are hubs, whose vectors are summed in advance. So the vectors of the other neighbors are
added up first. The hubs' sums come last, less the vectors of hubs that are not neighbors, and only for candidates. The
score of an item without the hubs is a lower bound, and with all hubs an upper bound. An item is a candidate if its
upper bound reaches the n-th best lower bound.

Sums are exact integers, and a rounded score never falls when a sum rises. So the result is bit for bit that of scoring
all items by all neighbors.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

from unbasket.core.util.topn cimport TopN
from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.index.hubs cimport HubSum
from unbasket.core.index.index cimport Index
from unbasket.core.search.knn cimport KnnQuery, Scan, prefetch
from unbasket.core.index.shard cimport Shard
from unbasket.core.model.fold cimport VectorEntry, scaled_weight

cdef enum:
    AHEAD = 4  # vectors to prefetch

cdef int64_t BIAS = 1 << 61  # added to each stored sum: a stored 0 means "not seen"; no sum comes near it
cdef int64_t MOST = 1 << 60  # more than any sum
cdef int64_t BANNED = -1  # in place of an item's sum


cdef inline uint32_t number_in_hubs(Index index, Py_ssize_t slot) noexcept nogil:
    """Return the user's 1-based index among the hubs, or 0 if the user is not a hub."""
    return (<Shard> index.shard_of(slot)).hub_number[index.row_of(slot)]


@cython.final
cdef class Scorer:
    """The workspace of one ranking at a time. All zero between rankings."""

    def __cinit__(self):
        self.best = TopN()

    def __dealloc__(self):
        give_back(self.is_near, self.member_room * sizeof(uint8_t))
        give_back(self.absent, (self.member_room + 1) * sizeof(uint32_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.seen, (self.item_room + 1) * sizeof(uint32_t))
        give_back(self.own, self.item_room * sizeof(double))
        give_back(self.candidates, self.item_room * sizeof(ItemCandidate))
        give_back(self.is_candidate, self.item_room * sizeof(uint8_t))

    cdef int widen(self, Py_ssize_t items, Py_ssize_t members) except -1 nogil:
        """Make room for item codes below `items` and for `members` hubs."""
        if members > self.member_room:
            self.is_near = <uint8_t *> grown(self.is_near, self.member_room, members, sizeof(uint8_t))
            self.absent = <uint32_t *> grown(self.absent, self.member_room + 1, members + 1, sizeof(uint32_t))
            self.member_room = members
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            # One more than there are items: appending needs no branch.
            self.seen = <uint32_t *> grown(self.seen, self.item_room + 1, items + 1, sizeof(uint32_t))
            self.own = <double *> grown(self.own, self.item_room, items, sizeof(double))
            self.candidates = <ItemCandidate *> grown(self.candidates, self.item_room, items, sizeof(ItemCandidate))
            self.is_candidate = <uint8_t *> grown(self.is_candidate, self.item_room, items, sizeof(uint8_t))
            self.item_room = items

    cdef bint uses_hubs(self, Index index, Scan near) except -1 nogil:
        """Return whether it is less work to start from the hubs' sums than from zero."""
        cdef Py_ssize_t i, shared = 0
        for i in range(near.found):
            shared += number_in_hubs(index, near.candidates[i].slot) != 0
        return index.hubs.hub_count < 4 * shared

    cdef int rank(
        self, Index index, Scan near, const KnnQuery *query, double alpha, const uint32_t[::1] banned,
        const uint32_t[::1] allowed, Py_ssize_t least
    ) except -1 nogil:
        """Rank items using the neighbors in `near`, then clear `near`. Items of fewer than `least` count as of none."""
        cdef bint hubs = least <= 1 and self.uses_hubs(index, near)  # hubs' sums do not tell how many have an item
        cdef Mixture mixture = Mixture(alpha, (1.0 - alpha) / max(near.found, 1))
        cdef const int64_t *sums = index.hubs.sums if hubs else NULL
        cdef Py_ssize_t i
        self.widen(index.item_room, index.hubs.hub_room)
        self.begin(query)
        self.add_neighbors(index, near, hubs)
        if least > 1:
            self.drop_rare(index, near, least)
        near.clear()
        if banned is not None:
            for i in range(banned.shape[0]):
                assert banned[i] < self.item_room, "no such item"
                self.sums[banned[i]] = BANNED
        if allowed is None:
            self.push_seen(query, &mixture, index.hubs.heap[0].total if hubs else 0, sums)
        else:
            self.push_allowed(query, &mixture, sums, allowed)
        if hubs:
            self.resolve_bounds(index, &mixture, allowed is None)
        return self.finish(banned)

    cdef int begin(self, const KnnQuery *query) except -1 nogil:
        """List the query's own items before all others."""
        cdef Py_ssize_t i
        for i in range(query.length):
            assert query.entries[i].item < self.item_room, "no such item"
            self.sums[query.entries[i].item] = BIAS
            self.seen[i] = query.entries[i].item
        self.seen_count = query.length

    cdef int add_neighbors(self, Index index, Scan near, bint hubs) except -1 nogil:
        """Add up the neighbors' vectors; with `hubs`, those of other neighbors, and list the hubs that are absent."""
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
                self.add_vector(index.vector(slot), index.length(slot), index.scale(slot))
        if hubs:
            for i in range(index.hubs.hub_count):
                self.absent[self.absent_count] = index.hubs.slots[i]
                self.absent_count += not self.is_near[i]
                self.is_near[i] = False

    cdef int drop_rare(self, Index index, Scan near, Py_ssize_t least) except -1 nogil:
        """Zero the sums of items that fewer than `least` neighbors have."""
        cdef Py_ssize_t i, j, slot
        cdef const VectorEntry *entries
        for i in range(near.found):
            slot = near.candidates[i].slot
            entries = index.vector(slot)
            for j in range(index.length(slot)):
                self.own[entries[j].item] += 1
        for i in range(self.seen_count):
            if self.own[self.seen[i]] < least:
                self.sums[self.seen[i]] = BIAS
            self.own[self.seen[i]] = 0

    cdef int add_vector(self, const VectorEntry *entries, Py_ssize_t length, uint32_t scale) except -1 nogil:
        """Add a vector, times its scale, to the sums, and list its new items."""
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
            sums[item] = total + is_new * BIAS + scaled_weight(entries[i].weight, scale)
        self.seen_count = seen

    cdef inline void push_candidate(
        self, const Mixture *mixture, uint32_t item, double own, int64_t most, const int64_t *hubs
    ) noexcept nogil:
        """Push an item with its lower bound, and keep it as a candidate if its upper bound reaches the threshold.

        `hubs` are the hubs' sums by item (NULL: not used), none of them above `most`, which needs no lookup.
        """
        cdef int64_t total = self.sum_of(item)
        cdef double alone = mixture.alpha * own
        if self.sums[item] == BANNED:
            return
        if alone + mixture.share * (total + most) < self.best.threshold:
            return
        if hubs == NULL or alone + mixture.share * (total + hubs[item]) >= self.best.threshold:
            self.candidates[self.candidate_count] = ItemCandidate(item, own)
            self.candidate_count += 1
            self.best.push(item, alone + mixture.share * total)

    cdef int push_seen(
        self, const KnnQuery *query, const Mixture *mixture, int64_t most, const int64_t *hubs
    ) except -1 nogil:
        """Push the query's own items, then those of the neighbors; `hubs` are the hubs' sums, `most` the largest."""
        cdef Py_ssize_t i
        for i in range(query.length):
            self.push_candidate(mixture, query.entries[i].item, query.own[i], most, hubs)
        for i in range(query.length, self.seen_count):
            self.push_candidate(mixture, self.seen[i], 0, most, hubs)

    cdef int push_allowed(
        self, const KnnQuery *query, const Mixture *mixture, const int64_t *hubs, const uint32_t[::1] items
    ) except -1 nogil:
        """Push these items only; `hubs` are the hubs' sums by item (NULL: not used)."""
        cdef Py_ssize_t i
        for i in range(query.length):
            self.own[query.entries[i].item] = query.own[i]
        for i in range(items.shape[0]):
            assert items[i] < self.item_room, "no such item"
            if not self.is_candidate[items[i]]:  # it may be listed twice
                self.is_candidate[items[i]] = True
                self.push_candidate(mixture, items[i], self.own[items[i]], MOST if hubs != NULL else 0, hubs)
        for i in range(items.shape[0]):
            self.is_candidate[items[i]] = False
        for i in range(query.length):
            self.own[query.entries[i].item] = 0

    cdef int resolve_bounds(self, Index index, const Mixture *mixture, bint hubs_alone) except -1 nogil:
        """Rank the candidates by their exact scores; with `hubs_alone`, also items that only hubs have."""
        cdef double threshold = self.best.threshold
        cdef Py_ssize_t i, count = self.candidate_count
        cdef ItemCandidate candidate
        cdef int64_t total
        self.best.clear()
        self.candidate_count = 0
        for i in range(count):
            candidate = self.candidates[i]
            self.candidates[i] = ItemCandidate(0, 0)
            total = self.sum_of(candidate.item) + index.hubs.sums[candidate.item]
            if mixture.alpha * candidate.own + mixture.share * total >= threshold:
                self.keep_candidate(candidate, total)
        if hubs_alone:
            self.keep_hub_items(index, mixture.share, threshold, 0)
        self.subtract_absent(index)
        for i in range(self.candidate_count):
            candidate = self.candidates[i]
            total = self.sum_of(candidate.item)
            self.best.push(candidate.item, mixture.alpha * candidate.own + mixture.share * total)

    cdef inline void keep_candidate(self, ItemCandidate candidate, int64_t total) noexcept nogil:
        self.candidates[self.candidate_count] = candidate
        self.candidate_count += 1
        self.is_candidate[candidate.item] = True
        self.sums[candidate.item] = total + BIAS

    cdef int keep_hub_items(self, Index index, double share, double threshold, Py_ssize_t position) except -1 nogil:
        """Keep items that only hubs have, if they reach the threshold: those below `position` in the hubs' heap."""
        cdef const HubSum *listed = &index.hubs.heap[position]
        if position < index.hubs.item_count and share * listed.total > 0.0 and share * listed.total >= threshold:
            if self.sums[listed.item] == 0:
                self.keep_candidate(ItemCandidate(listed.item, 0), listed.total)
            self.keep_hub_items(index, share, threshold, 2 * position + 1)
            self.keep_hub_items(index, share, threshold, 2 * position + 2)

    cdef int subtract_absent(self, Index index) except -1 nogil:
        """Subtract the vectors of absent hubs from the sums of the candidates."""
        cdef Py_ssize_t i, j, length
        cdef const VectorEntry *entries
        cdef const uint8_t *is_candidate = self.is_candidate
        cdef int64_t *sums = self.sums
        cdef uint32_t scale
        for i in range(self.absent_count):
            if i + 1 < self.absent_count:
                prefetch(index.vector(self.absent[i + 1]), index.length(self.absent[i + 1]) * sizeof(VectorEntry))
            entries, length = index.vector(self.absent[i]), index.length(self.absent[i])
            scale = index.scale(self.absent[i])
            for j in range(length):
                if is_candidate[entries[j].item]:
                    sums[entries[j].item] -= scaled_weight(entries[j].weight, scale)

    cdef inline int64_t sum_of(self, uint32_t item) noexcept nogil:
        """Return the sum of an item, or 0 if it was not seen."""
        return self.sums[item] - BIAS if self.sums[item] != 0 else 0

    cdef int finish(self, const uint32_t[::1] banned) except -1 nogil:
        """Zero everything except `best`."""
        cdef Py_ssize_t i
        for i in range(self.seen_count):
            self.sums[self.seen[i]] = 0
            self.seen[i] = 0
        for i in range(self.candidate_count):
            self.sums[self.candidates[i].item] = 0
            self.is_candidate[self.candidates[i].item] = False
            self.candidates[i] = ItemCandidate(0, 0)
        for i in range(self.absent_count):
            self.absent[i] = 0
        if banned is not None:
            for i in range(banned.shape[0]):
                self.sums[banned[i]] = 0
        if self.seen != NULL:
            self.seen[self.seen_count] = 0
        if self.absent != NULL:
            self.absent[self.absent_count] = 0
        self.seen_count = self.candidate_count = self.absent_count = 0

    def residue(self):
        """Count the fields that are not zero; between rankings there are none."""
        cdef Py_ssize_t i, count = self.seen_count + self.candidate_count + self.absent_count
        for i in range(self.member_room):
            count += self.is_near[i] + (self.absent[i] != 0)
        for i in range(self.item_room):
            count += (self.sums[i] != 0) + (self.seen[i] != 0) + (self.own[i] != 0) + (self.is_candidate[i] != 0)
            count += self.candidates[i].item != 0 or self.candidates[i].own != 0
        return count + self.best.residue()
