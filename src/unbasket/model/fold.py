"""The one update rule of the model: baskets are folded, oldest first, into the weights of a user's items.

The paper's user vector (Eq. groupvector in Eq. uservector) gives an item the weight

    1/K * sum over groups j of r_g^(K-j) * (1/tau_j * sum over its baskets i with the item of r_b^(tau_j-i))

The fold keeps, per item, the sum so far as of the last group that held the item, its *level*; a further basket in
group g turns it into  level * r_g^(g - last) + r_b^(tau-i) / tau.  There is no subtraction and no division by a
decay, unlike the paper's rules (Eq. dec_dsa), so nothing drifts: to forget is to replay the baskets that remain,
with the very instructions that training from scratch would execute.
"""

import numpy as np
from numba import boolean, float64, int64, types
from numba.experimental import structref

from unbasket.kernels.jit import Codes, Floats, Int64s, Struct, compiled_struct, jit, new, whole
from unbasket.kernels.pool import LENGTH, NONE, START
from unbasket.model.history import FLAGS, OPENS, SIZE, Histories
from unbasket.model.marks import (
    BASKETS,
    GROUPS,
    ITEMS,
    Marks,
    restore,
    save,
    thin,
    worth_keeping,
)
from unbasket.model.space import FoldSpace, widen


@structref.register
class RuleType(types.StructRef):
    """Numba's side of `Rule`."""


class Rule(Struct):
    """The parameters that make a vector: m, r_b, r_g, whether groups may vary in size; and groups per mark."""

    group_size: int
    basket_decay: float
    group_decay: float
    varying: bool
    stride: int


RULE = compiled_struct(
    RuleType, Rule, group_size=int64, basket_decay=float64, group_decay=float64, varying=boolean, stride=int64
)


@jit
def new_rule(group_size: int, basket_decay: float, group_decay: float, varying: bool, stride: int) -> Rule:
    """The rule with these parameters."""
    rule = new(RULE)
    rule.group_size = group_size
    rule.basket_decay = basket_decay
    rule.group_decay = group_decay
    rule.varying = varying
    rule.stride = stride
    return rule


@jit
def power(base: float, exponent: int) -> float:
    """The base to a whole power, by multiplications only: the same bits on every platform."""
    result = 1.0
    while exponent > 0:
        if exponent & 1:
            result *= base
        base *= base
        exponent >>= 1
    return result


@jit
def group_end(baskets: Int64s, first: int, rule: Rule) -> int:
    """Where the group that starts with the basket `first` ends."""
    if not rule.varying:
        return min(first + rule.group_size, len(baskets))
    end = first + 1
    while end < len(baskets) and not baskets[end, FLAGS] & OPENS:
        end += 1
    return end


@jit
def count_groups(baskets: Int64s, first: int, rule: Rule) -> int:
    """The number of groups from the basket `first` on, which starts one."""
    count = 0
    while first < len(baskets):
        first = group_end(baskets, first, rule)
        count += 1
    return count


@jit
def fold_group(
    baskets: Int64s,
    first: int,
    end: int,
    items: Codes,
    place: int,
    group: int,
    rule: Rule,
    space: FoldSpace,
    count: int,
) -> tuple[int, int]:
    """Fold one group (number `group`, from 1); returns the place after its items and the count of touched ones."""
    level, last, touched = space.level, space.last, space.touched
    basket_decay, group_decay = rule.basket_decay, rule.group_decay
    for basket in range(first, end):
        share = power(basket_decay, end - 1 - basket) / (end - first)
        for i in range(place, place + baskets[basket, SIZE]):
            item = items[i, 0]
            if last[item] == group:
                level[item] += share
            elif last[item] == 0:
                level[item] = share
                touched[count] = item
                count += 1
            else:
                level[item] = level[item] * power(group_decay, group - last[item]) + share
            last[item] = group
        place += baskets[basket, SIZE]
    return place, count


@jit
def fold(histories: Histories, marks: Marks, user: int, rule: Rule, space: FoldSpace) -> tuple[int, int]:
    """Fold a user's history from his newest mark on; sets the marks that the history should have.

    Returns the number of touched items, whose levels are in the work space, and the number of groups.
    """
    widen(space, len(histories.popularity))
    first, length = histories.baskets.rows[user, START], histories.baskets.rows[user, LENGTH]
    baskets = histories.baskets.data[first : first + length]
    start = histories.items.rows[user, START]
    items = histories.items.data[start : start + histories.items.rows[user, LENGTH]]
    position, place, group, count = NONE, NONE, NONE, NONE
    mark = whole(marks.newest[user])
    if mark != 0:
        position, place = marks.table[mark, BASKETS], marks.table[mark, ITEMS]
        group = marks.table[mark, GROUPS]
        count = restore(marks, mark, space)
    groups = group + count_groups(baskets, position, rule)
    resumed = group
    while position < length:
        if group > resumed and worth_keeping(group, groups, rule.stride):
            save(marks, user, position, place, group, space, count)
        end = group_end(baskets, position, rule)
        group += 1
        place, count = fold_group(baskets, position, end, items, place, group, rule, space, count)
        position = end
    thin(marks, user, groups, rule.stride)
    return count, groups


@jit
def replay(baskets: Int64s, items: Codes, rule: Rule, space: FoldSpace) -> tuple[int, int]:
    """Fold a history from the start, whoever's it is: basket records, and items as a column; answers as `fold`."""
    position, place, group, count = NONE, NONE, NONE, NONE
    while position < len(baskets):
        end = group_end(baskets, position, rule)
        group += 1
        place, count = fold_group(baskets, position, end, items, place, group, rule, space, count)
        position = end
    return count, group


@jit
def weight(level: float, last: int, groups: int, group_decay: float) -> float:
    """An item's entry of the user vector, from its level after the last of `groups` groups."""
    return level * power(group_decay, groups - last) / groups


@jit
def weights(space: FoldSpace, count: int, groups: int, group_decay: float) -> tuple[Codes, Floats]:
    """The touched items and their entries of the user vector."""
    items = space.touched[:count].copy()
    values = np.empty(count)
    for i in range(count):
        values[i] = weight(space.level[items[i]], space.last[items[i]], groups, group_decay)
    return items, values
