"""Questions to the index: who is nearest, what the nearest have, and which items are best (paper, section 2.2).

Exact: everything before the final scores is integer arithmetic.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from unbasket.core.buffers cimport allocated, give_back, grown
from unbasket.core.crowd cimport Listed
from unbasket.core.index cimport Index
from unbasket.core.nearest cimport Nearest, Query, Scan
from unbasket.core.part cimport ONE_BITS, Part
from unbasket.core.select cimport Candidate
from unbasket.core.vector cimport Entry, Vector

cdef int64_t BIAS = 1 << 61  # no sum of weights comes near it
cdef int64_t DONE = -1  # in place of an item's sum: banned, or offered already
cdef double ONE = 1 << ONE_BITS


cdef inline const int64_t *first_of(const int64_t[::1] order) noexcept nogil:
    if order.shape[0] == 0:
        return NULL
    return &order[0]


cdef inline int offer(Best *best, uint32_t item, double score) noexcept nogil:
    """Put an item into the list of the best, best first, if it belongs there.

    Free places of the list have a score of 0, and an item needs a score above that.
    """
    cdef Py_ssize_t last = best.room - 1
    if score < best.scores[last] or score <= 0.0:
        return 0
    if best.count == best.room:
        if score == best.scores[last] and best.order[item] > best.order[best.items[last]]:
            return 0
        best.count -= 1
    last = best.count
    while last > 0 and (
        score > best.scores[last - 1]
        or (score == best.scores[last - 1] and best.order[item] < best.order[best.items[last - 1]])
    ):
        best.items[last], best.scores[last] = best.items[last - 1], best.scores[last - 1]
        last -= 1
    best.items[last], best.scores[last] = item, score
    best.count += 1
    return 0


@cython.final
cdef class SearchSpace:
    """Work space of one query at a time; all zero between queries.

    The search for the nearest users; which members of the crowd are among them; per item, the sum over the neighbors, the
    items seen, and the query's own weight; and the list of the best items. `helpers` are threads that
    may be asked to help with the search (None: nobody).
    """

    def __cinit__(self):
        self.nearest = Nearest()

    def __dealloc__(self):
        give_back(self.is_near, self.member_room * sizeof(uint8_t))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.seen, (self.item_room + 1) * sizeof(uint32_t))
        give_back(self.own, self.item_room * sizeof(uint32_t))
        give_back(self.best.items, self.best.room * sizeof(uint32_t))
        give_back(self.best.scores, self.best.room * sizeof(double))

    cdef int widen(self, Index index) except -1 nogil:
        """Make room for the items of an index, and for the members of its crowd."""
        if index.crowd.member_room > self.member_room:
            self.is_near = <uint8_t *> grown(self.is_near, self.member_room, index.crowd.member_room, sizeof(uint8_t))
            self.member_room = index.crowd.member_room
        return self.widen_items(index.item_room)

    cdef int widen_items(self, Py_ssize_t items) except -1 nogil:
        """Make room for item codes below `items`."""
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            # One place more than there are items: appending needs no branch.
            self.seen = <uint32_t *> grown(self.seen, self.item_room + 1, items + 1, sizeof(uint32_t))
            self.own = <uint32_t *> grown(self.own, self.item_room, items, sizeof(uint32_t))
            self.item_room = items
        return 0

    cdef bint use_crowd(self, Index index) except -1 nogil:
        """Whether it is less work to start from the crowd's sums than from zero."""
        cdef Py_ssize_t i, shared = 0
        cdef Candidate *near = self.nearest.scan.candidates
        for i in range(self.nearest.scan.found):
            if number_in_crowd(index, near[i].slot):
                shared += index.length(near[i].slot)
        return index.crowd.records < 2 * shared

    cdef int sum_neighbors(self, Index index, bint crowd) except -1 nogil:
        """Add up the vectors of the neighbors; what they have is in `seen` then.

        With the crowd, what is added up is the difference to its sums. It is stored plus a bias, to tell a difference
        of 0 from none.
        """
        cdef Py_ssize_t i, slot, number
        for i in range(self.nearest.scan.found):
            slot = self.nearest.scan.candidates[i].slot
            number = number_in_crowd(index, slot) if crowd else 0
            if number != 0:
                self.is_near[number - 1] = True
            else:
                self.add(index.vector(slot), index.length(slot), 1)
        if crowd:
            for i in range(index.crowd.member_count):
                slot = index.crowd.members[i]
                if not self.is_near[i]:
                    self.add(index.vector(slot), index.length(slot), -1)
                self.is_near[i] = False
        return 0

    cdef int add(self, const Entry *entries, Py_ssize_t length, int sign) except -1 nogil:
        """Add a vector to the sums, or subtract it, and list the items that were not seen before."""
        cdef Py_ssize_t i, seen = self.seen_count
        cdef int64_t total, is_new
        cdef int64_t *sums = self.sums
        cdef uint32_t item
        for i in range(length):
            item = entries[i].item
            assert item < self.item_room, "no such item"
            total = sums[item]
            is_new = total == 0
            self.seen[seen] = item
            seen += is_new
            sums[item] = total + is_new * BIAS + sign * <int64_t> entries[i].weight
        self.seen_count = seen
        return 0

    cdef int rank_items(
        self, Index index, const Query *query, double alpha, const uint32_t[::1] banned, const uint32_t[::1] allowed
    ) except -1 nogil:
        """The best items by p = alpha u + (1 - alpha) mean of the neighbors, who are found already; best first."""
        cdef Mixture mixture
        cdef Py_ssize_t i
        self.widen(index)
        mixture.alpha, mixture.crowd = alpha, self.use_crowd(index)
        mixture.share = (1.0 - alpha) / max(self.nearest.scan.found, 1)
        self.sum_neighbors(index, mixture.crowd)
        self.nearest.scan.forget()
        for i in range(banned.shape[0]):
            assert banned[i] < self.item_room, "no such item"
            self.sums[banned[i]] = DONE
        if allowed is None:
            self.offer_all(index, query, &mixture)
        else:
            self.offer_some(index, query, &mixture, allowed)
        self.wipe_sums(query, banned)
        for i in range(self.best.count):
            self.best.scores[i] /= ONE
        return 0

    cdef int offer_all(self, Index index, const Query *query, const Mixture *mixture) except -1 nogil:
        """Offer the query's own items, then those of the neighbors, then those of the crowd alone."""
        cdef Py_ssize_t i
        cdef uint32_t item
        cdef int64_t total
        for i in range(query.length):
            item = query.entries[i].item
            if self.sums[item] != DONE:
                total = self.sums[item] - BIAS if self.sums[item] != 0 else 0
                total += index.crowd.sums[item] * mixture.crowd
                offer(&self.best, item, mixture.alpha * query.entries[i].weight + mixture.share * total)
                self.sums[item] = DONE
        for i in range(self.seen_count):
            item = self.seen[i]
            if self.sums[item] != DONE:
                total = self.sums[item] - BIAS + index.crowd.sums[item] * mixture.crowd
                offer(&self.best, item, mixture.share * total)
                self.sums[item] = DONE
        if mixture.crowd:
            self.offer_crowd(index, mixture.share, 0)
        return 0

    cdef int offer_some(
        self, Index index, const Query *query, const Mixture *mixture, const uint32_t[::1] allowed
    ) except -1 nogil:
        """Offer these items only, whatever else the query and the neighbors have."""
        cdef Py_ssize_t i
        cdef uint32_t item
        cdef int64_t total
        for i in range(query.length):
            self.own[query.entries[i].item] = query.entries[i].weight
        for i in range(allowed.shape[0]):
            item = allowed[i]
            assert item < self.item_room, "no such item"
            if self.sums[item] != DONE:
                total = self.sums[item] - BIAS if self.sums[item] != 0 else 0
                total += index.crowd.sums[item] * mixture.crowd
                offer(&self.best, item, mixture.alpha * self.own[item] + mixture.share * total)
        for i in range(query.length):
            self.own[query.entries[i].item] = 0
        return 0

    cdef int offer_crowd(self, Index index, double share, Py_ssize_t place) except -1 nogil:
        """Offer the items whose sum is the crowd's: those at a place of its heap and below, while they are good enough."""
        cdef const Listed *listed = &index.crowd.heap[place]
        cdef double score
        if place < index.crowd.count:
            score = share * listed.total
            if score > 0.0 and score >= self.best.scores[self.best.room - 1]:
                if self.sums[listed.item] != DONE:
                    offer(&self.best, listed.item, score)
                self.offer_crowd(index, share, 2 * place + 1)
                self.offer_crowd(index, share, 2 * place + 2)
        return 0

    cdef int wipe_sums(self, const Query *query, const uint32_t[::1] banned) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(self.seen_count):
            self.sums[self.seen[i]] = 0
            self.seen[i] = 0
        self.seen[self.seen_count] = 0
        self.seen_count = 0
        for i in range(query.length):
            self.sums[query.entries[i].item] = 0
        for i in range(banned.shape[0]):
            self.sums[banned[i]] = 0
        return 0

    cdef int make_best(self, Py_ssize_t n, const int64_t *order) except -1 nogil:
        """Let there be an empty list of the n best."""
        if n != self.best.room:
            give_back(self.best.items, self.best.room * sizeof(uint32_t))
            give_back(self.best.scores, self.best.room * sizeof(double))
            self.best.items, self.best.scores, self.best.room = NULL, NULL, 0
            self.best.items = <uint32_t *> allocated(n, sizeof(uint32_t))
            self.best.scores = <double *> allocated(n, sizeof(double))
            self.best.room = n
        self.best.order = order
        return 0

    cdef list take_best(self):
        """The list of the best, which is empty then."""
        cdef Py_ssize_t i
        cdef list answer = []
        for i in range(self.best.count):
            answer.append((self.best.items[i], self.best.scores[i]))
            self.best.items[i], self.best.scores[i] = 0, 0.0
        self.best.count = 0
        return answer

    def recommend(
        self, Index index, Vector vector, int64_t user, Py_ssize_t k, double alpha, choice, orders, Py_ssize_t n
    ):
        """The n best items for a vector, and their scores, best first.

        The user is left out of the neighbors (-1: nobody). `choice` has the banned items and the only ones that are
        allowed, each once (None: all). `orders` decide between equals: of users, and of items.
        """
        cdef const uint32_t[::1] banned = choice[0], allowed = choice[1]
        cdef const int64_t[::1] people = orders[0], goods = orders[1]
        cdef Query query = Query(vector.entries, vector.length, user, k, first_of(people))
        self.make_best(n, first_of(goods))
        self.nearest.find(index, &query, self.helpers)
        with nogil:
            self.rank_items(index, &query, alpha, banned, allowed)
        return self.take_best()

    def neighbors(self, Index index, Vector vector, int64_t user, Py_ssize_t k, const int64_t[::1] order):
        """The k nearest users, in no order, and their squared distances in units of 2^-48."""
        cdef Query query = Query(vector.entries, vector.length, user, k, first_of(order))
        cdef int64_t norm = 0
        cdef Py_ssize_t i
        for i in range(query.length):
            norm += <int64_t> query.entries[i].weight * query.entries[i].weight
        self.nearest.find(index, &query, self.helpers)
        codes, squares = np.empty(self.nearest.scan.found, np.uint32), np.empty(self.nearest.scan.found, np.int64)
        cdef uint32_t[::1] code = codes
        cdef int64_t[::1] square = squares
        for i in range(self.nearest.scan.found):
            code[i], square[i] = self.nearest.scan.candidates[i].code, self.nearest.scan.candidates[i].key + norm
        self.nearest.scan.forget()
        return codes, squares

    def holders(
        self, Index index, Vector vector, int64_t user, const int64_t[::1] items, Py_ssize_t k,
        const int64_t[::1] order
    ):
        """For explanations: own weights of items, the neighbors' sums, how many of them have each, how many they are."""
        cdef Query query = Query(vector.entries, vector.length, user, k, first_of(order))
        own = np.zeros(items.shape[0], np.int64)
        totals, having = own.copy(), own.copy()
        cdef int64_t[::1] mine = own, total = totals, count = having
        cdef int64_t weight
        cdef Py_ssize_t i, j, slot, found
        self.nearest.find(index, &query, self.helpers)
        with nogil:
            found = self.nearest.scan.found
            for j in range(items.shape[0]):
                mine[j] = weight_in(query.entries, query.length, items[j])
                for i in range(found):
                    slot = self.nearest.scan.candidates[i].slot
                    weight = weight_in(index.vector(slot), index.length(slot), items[j])
                    total[j] += weight
                    count[j] += weight > 0
            self.nearest.scan.forget()
        return own, totals, having, found

    def sum_of(self, Index index, const uint32_t[::1] users):
        """The items that these users have, and the sums of their weights over the users."""
        cdef Py_ssize_t i, slot
        with nogil:
            self.widen(index)
            for i in range(users.shape[0]):
                slot = index.slot_of(users[i])
                self.add(index.vector(slot), index.length(slot), 1)
        items, totals = np.empty(self.seen_count, np.uint32), np.empty(self.seen_count, np.int64)
        cdef uint32_t[::1] item = items
        cdef int64_t[::1] total = totals
        for i in range(self.seen_count):
            item[i], total[i] = self.seen[i], self.sums[self.seen[i]] - BIAS
            self.sums[self.seen[i]] = 0
            self.seen[i] = 0
        if self.seen != NULL:
            self.seen[self.seen_count] = 0
        self.seen_count = 0
        return items, totals

    def best_of(
        self, Vector vector, const uint32_t[::1] items, const int64_t[::1] totals, Py_ssize_t found, double alpha,
        const int64_t[::1] order, Py_ssize_t n
    ):
        """The n best items, best first, for a vector whose `found` neighbors have these items with these totals.

        An item may come more than once, with parts of its total. The arithmetic is that of `recommend`, to the bit.
        """
        cdef Py_ssize_t i
        cdef uint32_t item
        cdef double share = (1.0 - alpha) / max(found, 1)
        cdef Query query = Query(vector.entries, vector.length, -1, 0, NULL)
        self.widen_items(len(order))
        self.make_best(n, first_of(order))
        for i in range(items.shape[0]):
            assert items[i] < self.item_room, "no such item"
            self.sums[items[i]] += totals[i]
        for i in range(query.length):
            item = query.entries[i].item
            offer(&self.best, item, alpha * query.entries[i].weight + share * self.sums[item])
            self.sums[item] = DONE
        for i in range(items.shape[0]):
            if self.sums[items[i]] != DONE:
                offer(&self.best, items[i], share * self.sums[items[i]])
                self.sums[items[i]] = DONE
        for i in range(self.best.count):
            self.best.scores[i] /= ONE
        self.wipe_sums(&query, items)
        return self.take_best()

    def leftovers(self):
        """How many places of the work space are not zero, though no query is under way."""
        cdef Py_ssize_t i, count = self.nearest.leftovers() + self.seen_count + self.best.count
        for i in range(self.member_room):
            count += self.is_near[i]
        for i in range(self.item_room):
            count += (self.sums[i] != 0) + (self.seen[i] != 0) + (self.own[i] != 0)
        for i in range(self.best.room):
            count += (self.best.items[i] != 0) + (self.best.scores[i] != 0.0)
        return count


cdef int64_t weight_in(const Entry *entries, Py_ssize_t length, int64_t item) except -1 nogil:
    cdef Py_ssize_t i
    for i in range(length):
        if entries[i].item == item:
            return entries[i].weight
    return 0


cdef inline uint32_t number_in_crowd(Index index, Py_ssize_t slot) noexcept nogil:
    """The number of a member of the crowd, from 1 on; 0 of one who is none."""
    return (<Part> index.part_of(slot)).member[index.row_of(slot)]
