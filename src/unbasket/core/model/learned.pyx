"""Learned weights: alpha, and a factor for each item, from whole-number sums over all users.

Before a user's last basket, an item of the earlier ones has the weight x in 0 to 1 (`scaled_weight`); y says whether
the last basket has it. Alpha is the slope of the least squares, sum(x y) / sum(x x): how much of such a weight comes true.

An item's factor compares how often it is bought again with how much of its weight has faded:

    f = (C - U + kappa rho) / (C - S + kappa) / rho,    rho = sum(C - U) / sum(C - S) over all items

with C purchases, U buyers, and S the sum of the buyers' decayed counts.

A user's share of the sums is a function of that user's history alone. An event takes the old share out and puts the new
one in, at a cost of the user's items. The sums are exact integers, so they depend on the remaining histories only.
Nothing overflows: all sums stay below 2^24 times the purchases that fit into memory, and ratios have 128 bits.
"""

cimport cython
from libc.stdint cimport int64_t, uint8_t, uint32_t

import numpy as np

from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.model.fold cimport (
    ONE_BITS, SCALE_BITS, FoldWorkspace, Rule, Vector, decayed_at, fixed_point, scaled_weight, weight_at
)
from unbasket.core.model.history cimport Histories, History

cdef extern from *:
    """
    static int64_t times_over(int64_t a, int64_t b, int64_t c) { return (int64_t) ((__int128) a * b / c); }
    """
    int64_t times_over(int64_t a, int64_t b, int64_t c) noexcept nogil

cdef enum:
    PRIOR_USERS = 20  # as many users as the prior alpha is worth; docs/evaluation.md says how it was chosen

cdef int64_t PRIOR_ALPHA = fixed_point(0.8)


cdef int64_t alpha_of(const Totals *totals) noexcept nogil:
    """Return alpha as a multiple of 2^-24."""
    cdef int64_t slope = 0
    if totals.squares > 0:
        slope = min(times_over(totals.hits, 1 << ONE_BITS, totals.squares), 1 << ONE_BITS)
    return (totals.users * slope + PRIOR_USERS * PRIOR_ALPHA) // (totals.users + PRIOR_USERS)


cdef int64_t factor_of(const ItemSums *item, const ItemSums *all_items, int64_t kappa) noexcept nogil:
    """Return an item's factor as a multiple of 2^-16; 1 without repurchases, without decay, or without kappa."""
    cdef int64_t repeats = all_items.purchases - all_items.buyers
    cdef int64_t faded = (all_items.purchases << ONE_BITS) - all_items.weight
    if kappa == 0 or repeats == 0 or faded == 0:
        return 1 << SCALE_BITS
    cdef int64_t expected = times_over(item.purchases - item.buyers, faded, repeats)
    return times_over(expected + kappa, 1 << SCALE_BITS, (item.purchases << ONE_BITS) - item.weight + kappa)


cdef void add_totals(Totals *sums, const Totals *share, int sign) noexcept nogil:
    sums.users += sign * share.users
    sums.hits += sign * share.hits
    sums.squares += sign * share.squares
    add_items(&sums.items, &share.items, sign)


cdef void add_items(ItemSums *sums, const ItemSums *share, int sign) noexcept nogil:
    sums.purchases += sign * share.purchases
    sums.buyers += sign * share.buyers
    sums.weight += sign * share.weight


cdef Totals share_of_fold(Rule rule, FoldWorkspace space, Py_ssize_t purchases) noexcept nogil:
    """Return the share of the history in the workspace, summed over its items."""
    cdef Py_ssize_t n = space.groups, i
    cdef uint32_t item, scale = rule.scale(n - 1)
    cdef int64_t squares = space.squares, x
    cdef Totals share = Totals(n > 1, space.hits, 0, ItemSums(purchases, space.count, 0))
    for i in range(space.count):
        item = space.touched[i]
        share.items.weight += decayed_count(space, item, rule)
        if space.levels[item].last < n:  # not in the last basket, whose items are in `space.squares`
            x = scaled_weight(fixed_point(weight_at(&space.levels[item], n - 1, rule.group_decay)), scale)
            squares += x * x
    share.squares = squares >> ONE_BITS
    return share


cdef inline int64_t decayed_count(FoldWorkspace space, uint32_t item, Rule rule) noexcept nogil:
    """Return d, the sum of r^lag over the baskets with an item, in fixed point."""
    return fixed_point(decayed_at(&space.levels[item], space.groups, rule.group_decay))


@cython.final
cdef class Share:
    """A history's share of the sums: in all, and by item."""

    def as_tuple(self):
        """Return the totals (users, hits, squares, purchases, buyers, weight) and the sums of each item."""
        return totals_tuple(&self.totals), self.items


cdef tuple totals_tuple(const Totals *totals):
    cdef const ItemSums *items = &totals.items
    return totals.users, totals.hits, totals.squares, items.purchases, items.buyers, items.weight


cdef Share share_of(const History *history, Py_ssize_t purchases, Rule rule, FoldWorkspace space):
    """Return the share of a history that is folded in the workspace, and has this many purchases."""
    cdef Share share = Share()
    cdef Py_ssize_t i
    cdef uint32_t item
    counts = {}
    for i in range(purchases):
        counts[history.items[i]] = counts.get(history.items[i], 0) + 1
    share.totals = share_of_fold(rule, space, purchases)
    share.items = {item: (count, 1, decayed_count(space, item, rule)) for item, count in counts.items()}
    return share


@cython.final
cdef class LearnedSums:
    """The sums of all users, and the alpha and the factors that follow from them."""

    def __init__(self, Histories histories, double kappa):
        self.histories = histories
        self.kappa = fixed_point(kappa)

    def __dealloc__(self):
        give_back(self.buyers, self.item_room * sizeof(int64_t))
        give_back(self.weights, self.item_room * sizeof(int64_t))
        give_back(self.counted, self.user_room * sizeof(uint8_t))

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        if items > self.item_room:
            self.buyers = <int64_t *> grown(self.buyers, self.item_room, items, sizeof(int64_t))
            self.weights = <int64_t *> grown(self.weights, self.item_room, items, sizeof(int64_t))
            self.item_room = items
        if users > self.user_room:
            self.counted = <uint8_t *> grown(self.counted, self.user_room, users, sizeof(uint8_t))
            self.user_room = users

    cdef bint counts(self, Py_ssize_t user) noexcept nogil:
        """Return whether the sums have the user's share."""
        return user < self.user_room and self.counted[user]

    cdef int add(self, Py_ssize_t user, Rule rule, FoldWorkspace space, int sign) except -1 nogil:
        """Add a user's share, whose history is folded in the workspace, or subtract it with a `sign` of -1."""
        cdef Totals share = share_of_fold(rule, space, self.histories.items.length(user))
        cdef Py_ssize_t i
        cdef uint32_t item
        assert user < self.user_room and self.counted[user] == (sign < 0), "no such user, or counted twice"
        for i in range(space.count):
            item = space.touched[i]
            assert item < self.item_room, "no such item"
            self.buyers[item] += sign
            self.weights[item] += sign * decayed_count(space, item, rule)
        add_totals(&self.totals, &share, sign)
        self.counted[user] = sign > 0
        return 0 if self.recount is None else self.recount.follow(user, rule, space, sign)

    cdef int follow(self, Py_ssize_t user, Rule rule, FoldWorkspace space, int sign) except -1 nogil:
        """Follow an event that other sums have added or subtracted; a user who is not counted yet has no old share."""
        self.admit(user + 1, self.histories.item_room)
        if self.counts(user) == (sign < 0):
            return self.add(user, rule, space, sign)
        return 0 if self.recount is None else self.recount.follow(user, rule, space, sign)

    cdef ItemSums sums_of(self, Py_ssize_t item) noexcept nogil:
        if not 0 <= item < self.item_room:  # an item that is not known, or only in a query
            return ItemSums(0, 0, 0)
        return ItemSums(self.histories.popularity[item], self.buyers[item], self.weights[item])

    def alpha(self):
        """Return alpha as a multiple of 2^-24."""
        return alpha_of(&self.totals)

    def factor(self, Py_ssize_t item):
        """Return an item's factor as a multiple of 2^-16."""
        cdef ItemSums sums = self.sums_of(item)
        return factor_of(&sums, &self.totals.items, self.kappa)

    def factors(self):
        """Return the factors, as multiples of 2^-16, and the buyers of all items, by code."""
        cdef Py_ssize_t item
        cdef ItemSums sums
        factors, buyers = np.empty(self.item_room, np.int64), np.empty(self.item_room, np.int64)
        cdef int64_t[::1] factor = factors, buyer = buyers
        with nogil:
            for item in range(self.item_room):
                sums = self.sums_of(item)
                factor[item], buyer[item] = factor_of(&sums, &self.totals.items, self.kappa), sums.buyers
        return factors, buyers

    def weigh(self, Vector vector, Share old=None, Share new=None):
        """Set the own weights of a query to factor times scaled weight, and return alpha as a float.

        With the shares of a user's `old` and `new` history (None: none), as if the one had replaced the other.
        """
        cdef Totals totals = self.totals
        cdef ItemSums sums
        cdef Py_ssize_t i
        if old is not None:
            add_totals(&totals, &old.totals, -1)
        if new is not None:
            add_totals(&totals, &new.totals, 1)
        for i in range(vector.length):
            sums = self.sums_of(vector.entries[i].item)
            if old is not None:
                add_share(&sums, old, vector.entries[i].item, -1)
            if new is not None:
                add_share(&sums, new, vector.entries[i].item, 1)
            vector.weigh(i, factor_of(&sums, &totals.items, self.kappa))
        return <double> alpha_of(&totals) / (1 << ONE_BITS)

    def sums(self, items):
        """Return the totals (users, hits, squares, purchases, buyers, weight), and the sums of some items."""
        cdef ItemSums sums
        found = {}
        for item in items:
            sums = self.sums_of(item)
            found[item] = (sums.purchases, sums.buyers, sums.weight)
        return totals_tuple(&self.totals), found

    def attach(self, LearnedSums recount):
        """Let other sums follow the events from now on."""
        recount.recount = self.recount
        self.recount = recount

    def detach(self, LearnedSums recount):
        """Stop that."""
        cdef LearnedSums sums = self
        while sums.recount is not None and sums.recount is not recount:
            sums = sums.recount
        if sums.recount is not None:
            sums.recount = recount.recount


cdef int add_share(ItemSums *sums, Share share, item, int sign) except -1:
    cdef ItemSums own
    purchases, buyers, item_weight = share.items.get(item, (0, 0, 0))
    own = ItemSums(purchases, buyers, item_weight)
    add_items(sums, &own, sign)
