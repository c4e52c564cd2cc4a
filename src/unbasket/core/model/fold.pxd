cimport cython
from libc.stdint cimport uint32_t

from unbasket.core.model.history cimport Histories, History
from unbasket.core.model.checkpoints cimport Checkpoint, Checkpoints
from unbasket.core.model.workspace cimport FoldWorkspace


@cython.final
cdef class Rule:
    cdef readonly Py_ssize_t group_size, stride
    cdef readonly double basket_decay, group_decay
    cdef readonly bint varying


cdef inline double power(double base, Py_ssize_t exponent) noexcept nogil:
    """The base to a whole power, by multiplications only: the same bits on every platform."""
    cdef double result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


cdef inline double weight(FoldWorkspace space, uint32_t item, double group_decay) noexcept nogil:
    """An item's entry of the user vector, from its level after the last group."""
    return space.levels[item].value * power(group_decay, space.groups - space.levels[item].last) / space.groups


cdef int fold_group(const History *history, Checkpoint *state, Rule rule, FoldWorkspace space) except -1 nogil
cdef int fold(Histories histories, Checkpoints checkpoints, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil
cdef int look(Histories histories, Checkpoints checkpoints, Py_ssize_t user, Rule rule, FoldWorkspace space) except -1 nogil
cdef int replay(const History *history, Rule rule, FoldWorkspace space) except -1 nogil
