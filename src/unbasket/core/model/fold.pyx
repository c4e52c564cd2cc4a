"""The update rule of the model: fold a user's baskets, oldest first, into a vector of item weights.

The paper's user vector (Eq. groupvector in Eq. uservector) gives an item the weight

    1/K * sum over groups j of r_g^(K-j) * (1/tau_j * sum over its baskets i with the item of r_b^(tau_j-i))

The fold keeps, per item, the sum so far as of the last group with the item, its *level*; another basket in group g
turns it into  level * r_g^(g - last) + r_b^(tau-i) / tau.  Unlike the paper's rules (Eq. dec_dsa), it neither subtracts
nor divides by a decay, so nothing drifts: forgetting replays the remaining baskets with the same instructions as
training from scratch.

The original TIFU-kNN (`HaojiHu/TIFUKNN`, TIFUKNN.py: group_history_list, temporal_decay_sum_history) takes m as the
number of groups. Of n baskets it makes K = min(n, m) groups of n // m or, the newest n % m of them, one more; r_b decays
over the whole history, and r_g from group m on, though there may be fewer:

    1/K * sum over groups j of r_g^(m-j) * (1/tau_j * sum over its baskets i with the item of r_b^(n-i))

Any event changes n, and with it every boundary, so such a history is always folded from the start.
"""

cimport cython
from libc.stdint cimport int64_t, uint32_t

import numpy as np

from unbasket.core.memory.buffers cimport allocated, give_back, grown
from unbasket.core.model.history cimport History

ONE = 1 << ONE_BITS  # the fixed-point weight 1.0
FACTOR_ONE = 1 << SCALE_BITS  # the fixed-point scale or factor 1.0


@cython.final
cdef class Rule:
    """The parameters of the fold: m, r_b, r_g, how baskets are grouped, groups per checkpoint, if weights are learned."""

    def __init__(
        self, Py_ssize_t group_size, double basket_decay, double group_decay, bint varying, bint counted,
        Py_ssize_t stride, bint learns=False
    ):
        assert not learns or (group_size == 1 and not varying and not counted), "learned weights need groups of one"
        self.group_size = group_size
        self.basket_decay = basket_decay
        self.group_decay = group_decay
        self.varying = varying
        self.counted = counted
        self.stride = stride
        self.learns = learns
        for lag in range(POWERS):
            self.powers[lag] = power(group_decay, lag)

    cdef uint32_t scale(self, Py_ssize_t groups) noexcept nogil:
        """Return K / D(K), fixed point, where D(K) is the sum of r_g^lag over K groups; 1 unless weights are learned."""
        if not self.learns or groups <= 0:
            return 1 << SCALE_BITS
        return <uint32_t> min(rint(groups * self.unit(groups) * (1 << SCALE_BITS)), 4294967295.0)

    cdef double unit(self, Py_ssize_t groups) noexcept nogil:
        """Return 1 / D(K): a decayed count times this is from 0 to 1."""
        if groups <= 0:
            return 1.0
        if self.group_decay == 1.0:
            return 1.0 / groups
        return (1.0 - self.group_decay) / (1.0 - power(self.group_decay, groups))


@cython.final
cdef class FoldWorkspace:
    """The state of one fold: a level per item, dense over all items and zero between folds."""

    def __dealloc__(self):
        give_back(self.levels, self.room * sizeof(Level))
        give_back(self.touched, self.room * sizeof(uint32_t))

    cdef int widen(self, Py_ssize_t items) except -1 nogil:
        """Make room for item codes below `items`; between folds only."""
        assert self.count == 0, "a fold is under way"
        if items > self.room:
            items += items // 4
            self.levels = <Level *> grown(self.levels, self.room, items, sizeof(Level))
            self.touched = <uint32_t *> grown(self.touched, self.room, items, sizeof(uint32_t))
            self.room = items

    cdef int clean(self) except -1 nogil:
        cdef Py_ssize_t i
        cdef Level *level
        for i in range(self.count):
            level = &self.levels[self.touched[i]]
            level.value, level.last = 0.0, 0
            self.touched[i] = 0
        self.count = self.groups = self.horizon = self.hits = self.squares = 0


@cython.final
cdef class Vector:
    """A fixed-point vector outside of the index: a query, or a copy of a user's vector."""

    def __init__(self, const uint32_t[::1] items, const uint32_t[::1] weights, uint32_t scale=1 << SCALE_BITS):
        cdef Py_ssize_t i
        assert self.entries == NULL and len(items) == len(weights), "one weight for each item"
        self._allocate(len(items))
        self.scale = scale
        for i in range(self.room):
            self.add(items[i], weights[i])

    @staticmethod
    cdef Vector of(Py_ssize_t room):
        """Return an empty vector with room for some entries."""
        cdef Vector vector = Vector.__new__(Vector)
        vector._allocate(room)
        return vector

    cdef int _allocate(self, Py_ssize_t room) except -1:
        self.entries = <VectorEntry *> allocated(room, sizeof(VectorEntry))
        self.own = <double *> allocated(room, sizeof(double))
        self.room, self.scale = room, 1 << SCALE_BITS

    def __dealloc__(self):
        give_back(self.entries, self.room * sizeof(VectorEntry))
        give_back(self.own, self.room * sizeof(double))

    cdef int add(self, uint32_t item, uint32_t weight) except -1 nogil:
        """Add an entry, unless its weight was rounded to zero."""
        assert self.length < self.room, "no room"
        if weight != 0:
            self.entries[self.length] = VectorEntry(item, weight, 0)
            self.own[self.length] = weight
            self.length += 1

    cdef void weigh(self, Py_ssize_t i, int64_t factor) noexcept nogil:
        """Set an own weight to a factor, fixed point, times the scaled weight."""
        self.own[i] = <double> factor * scaled_weight(self.entries[i].weight, self.scale) / (1 << SCALE_BITS)

    def weigh_by(self, const int64_t[::1] factors):
        """Set the own weights by the factors of all items, multiples of 2^-16."""
        cdef Py_ssize_t i
        for i in range(self.length):
            assert self.entries[i].item < factors.shape[0], "no such item"
            self.weigh(i, factors[self.entries[i].item])

    def split(self, Py_ssize_t end):
        """Return the entries of items with codes below `end` as a vector, and the own weights of the others by code."""
        cdef Vector known = Vector.of(self.length)
        cdef Py_ssize_t i
        others = {}
        known.scale, known.share = self.scale, self.share
        for i in range(self.length):
            if self.entries[i].item < end:
                known.own[known.length] = self.own[i]
                known.entries[known.length] = self.entries[i]
                known.length += 1
            else:
                others[self.entries[i].item] = self.own[i]
        return known, others

    def __len__(self):
        return self.length

    @property
    def items(self):
        return np.array([self.entries[i].item for i in range(self.length)], np.uint32)

    @property
    def weights(self):
        """The weights, as multiples of 2^-24."""
        return np.array([self.entries[i].weight for i in range(self.length)], np.uint32)


cdef Py_ssize_t group_end(const History *history, Py_ssize_t first, Rule rule) noexcept nogil:
    """Return where the group that starts with the basket `first` ends."""
    cdef Py_ssize_t end = first + 1, base, short
    if rule.counted:
        base = history.length // rule.group_size
        short = (rule.group_size - history.length % rule.group_size) * base  # baskets in the older, shorter groups
        return first + base if first < short else first + base + 1
    if not rule.varying:
        return min(first + rule.group_size, history.length)
    while end < history.length and not history.baskets[end].opens_group:
        end += 1
    return end


cdef Py_ssize_t count_groups(const History *history, Py_ssize_t first, Rule rule) noexcept nogil:
    """Count the groups from the basket `first` on, which starts a group."""
    cdef Py_ssize_t count = 0
    while first < history.length:
        first = group_end(history, first, rule)
        count += 1
    return count


cdef int fold_group(const History *history, Checkpoint *state, Rule rule, FoldWorkspace space) except -1 nogil:
    """Fold the next group into the workspace, and advance `state` past it."""
    cdef Py_ssize_t end = group_end(history, state.baskets, rule), group = state.groups + 1, basket, i
    cdef Py_ssize_t newest = (history.length if rule.counted else end) - 1
    cdef double share
    cdef uint32_t item
    cdef Level *level
    if rule.learns and end == history.length:
        weigh_last(history, state, rule, space)
    for basket in range(state.baskets, end):
        share = power(rule.basket_decay, newest - basket) / (end - state.baskets)
        for i in range(state.items, state.items + history.baskets[basket].size):
            item = history.items[i]
            assert item < space.room, "no such item"
            level = &space.levels[item]
            if level.last == group:
                level.value += share
            elif level.last == 0:
                level.value = share
                space.touched[space.count] = item
                space.count += 1
            else:
                level.value = level.value * decay(rule, group - level.last) + share
            level.last = <int> group
        state.items += history.baskets[basket].size
    state.baskets, state.groups, space.groups = end, group, group
    space.horizon = rule.group_size if rule.counted else group


cdef int weigh_last(const History *history, const Checkpoint *state, Rule rule, FoldWorkspace space) except -1 nogil:
    """Sum up x, the weights before the last basket, of the items that it has."""
    cdef double unit = rule.unit(space.groups)
    cdef int64_t x
    cdef Py_ssize_t i
    for i in range(state.items, state.items + history.baskets[state.baskets].size):
        if space.levels[history.items[i]].last != 0:
            x = fixed_point(decayed_at(&space.levels[history.items[i]], space.groups, rule) * unit)
            space.hits += x
            space.squares += x * x


cdef int replay(const History *history, Rule rule, FoldWorkspace space) except -1 nogil:
    """Fold a history from the start into a clean workspace that has room for its items."""
    cdef Checkpoint state = Checkpoint(0, 0, 0, 0)
    while state.baskets < history.length:
        fold_group(history, &state, rule, space)


cdef Vector rounded(FoldWorkspace space, Rule rule):
    """Return the folded vector in fixed point, and clean the workspace."""
    cdef Vector result = Vector.of(space.count)
    cdef Py_ssize_t i
    result.scale = rule.scale(space.groups)
    for i in range(space.count):
        result.add(space.touched[i], <uint32_t> rounded_weight(space, space.touched[i], rule))
    space.clean()
    return result
