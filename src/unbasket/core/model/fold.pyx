"""The one update rule of the model: baskets are folded, oldest first, into the weights of a user's items.

The paper's user vector (Eq. groupvector in Eq. uservector) gives an item the weight

    1/K * sum over groups j of r_g^(K-j) * (1/tau_j * sum over its baskets i with the item of r_b^(tau_j-i))

The fold keeps, per item, the sum so far as of the last group that held the item, its *level*; a further basket in
group g turns it into  level * r_g^(g - last) + r_b^(tau-i) / tau.  There is no subtraction and no division by a
decay, unlike the paper's rules (Eq. dec_dsa), so nothing drifts: to forget is to replay the baskets that remain,
with the very instructions that training from scratch would execute.
"""

cimport cython
from libc.stdint cimport uint32_t

from unbasket.core.model.history cimport Basket, Histories, History
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints, worth_keeping
from unbasket.core.model.workspace cimport FoldWorkspace, Level


@cython.final
cdef class Rule:
    """The parameters that make a vector: m, r_b, r_g, whether groups may vary in size; and groups per checkpoint."""

    def __init__(self, Py_ssize_t group_size, double basket_decay, double group_decay, bint varying, Py_ssize_t stride):
        self.group_size = group_size
        self.basket_decay = basket_decay
        self.group_decay = group_decay
        self.varying = varying
        self.stride = stride


cdef Py_ssize_t group_end(const History *history, Py_ssize_t first, Rule rule) noexcept nogil:
    """Where the group that starts with the basket `first` ends."""
    cdef Py_ssize_t end = first + 1
    if not rule.varying:
        return min(first + rule.group_size, history.length)
    while end < history.length and not history.baskets[end].opens_group:
        end += 1
    return end


cdef Py_ssize_t count_groups(const History *history, Py_ssize_t first, Rule rule) noexcept nogil:
    """The number of groups from the basket `first` on, which starts one."""
    cdef Py_ssize_t count = 0
    while first < history.length:
        first = group_end(history, first, rule)
        count += 1
    return count


cdef int fold_group(const History *history, Checkpoint *state, Rule rule, FoldWorkspace space) except -1 nogil:
    """Fold the next group; `state` says what lies before it, and after it afterwards."""
    cdef Py_ssize_t end = group_end(history, state.baskets, rule), group = state.groups + 1, basket, i
    cdef double share
    cdef uint32_t item
    cdef Level *level
    for basket in range(state.baskets, end):
        share = power(rule.basket_decay, end - 1 - basket) / (end - state.baskets)
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
                level.value = level.value * power(rule.group_decay, group - level.last) + share
            level.last = <int> group
        state.items += history.baskets[basket].size
    state.baskets, state.groups, space.groups = end, group, group
    return 0


cdef int resume(
    Histories histories, Checkpoints checkpoints, Py_ssize_t user, FoldWorkspace space, History *history, Checkpoint *state
) except -1 nogil:
    """Put what a user's newest checkpoint says into a clean work space; fills in the history, and what lies before."""
    histories.of(user, history)
    space.widen(histories.item_room)
    state[0] = checkpoints.table[checkpoints.newest[user]]  # number 0 says that nothing lies before the start
    if checkpoints.newest[user] != 0:
        checkpoints.restore(checkpoints.newest[user], space)
    return 0


cdef int fold(Histories histories, Checkpoints checkpoints, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil:
    """Fold a user's history from the newest checkpoint on into a clean work space; sets the checkpoints that it should have."""
    cdef History history
    cdef Checkpoint state
    cdef Py_ssize_t groups, resumed
    resume(histories, checkpoints, user, space, &history, &state)
    groups = state.groups + count_groups(&history, state.baskets, rule)
    resumed = state.groups
    while state.baskets < history.length:
        if state.groups > resumed and worth_keeping(state.groups, groups, rule.stride):
            checkpoints.save(user, &state, space)
        fold_group(&history, &state, rule, space)
    return checkpoints.thin(user, groups, rule.stride)


cdef int look(Histories histories, Checkpoints checkpoints, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil:
    """`fold` without a change to the checkpoints."""
    cdef History history
    cdef Checkpoint state
    resume(histories, checkpoints, user, space, &history, &state)
    while state.baskets < history.length:
        fold_group(&history, &state, rule, space)
    return 0


cdef int replay(const History *history, Rule rule, FoldWorkspace space) except -1 nogil:
    """Fold a history from the start, whoever's it is, into a clean work space that is wide enough."""
    cdef Checkpoint state = Checkpoint(0, 0, 0, 0)
    while state.baskets < history.length:
        fold_group(history, &state, rule, space)
    return 0
