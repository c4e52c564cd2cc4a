cimport cython
from libc.math cimport rint
from libc.stdint cimport int32_t, int64_t, uint32_t

from unbasket.core.model.history cimport History

cdef enum:
    ONE_BITS = 24  # fixed-point weights are multiples of 2^-24
    SCALE_BITS = 16  # scales and factors are multiples of 2^-16
    POWERS = 256  # of the group decay in a table


cdef struct Level:
    double value  # decayed sum of the item's shares as of group `last`
    int32_t last  # the last group with the item, counted from 1; 0 if no group had it


cdef struct Checkpoint:
    Py_ssize_t older  # the next older checkpoint of the same user; 0 ends the chain
    Py_ssize_t baskets  # baskets folded so far
    Py_ssize_t items  # items in these baskets
    Py_ssize_t groups  # groups folded so far


cdef struct VectorEntry:
    uint32_t item  # code
    uint32_t weight  # fixed point, above zero
    uint32_t posting  # in the index: position among the item's postings


@cython.final
cdef class Rule:
    cdef Py_ssize_t group_size  # m; the number of groups if they are counted
    cdef Py_ssize_t stride  # groups per checkpoint
    cdef double basket_decay  # r_b
    cdef double group_decay  # r_g
    cdef double powers[POWERS]  # of r_g
    cdef readonly bint varying  # whether group sizes vary
    cdef readonly bint counted  # whether m is the number of groups instead of their size
    cdef readonly bint learns  # whether weights are learned; groups have one basket then

    cdef uint32_t scale(self, Py_ssize_t groups) noexcept nogil
    cdef double unit(self, Py_ssize_t groups) noexcept nogil


@cython.final
cdef class FoldWorkspace:
    cdef Level *levels  # by item
    cdef uint32_t *touched  # items with a level
    cdef readonly Py_ssize_t room  # item codes that fit
    cdef Py_ssize_t count  # length of `touched`
    cdef Py_ssize_t groups  # groups folded so far
    cdef Py_ssize_t horizon  # the group to which levels decay: the last one or, if groups are counted, number m
    cdef int64_t hits, squares  # sums of x and of x x over the items of the last basket, if weights are learned

    cdef int widen(self, Py_ssize_t items) except -1 nogil
    cdef int clean(self) except -1 nogil


@cython.final
cdef class Vector:
    cdef VectorEntry *entries  # with weights above zero
    cdef double *own  # by entry: its weight in the user's own part of a score
    cdef readonly uint32_t scale  # of the history, fixed point
    cdef readonly object share  # the history's `Share` of the learned sums, or None
    cdef Py_ssize_t length  # entries in use
    cdef Py_ssize_t room  # entries that fit

    @staticmethod
    cdef Vector of(Py_ssize_t room)
    cdef int _allocate(self, Py_ssize_t room) except -1
    cdef int add(self, uint32_t item, uint32_t weight) except -1 nogil
    cdef void weigh(self, Py_ssize_t i, int64_t factor) noexcept nogil


cdef inline double power(double base, Py_ssize_t exponent) noexcept nogil:
    """Return base^exponent by multiplications only: the same bits on every platform."""
    cdef double result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


cdef inline double decay(Rule rule, Py_ssize_t lag) noexcept nogil:
    """Return r_g^lag: the same bits as of `power`, from a table if it is there."""
    return rule.powers[lag] if lag < POWERS else power(rule.group_decay, lag)


cdef inline double decayed_at(const Level *level, Py_ssize_t group, Rule rule) noexcept nogil:
    """Return the decayed sum of an item's shares as of a group, from the item's level then."""
    return level.value * decay(rule, group - level.last)


cdef inline double weight(FoldWorkspace space, uint32_t item, Rule rule) noexcept nogil:
    """Return an item's weight in the user vector, from its level as of its last group."""
    return decayed_at(&space.levels[item], space.horizon, rule) / space.groups


cdef inline int64_t fixed_point(double value) noexcept nogil:
    """Round a weight to a multiple of 2^-24."""
    return <int64_t> rint(value * (1 << ONE_BITS))


cdef inline int64_t rounded_weight(FoldWorkspace space, uint32_t item, Rule rule) noexcept nogil:
    """Return an item's weight in fixed point; with learned weights it is above 0, so every item is in the vector."""
    return max(fixed_point(weight(space, item, rule)), <int64_t> rule.learns)


cdef inline int64_t scaled_weight(int64_t weight, uint32_t scale) noexcept nogil:
    """Return a weight times the scale of its history: with learned weights, from 0 to 1 however long that is."""
    return (weight * scale) >> SCALE_BITS


cdef Py_ssize_t count_groups(const History *history, Py_ssize_t first, Rule rule) noexcept nogil
cdef int fold_group(const History *history, Checkpoint *state, Rule rule, FoldWorkspace space) except -1 nogil
cdef int replay(const History *history, Rule rule, FoldWorkspace space) except -1 nogil
cdef Vector rounded(FoldWorkspace space, Rule rule)
