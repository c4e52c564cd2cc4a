"""Questions to the index: who is nearest, and what the nearest have (paper, section 2.2).

A query adds up its dot products with all users that share an item with it, then goes once over all users, in order,
and keeps those whose distance is below a limit that at least k users stay below: those with small norms (in Euclidean
space a small vector with no item in common can be nearer than a large one with many). Among the few that are kept, the
k nearest are selected. Exact: everything before the final scores is integer arithmetic.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memset

import numpy as np

from unbasket.core.buffers cimport allocated, give_back, grown
from unbasket.core.crowd cimport BLOCK
from unbasket.core.index cimport ONE_BITS, TOGETHER, Index, Posting
from unbasket.core.select cimport Candidate, smallest_first
from unbasket.core.vector cimport Entry, Vector

cdef int64_t BIAS = 1 << 61  # no sum of weights comes near it
cdef int64_t DONE = -1  # in place of an item's sum: banned, or offered already
cdef double ONE = 1 << ONE_BITS


cdef inline const int64_t *first_of(const int64_t[::1] order) noexcept nogil:
    if order.shape[0] == 0:
        return NULL
    return &order[0]


cdef inline bint any_below(int64_t limit, const int64_t *norm, const int64_t *dot) noexcept nogil:
    """Whether any of the next users' keys is below the limit. Few are, so that one branch for all of them is quicker."""
    cdef int64_t signs = 0
    cdef int i
    for i in range(TOGETHER):
        signs |= norm[i] - 2 * dot[i] - limit
    return signs < 0


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

    Per user: the dot product, and the candidates, of whom the first `found` are the nearest. Per item: the sum over the
    neighbors, and the items seen. And the list of the best items.
    """

    def __dealloc__(self):
        give_back(self.dot, self.user_room * sizeof(int64_t))
        give_back(self.candidates, self.user_room * sizeof(Candidate))
        give_back(self.sums, self.item_room * sizeof(int64_t))
        give_back(self.seen, (self.item_room + 1) * sizeof(uint32_t))
        give_back(self.best.items, self.best.room * sizeof(uint32_t))
        give_back(self.best.scores, self.best.room * sizeof(double))

    cdef int widen(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        if users > self.user_room:
            self.dot = <int64_t *> grown(self.dot, self.user_room, users, sizeof(int64_t))
            self.candidates = <Candidate *> grown(self.candidates, self.user_room, users, sizeof(Candidate))
            self.user_room = users
        if items > self.item_room:
            self.sums = <int64_t *> grown(self.sums, self.item_room, items, sizeof(int64_t))
            # One place more than there are items: appending needs no branch.
            self.seen = <uint32_t *> grown(self.seen, self.item_room + 1, items + 1, sizeof(uint32_t))
            self.item_room = items
        return 0

    cdef int accumulate(self, Index index, const Query *query) except -1 nogil:
        """The dot products of the query with all users that share an item with it."""
        cdef Py_ssize_t i, j
        cdef const Posting *postings
        cdef int64_t weight
        cdef int64_t *dot = self.dot
        for i in range(query.length):
            weight = query.entries[i].weight
            postings = <const Posting *> index.postings.first(query.entries[i].item)
            for j in range(index.postings.length(query.entries[i].item)):
                assert postings[j].user < self.user_room, "no such user"
                dot[postings[j].user] += weight * postings[j].weight
        return 0

    cdef int find_nearest(self, Index index, const Query *query) except -1 nogil:
        """Find the k users nearest to the query, the query's own user left out (-1: nobody).

        Leaves them, in no order, in `candidates`, with |v|^2 - 2 v.q as keys (the squared distance less the constant
        |q|^2), and how many they are in `found`: k, or all others if they are fewer.
        """
        self.widen(index.user_room, index.item_room)
        self.accumulate(index, query)
        # Leaving out one, at least k others have a norm below the limit, so the k nearest have a key below it.
        cdef int64_t limit = index.limit_of(query.k + 1), key
        cdef Py_ssize_t first, user, found = 0, i
        cdef int64_t *dot = self.dot
        cdef const int64_t *norm = index.norm
        for first in range(0, index.user_end, 8):
            if any_below(limit, norm + first, dot + first):
                for user in range(first, first + TOGETHER):
                    key = norm[user] - 2 * dot[user]
                    if key < limit and norm[user] != 0 and user != query.user:
                        self.candidates[found] = Candidate(key, <uint32_t> user)
                        found += 1
            memset(dot + first, 0, TOGETHER * sizeof(int64_t))
        self.found = min(query.k, found)
        if found > query.k:
            smallest_first(self.candidates, found, query.k, query.order)
            for i in range(query.k, found):
                self.candidates[i] = Candidate(0, 0)
        return 0

    cdef int forget_candidates(self) except -1 nogil:
        cdef Py_ssize_t i
        for i in range(self.found):
            self.candidates[i] = Candidate(0, 0)
        self.found = 0
        return 0

    cdef bint use_crowd(self, Index index) noexcept nogil:
        """Whether it is less work to start from the crowd's sums than from zero."""
        cdef Py_ssize_t i, shared = 0
        cdef uint32_t user
        for i in range(self.found):
            user = self.candidates[i].code
            shared += index.vectors.rows[user].length * index.crowd.is_member[user]
        return index.crowd.records + index.crowd.count // 4 < 2 * shared

    cdef int sum_neighbors(self, Index index, bint crowd) except -1 nogil:
        """Add up the vectors of the neighbors; what they have is in `seen` then.

        With the crowd, what is added up is the difference to its sums. It is stored plus a bias, to tell a difference
        of 0 from none.
        """
        cdef Py_ssize_t i
        cdef uint32_t user
        cdef int64_t *marked = self.dot
        for i in range(self.found):
            user = self.candidates[i].code
            if crowd and index.crowd.is_member[user]:
                marked[user] = 1
            else:
                self.add(index.vector(user), index.vectors.length(user), 1)
        if crowd:
            for i in range(index.crowd.member_count):
                user = index.crowd.members[i]
                if marked[user] == 0:
                    self.add(index.vector(user), index.vectors.length(user), -1)
            for i in range(self.found):
                marked[self.candidates[i].code] = 0
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
        self, Index index, const Query *query, double alpha, const uint32_t[::1] banned
    ) except -1 nogil:
        """The best items by p = alpha u + (1 - alpha) mean of the neighbors, best first, without the banned ones."""
        cdef Mixture mixture
        cdef Py_ssize_t i
        self.find_nearest(index, query)
        mixture.alpha, mixture.crowd = alpha, self.use_crowd(index)
        mixture.share = (1.0 - alpha) / max(self.found, 1)
        self.sum_neighbors(index, mixture.crowd)
        self.forget_candidates()
        for i in range(banned.shape[0]):
            assert banned[i] < self.item_room, "no such item"
            self.sums[banned[i]] = DONE
        self.offer_all(index, query, &mixture)
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
            self.offer_crowd(index, mixture.share)
        return 0

    cdef int offer_crowd(self, Index index, double share) except -1 nogil:
        """Offer the items whose sum is the crowd's, passing over blocks of the list that have no sum large enough."""
        cdef Py_ssize_t block, i
        cdef const int64_t *totals = index.crowd.listed
        cdef const double *worst = &self.best.scores[self.best.room - 1]
        for block in range((index.crowd.count + BLOCK - 1) // BLOCK):
            if share * index.crowd.peaks[block] >= worst[0]:
                for i in range(block * BLOCK, min(block * BLOCK + BLOCK, index.crowd.count)):
                    if share * totals[i] >= worst[0] and self.sums[index.crowd.items[i]] != DONE:
                        offer(&self.best, index.crowd.items[i], share * totals[i])
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
        self, Index index, Vector vector, int64_t user, Py_ssize_t k, double alpha, banned, orders, Py_ssize_t n
    ):
        """The n best items for a vector, and their scores, best first, without the banned ones.

        The user is left out of the neighbors (-1: nobody). `orders` decide between equals: of users, and of items.
        """
        cdef const uint32_t[::1] left_out = banned
        cdef const int64_t[::1] people = orders[0], goods = orders[1]
        cdef Query query = Query(vector.entries, vector.length, user, k, first_of(people))
        self.make_best(n, first_of(goods))
        with nogil:
            self.rank_items(index, &query, alpha, left_out)
        return self.take_best()

    def neighbors(self, Index index, Vector vector, int64_t user, Py_ssize_t k, const int64_t[::1] order):
        """The k nearest users, in no order, and their squared distances in units of 2^-48."""
        cdef Query query = Query(vector.entries, vector.length, user, k, first_of(order))
        cdef int64_t norm = 0
        cdef Py_ssize_t i
        with nogil:
            for i in range(query.length):
                norm += <int64_t> query.entries[i].weight * query.entries[i].weight
            self.find_nearest(index, &query)
        codes, squares = np.empty(self.found, np.uint32), np.empty(self.found, np.int64)
        cdef uint32_t[::1] code = codes
        cdef int64_t[::1] square = squares
        for i in range(self.found):
            code[i], square[i] = self.candidates[i].code, self.candidates[i].key + norm
        self.forget_candidates()
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
        cdef Py_ssize_t i, j, found
        with nogil:
            self.find_nearest(index, &query)
            for j in range(items.shape[0]):
                mine[j] = weight_in(query.entries, query.length, items[j])
                for i in range(self.found):
                    weight = weight_of(index, self.candidates[i].code, items[j])
                    total[j] += weight
                    count[j] += weight > 0
            found = self.found
            self.forget_candidates()
        return own, totals, having, found

    def sum_of(self, Index index, const uint32_t[::1] users):
        """The items that these users have, and the sums of their weights over the users."""
        cdef Py_ssize_t i
        with nogil:
            self.widen(index.user_room, index.item_room)
            for i in range(users.shape[0]):
                self.add(index.vector(users[i]), index.vectors.length(users[i]), 1)
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
        self.widen(0, len(order))
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
        cdef Py_ssize_t i, count = self.found + self.seen_count + self.best.count
        for i in range(self.user_room):
            count += (self.dot[i] != 0) + (self.candidates[i].key != 0) + (self.candidates[i].code != 0)
        for i in range(self.item_room):
            count += (self.sums[i] != 0) + (self.seen[i] != 0)
        for i in range(self.best.room):
            count += (self.best.items[i] != 0) + (self.best.scores[i] != 0.0)
        return count


cdef int64_t weight_of(Index index, Py_ssize_t user, int64_t item) except -1 nogil:
    return weight_in(index.vector(user), index.vectors.length(user), item)


cdef int64_t weight_in(const Entry *entries, Py_ssize_t length, int64_t item) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(length):
        if entries[i].item == item:
            return entries[i].weight
    return 0
