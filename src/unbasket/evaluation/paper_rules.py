"""A literal implementation of the paper's update rules (sections 4.1 to 4.3).

The engine replays a history instead of these rules, because the deletion rule divides by a decay rate and so multiplies
every rounding error (section 6.3). Experiments use this module to show that drift.

Positions count from 0 here and from 1 in the paper, so its exponent n - i is n - 1 - i in this file. Equations are
cited by their labels in the paper's source.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from unbasket.errors import InvalidBasketError, InvalidRequestError

Vector = NDArray[np.float64]
Value = TypeVar("Value", float, Vector)  # an element of a series: a number or a dense vector


def decaying_average(series: Sequence[Value], r: float) -> Value:
    """Return the sum of r^(n-i) * x_i over n: section 4.1, and so Eq. groupvector and Eq. uservector.

    Eq. groupvector writes the group size m for n, which is wrong for the newest, shorter group.
    """
    n = len(series)
    if n == 0:
        raise InvalidRequestError("an empty series has no decaying average: give at least one value")
    return _weighted_sum(decays(r, n - 1), series) / n


def add(average: Value, n: int, x: Value, r: float) -> Value:
    """Append x to a series of n values: Eq. inc_dsa.

    The first line of the paper's derivation lacks the term x_(n+1); its last line, used here, has it.
    """
    return (r * n * average + x) / (n + 1)


def delete(average: Value, series: Sequence[Value], i: int, r: float) -> Value:
    """Delete the value at position i of the series: Eq. dec_dsa.

    The paper calls D's slice the one "after" the deleted value; it begins with that value.
    """
    n = len(series)
    if n < 2:
        raise InvalidRequestError(f"nothing remains of a series of {n} to average: give at least two values")
    change = _weighted_sum(decays(r, n - 1 - i), differences(series[i:]))
    return (n * average + change) / ((n - 1) * r)


def update(average: Value, n: int, i: int, old: Value, new: Value, r: float) -> Value:
    """Replace the value at position i of a series of n: Eq. inplace_dsa."""
    return (n * average + r ** (n - 1 - i) * (new - old)) / n


def differences(values: Sequence[Value]) -> list[Value]:
    """Return D(.) of section 4.1: the first-order differences, then the last value negated.

    Scenario 2 of section 4.3 ends D with -v_bk where the last group vector, -v_gk, is meant.
    """
    return [after - before for before, after in pairwise(values)] + [-values[-1]]


def decays(r: float, n: int) -> list[float]:
    """Return R(r, n) of section 4.1: r^n, ..., r, 1."""
    return [r**exponent for exponent in range(n, -1, -1)]


def _weighted_sum(weights: Sequence[float], values: Sequence[Value]) -> Value:
    total = weights[0] * values[0]
    for weight, value in zip(weights[1:], values[1:], strict=True):
        total = total + weight * value
    return total


def multi_hot(items: Iterable[int], dimension: int) -> Vector:
    """Encode a basket as a vector of zeros and ones: step 1 of section 2.2, items counted from 0."""
    basket = sorted(set(items))
    if not basket or basket[0] < 0 or basket[-1] >= dimension:
        raise InvalidBasketError(f"a basket holds at least one item from 0 to {dimension - 1}, not {basket}")
    vector = np.zeros(dimension)
    vector[basket] = 1.0
    return vector


@dataclass(slots=True, eq=False)
class Group:
    """A group of baskets, oldest first, and its maintained vector."""

    vector: Vector
    baskets: list[Vector]


class PaperUser:
    """One user's vector under the paper's rules, with its varying group size (section 4.3)."""

    def __init__(self, m: int, r_b: float, r_g: float, dimension: int) -> None:
        self.m = m
        self.r_b = r_b
        self.r_g = r_g
        self.dimension = dimension
        self.groups: list[Group] = []
        self.vector: Vector = np.zeros(dimension)

    def add_basket(self, items: Iterable[int]) -> None:
        """Append a basket (section 4.2)."""
        basket = multi_hot(items, self.dimension)
        if not self.groups or len(self.groups[-1].baskets) >= self.m:
            # Scenario 1, Eq. inc_user_vector_rule_1: the new group's vector is the basket itself.
            self.vector = add(self.vector, len(self.groups), basket, self.r_g)
            self.groups.append(Group(basket, [basket]))
        else:
            # Scenario 2, Eq. inc_group_vector_rule_2 and Eq. inc_user_vector_rule_2.
            newest = self.groups[-1]
            changed = add(newest.vector, len(newest.baskets), basket, self.r_b)
            newest.baskets.append(basket)
            self._set_group_vector(len(self.groups) - 1, changed)

    def delete_basket(self, position: int) -> None:
        """Delete the basket at this position of the whole history, the oldest being 0."""
        j, i = self._locate(position)
        group = self.groups[j]
        if len(group.baskets) > 1:
            # Scenario 1, Eq. dec_group_vector_update_rule_1.
            changed = delete(group.vector, group.baskets, i, self.r_b)
            del group.baskets[i]
            self._set_group_vector(j, changed)
        else:
            self._delete_group(j)

    def delete_item(self, position: int, item: int) -> None:
        """Delete one item from the basket at this position: scenario 3 of section 4.3."""
        j, i = self._locate(position)
        group = self.groups[j]
        old = group.baskets[i]
        new = old.copy()
        new[item] = 0.0
        if new.any():
            # Eq. dec_group_vector_update_rule_2.
            changed = update(group.vector, len(group.baskets), i, old, new, self.r_b)
            group.baskets[i] = new
            self._set_group_vector(j, changed)
        else:
            self.delete_basket(position)

    def retrained(self) -> Vector:
        """Return the user vector recomputed from the current groups: Eq. groupvector and Eq. uservector."""
        if not self.groups:
            return np.zeros(self.dimension)
        return decaying_average([decaying_average(group.baskets, self.r_b) for group in self.groups], self.r_g)

    def _locate(self, position: int) -> tuple[int, int]:
        """Return the group that holds a basket, and the basket's position in it."""
        slots = [(j, i) for j, group in enumerate(self.groups) for i in range(len(group.baskets))]
        if not 0 <= position < len(slots):
            raise InvalidRequestError(f"no basket at position {position}: the history holds {len(slots)}")
        return slots[position]

    def _set_group_vector(self, j: int, changed: Vector) -> None:
        """Propagate a changed group to the user vector: Eq. dec_user_vector_update_rule_1.

        The paper's exponent there is k - i, by the basket's position; k - j, by the group's, is meant.
        """
        group = self.groups[j]
        self.vector = update(self.vector, len(self.groups), j, group.vector, changed, self.r_g)
        group.vector = changed

    def _delete_group(self, j: int) -> None:
        """Delete a group with its only basket: scenario 2, Eq. dec_user_vector_update_rule_2.

        The paper does not define the result for the last group: here it is the zero vector of a new user.
        """
        if len(self.groups) > 1:
            self.vector = delete(self.vector, [group.vector for group in self.groups], j, self.r_g)
        else:
            self.vector = np.zeros(self.dimension)
        del self.groups[j]
