"""Learned weights: alpha, and a factor for each item, from whole-number sums over all users.

Before a user's last basket, an item of the earlier ones has the weight x in 0 to 1, its decayed count divided by that of
an item in every basket; y says whether the last basket has it. Alpha is the slope of the least squares,
sum(x y) / sum(x x): how much of such a weight comes true.

An item's factor compares how often it is bought again with how much of its weight has faded:

    f = (C - U + kappa rho) / (C - S + kappa) / rho,    rho = sum(C - U) / sum(C - S) over all items

with C purchases, U buyers, and S the sum of the buyers' decayed counts.

A user's share of the sums is a function of that user's history alone. An event takes the old share out and puts the new
one in, at a cost of the user's items. U and S follow from the vector, which has every item of the history; the user's
sums of x y and x x are kept, in 16 bytes. All are exact integers, so they depend on the remaining histories only.
Nothing overflows: the sums stay below 2^24 times the purchases that fit into memory, and ratios have 128 bits.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from unbasket.core.memory.buffers cimport give_back, grown
from unbasket.core.model.fold cimport (
    ONE_BITS, SCALE_BITS, FoldWorkspace, Rule, Vector, VectorEntry, decayed_at, fixed_point, replay, rounded_weight
)
from unbasket.core.model.history cimport Histories, History

cdef extern from *:
    """
    /* a * b / c, of numbers that are not negative. A division of 64 bits is much faster than one of 128. */
    static int64_t times_over(int64_t a, int64_t b, int64_t c) {
        __int128 product = (__int128) a * b;
        return product >> 63 == 0 ? (int64_t) product / c : (int64_t) (product / c);
    }
    """
    int64_t times_over(int64_t a, int64_t b, int64_t c) noexcept nogil
    void prefetch "__builtin_prefetch"(const void *memory) noexcept nogil

cdef enum:
    PRIOR_USERS = 20  # as many users as the prior alpha is worth; docs/evaluation.md says how it was chosen

cdef int64_t PRIOR_ALPHA = fixed_point(0.8)


cdef int64_t alpha_of(const Totals *totals) noexcept nogil:
    """Return alpha as a multiple of 2^-24."""
    cdef int64_t slope = 0
    if totals.regression.squares > 0:
        slope = min(times_over(totals.regression.hits, 1 << ONE_BITS, totals.regression.squares), 1 << ONE_BITS)
    return (totals.users * slope + PRIOR_USERS * PRIOR_ALPHA) // (totals.users + PRIOR_USERS)


cdef int64_t factor_of(int64_t purchases, ItemSums item, const Totals *totals, int64_t kappa) noexcept nogil:
    """Return an item's factor as a multiple of 2^-16; 1 without repurchases, without decay, or without kappa."""
    cdef int64_t repeats = totals.purchases - totals.items.buyers
    cdef int64_t all_faded = faded(totals.purchases, totals.items)
    if kappa == 0 or repeats == 0 or all_faded == 0:
        return 1 << SCALE_BITS
    cdef int64_t expected = (purchases - item.buyers) * (all_faded // repeats)  # the weight that should have faded
    return times_over(expected + kappa, 1 << SCALE_BITS, faded(purchases, item) + kappa)


cdef inline int64_t faded(int64_t purchases, ItemSums sums) noexcept nogil:
    """Return C - S, fixed point; weights are rounded, so it could be a little below 0."""
    return max((purchases << ONE_BITS) - sums.weight, 0)


cdef void add_totals(Totals *sums, const Totals *share, int sign) noexcept nogil:
    sums.users += sign * share.users
    sums.regression.hits += sign * share.regression.hits
    sums.regression.squares += sign * share.regression.squares
    sums.purchases += sign * share.purchases
    sums.items.buyers += sign * share.items.buyers
    sums.items.weight += sign * share.items.weight


cdef Regression regression_of(Rule rule, FoldWorkspace space) noexcept nogil:
    """Return the sums of x y and x x of the history in the workspace."""
    cdef Py_ssize_t n = space.groups, i
    cdef int64_t squares = space.squares, x
    cdef double unit = rule.unit(n - 1)
    cdef const uint32_t *touched = space.touched
    for i in range(space.count):
        if space.levels[touched[i]].last < n:  # not in the last basket, whose items are in `space.squares`
            x = fixed_point(decayed_at(&space.levels[touched[i]], n - 1, rule) * unit)
            squares += x * x
    return Regression(space.hits, squares >> ONE_BITS)


@cython.final
cdef class Share:
    """A history's share of the sums: in all, and by item."""

    def as_tuple(self):
        """Return the totals (users, hits, squares, purchases, buyers, weight), and the sums of each item."""
        return totals_tuple(&self.totals), self.items


cdef tuple totals_tuple(const Totals *totals):
    cdef const Regression *regression = &totals.regression
    cdef const ItemSums *items = &totals.items
    return totals.users, regression.hits, regression.squares, totals.purchases, items.buyers, items.weight


cdef Share share_of(const History *history, Py_ssize_t purchases, Rule rule, FoldWorkspace space):
    """Return the share of a history that is folded in the workspace, and has this many purchases."""
    cdef Share share = Share()
    cdef Py_ssize_t n = history.length, i
    counts = {}
    for i in range(purchases):
        counts[history.items[i]] = counts.get(history.items[i], 0) + 1
    share.items = {item: (count, 1, n * rounded_weight(space, item, rule)) for item, count in counts.items()}
    weight = sum([each for _, _, each in share.items.values()])
    share.totals = Totals(n > 1, regression_of(rule, space), purchases, ItemSums(space.count, weight))
    return share


@cython.final
cdef class LearnedSums:
    """The sums of all users, and the alpha and the factors that follow from them."""

    def __init__(self, Histories histories, double kappa):
        self.histories = histories
        self.kappa = fixed_point(kappa)

    def __dealloc__(self):
        give_back(self.items, self.item_room * sizeof(ItemSums))
        give_back(self.users, self.user_room * sizeof(Regression))

    cdef int admit(self, Py_ssize_t users, Py_ssize_t items) except -1 nogil:
        """Make room for user codes below `users` and item codes below `items`."""
        if items > self.item_room:
            self.items = <ItemSums *> grown(self.items, self.item_room, items, sizeof(ItemSums))
            self.item_room = items
        if users > self.user_room:
            self.users = <Regression *> grown(self.users, self.user_room, users, sizeof(Regression))
            self.user_room = users

    cdef bint counts(self, Py_ssize_t user) noexcept nogil:
        """Return whether the sums have the user's share."""
        return user < self.user_room and self.users[user].squares != 0

    cdef int add(
        self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length, Regression regression
    ) except -1 nogil:
        """Add the share of a user, unless it is there: of the present history, with this vector."""
        self.admit(user + 1, self.histories.item_room)
        if not self.counts(user):
            self._add(user, entries, length, regression, 1)
            self.users[user] = Regression(regression.hits, regression.squares + 1)
        return 0 if self.recount is None else self.recount.add(user, entries, length, regression)

    cdef int remove(self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length) except -1 nogil:
        """Remove the share of a user, if it is there."""
        cdef Regression kept
        if self.counts(user):
            kept = self.users[user]
            self._add(user, entries, length, Regression(kept.hits, kept.squares - 1), -1)
            self.users[user] = Regression(0, 0)
        return 0 if self.recount is None else self.recount.remove(user, entries, length)

    cdef int _add(
        self, Py_ssize_t user, const VectorEntry *entries, Py_ssize_t length, Regression regression, int sign
    ) except -1 nogil:
        cdef Py_ssize_t i
        cdef int64_t n = self.histories.baskets.length(user), weight = 0
        cdef ItemSums *items = self.items
        for i in range(length):
            assert entries[i].item < self.item_room, "no such item"
            items[entries[i].item].buyers += sign
            items[entries[i].item].weight += sign * n * entries[i].weight
            weight += n * entries[i].weight
        cdef Totals share = Totals(n > 1, regression, self.histories.items.length(user), ItemSums(length, weight))
        add_totals(&self.totals, &share, sign)

    def alpha(self):
        """Return alpha as a multiple of 2^-24."""
        return alpha_of(&self.totals)

    def factor(self, Py_ssize_t item, int64_t buyers):
        """Return an item's factor as a multiple of 2^-16; 1 for an item with fewer buyers, or an unknown one."""
        if not 0 <= item < self.item_room or self.items[item].buyers < buyers:
            return 1 << SCALE_BITS
        return factor_of(self.histories.popularity[item], self.items[item], &self.totals, self.kappa)

    def factors(self):
        """Return the factors, as multiples of 2^-16, and the buyers of all items, by code."""
        cdef Py_ssize_t item
        factors, buyers = np.empty(self.item_room, np.int64), np.empty(self.item_room, np.int64)
        cdef int64_t[::1] factor = factors, buyer = buyers
        with nogil:
            for item in range(self.item_room):
                factor[item] = factor_of(self.histories.popularity[item], self.items[item], &self.totals, self.kappa)
                buyer[item] = self.items[item].buyers
        return factors, buyers

    def weigh(self, Vector vector, int64_t buyers):
        """Set the own weights of a query to factor times scaled weight, and return alpha as a float.

        The factor of an item with fewer than `buyers` counts as 1.
        """
        cdef Py_ssize_t i
        cdef uint32_t item
        for i in range(vector.length):  # a search has filled the caches with other things
            prefetch(&self.histories.popularity[vector.entries[i].item])
            prefetch(&self.items[vector.entries[i].item])
        for i in range(vector.length):
            item = vector.entries[i].item
            if item < self.item_room and self.items[item].buyers >= buyers:
                vector.weigh(
                    i, factor_of(self.histories.popularity[item], self.items[item], &self.totals, self.kappa)
                )
            else:
                vector.weigh(i, 1 << SCALE_BITS)
        return <double> alpha_of(&self.totals) / (1 << ONE_BITS)

    def weigh_instead(self, Vector vector, int64_t buyers, Share old):
        """Do the same as if the history of the query had replaced one with the share `old` (None: none)."""
        cdef Share new = vector.share
        cdef Totals totals = self.totals
        cdef Py_ssize_t i
        if old is not None:
            add_totals(&totals, &old.totals, -1)
        add_totals(&totals, &new.totals, 1)
        for i in range(vector.length):
            item = vector.entries[i].item
            purchases, bought_by, weight = self._item_sums(item)
            for share, sign in ((old, -1), (new, 1)):
                if share is not None and item in (<Share> share).items:
                    own = (<Share> share).items[item]
                    purchases, bought_by, weight = purchases + sign * own[0], bought_by + sign, weight + sign * own[2]
            if bought_by < buyers:
                vector.weigh(i, 1 << SCALE_BITS)
            else:
                vector.weigh(i, factor_of(purchases, ItemSums(bought_by, weight), &totals, self.kappa))
        return <double> alpha_of(&totals) / (1 << ONE_BITS)

    def _item_sums(self, Py_ssize_t item):
        """Return purchases, buyers and weight of an item."""
        if item >= self.item_room:
            return 0, 0, 0
        return self.histories.popularity[item], self.items[item].buyers, self.items[item].weight

    def sums(self, items):
        """Return the totals (users, hits, squares, purchases, buyers, weight), and the sums of some items."""
        return totals_tuple(&self.totals), {item: self._item_sums(item) for item in items}

    def without(self, list users, list items, Rule rule, FoldWorkspace space):
        """Return the totals, and the bytes of the sums of some sorted items, without the shares of some users.

        The shares are those of the users' histories, folded from the start without checkpoints.
        """
        cdef Totals totals = self.totals, share
        cdef History history
        cdef Py_ssize_t user, i, row
        cdef int64_t weight
        cdef const uint32_t[::1] wanted = np.array(items, np.uint32)
        cdef int64_t[:, ::1] rest = np.zeros((len(items), 3), np.int64)
        for row in range(len(wanted)):
            if wanted[row] < self.item_room:
                rest[row, 0] = self.histories.popularity[wanted[row]]
                rest[row, 1] = self.items[wanted[row]].buyers
                rest[row, 2] = self.items[wanted[row]].weight
        space.widen(self.histories.item_room)
        for user in users:
            self.histories.of(user, &history)
            replay(&history, rule, space)
            share = Totals(
                history.length > 1, regression_of(rule, space), self.histories.items.length(user),
                ItemSums(space.count, 0)
            )
            for i in range(share.purchases):
                row = row_of(wanted, history.items[i])
                if row >= 0:
                    rest[row, 0] -= 1
            for i in range(space.count):
                weight = history.length * rounded_weight(space, space.touched[i], rule)
                share.items.weight += weight
                row = row_of(wanted, space.touched[i])
                if row >= 0:
                    rest[row, 1] -= 1
                    rest[row, 2] -= weight
            add_totals(&totals, &share, -1)
            space.clean()
        return totals_tuple(&totals), bytes(rest)

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


cdef Py_ssize_t row_of(const uint32_t[::1] items, uint32_t item) noexcept nogil:
    """Return where an item is in sorted ones; -1 if it is not there."""
    cdef Py_ssize_t first = 0, end = items.shape[0], middle
    while first < end:
        middle = (first + end) // 2
        if items[middle] < item:
            first = middle + 1
        else:
            end = middle
    return first if first < items.shape[0] and items[first] == item else -1


cdef Totals totals_from(tuple sums):
    users, hits, squares, purchases, buyers, weight = sums
    return Totals(users, Regression(hits, squares), purchases, ItemSums(buyers, weight))


def alpha_from(tuple sums):
    """Return alpha as a float, from the totals of all users, as of `LearnedSums.sums`."""
    cdef Totals totals = totals_from(sums)
    return <double> alpha_of(&totals) / (1 << ONE_BITS)


def factors_from(tuple sums, const int64_t[:, ::1] items, double kappa):
    """Return the factors of all items as multiples of 2^-16; a row of `items` has purchases, buyers and weight."""
    cdef Totals totals = totals_from(sums)
    cdef Py_ssize_t i
    factors = np.empty(items.shape[0], np.int64)
    cdef int64_t[::1] factor = factors
    for i in range(items.shape[0]):
        factor[i] = factor_of(items[i, 0], ItemSums(items[i, 1], items[i, 2]), &totals, fixed_point(kappa))
    return factors
