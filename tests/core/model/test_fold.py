"""The fold against the paper's equations, and its powers against exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracle import counted_vector, user_vector

from unbasket.core.check.testing import fixed_point, is_clean, power
from unbasket.core.model import FoldWorkspace, Rule, queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.engine.histories import HistoryState
from unbasket.params import Grouping, Params

Group = list[set[int]]

ITEMS = 6
STRIDE = 1_000_000

groups_of = st.lists(
    st.lists(st.sets(st.integers(0, ITEMS - 1), min_size=1), min_size=1, max_size=5), min_size=1, max_size=8
)
rates = st.floats(0.01, 1)


def chunks(baskets: Group, size: int) -> list[Group]:
    return [baskets[i : i + size] for i in range(0, len(baskets), size)]


def fold(
    groups: list[Group], group_size: int, r_b: float, r_g: float, *, varying: bool, counted: bool = False
) -> dict[int, float]:
    """Return the user vector that the core folds from these groups."""
    baskets = [basket for group in groups for basket in group]
    opens = [position == 0 for group in groups for position in range(len(group))]
    grouping: Grouping = "varying" if varying else "count" if counted else "fixed"
    params = Params(group_size=group_size, basket_decay=r_b, group_decay=r_g, grouping=grouping, alpha=0.8)
    state, space = HistoryState(params), FoldWorkspace()
    state.load(
        BasketColumns(
            users=["u"],
            items=[*range(ITEMS)],
            baskets=None,
            owners=np.zeros(len(baskets), np.uint32),
            keys=np.arange(len(baskets)),
            times=np.arange(len(baskets)),
            sizes=np.array([len(basket) for basket in baskets]),
            opens=np.array(opens, np.int64),
            purchases=np.array([item for basket in baskets for item in sorted(basket)], np.uint32),
        )
    )
    codes, values = queries.vector(state.histories, space, state.rule, state.users.codes["u"])
    assert is_clean(space)
    return dict(zip([state.items.names[code] for code in codes], values.tolist(), strict=True))


@settings(deadline=None)
@given(st.floats(0.001, 1), st.integers(0, 200))
def test_power_is_within_its_rounding_of_the_exact_one(base: float, exponent: int) -> None:
    exact = Fraction(base) ** exponent
    if exact > Fraction(2) ** -1000:  # below, floats have fewer digits
        assert abs(Fraction(power(base, exponent)) - exact) <= exact * (exponent + 1) * Fraction(2) ** -52


@settings(deadline=None)
@given(st.floats(0.5, 1), st.integers(0, 10_000))
def test_power_is_close_to_pythons(base: float, exponent: int) -> None:
    assert power(base, exponent) == pytest.approx(base**exponent, rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("exponent", [0, 1, 2, 3, 7, 64, 1000])
def test_power_of_a_half_is_exact(exponent: int) -> None:
    assert power(0.5, exponent) == 0.5**exponent


def test_power_ends_at_zero() -> None:
    assert power(0.5, 2**40) == 0.0
    assert power(1.0, 2**40) == 1.0


def test_weight_is_the_level_decayed_to_the_last_group_over_the_groups() -> None:
    assert fold([[{0}], [{1}], [{2}], [{3}]], 1, 0.9, 0.5, varying=False)[1] == 0.25 / 4


@settings(max_examples=300, deadline=None)
@given(groups_of, st.integers(1, 5), rates, rates)
def test_fixed_groups_give_the_papers_vector(groups: list[Group], size: int, r_b: float, r_g: float) -> None:
    groups = chunks([basket for group in groups for basket in group], size)
    expected = user_vector(groups, r_b, r_g)
    assert fold(groups, size, r_b, r_g, varying=False) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@settings(max_examples=300, deadline=None)
@given(groups_of, rates, rates)
def test_varying_groups_give_the_papers_vector(groups: list[Group], r_b: float, r_g: float) -> None:
    expected = user_vector(groups, r_b, r_g)
    assert fold(groups, 2, r_b, r_g, varying=True) == pytest.approx(expected, rel=1e-12, abs=1e-300)


@settings(max_examples=300, deadline=None)
@given(groups_of, st.integers(1, 12), rates, rates)
def test_counted_groups_give_the_vector_of_the_original(groups: list[Group], m: int, r_b: float, r_g: float) -> None:
    baskets = [basket for group in groups for basket in group]
    expected = counted_vector(baskets, m, r_b, r_g)
    assert fold([baskets], m, r_b, r_g, varying=False, counted=True) == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_a_vector_of_counted_groups_computed_by_hand() -> None:
    """Five baskets in m = 3 groups {0} {1, 0} {0, 1}: basket i decays to r_b^(5-i), group j to r_g^(3-j)."""
    baskets: Group = [{0}, {1}, {0}, {0}, {1}]
    zero = (1 / 4 * 1 / 16 + 1 / 2 * (1 / 4) / 2 + (1 / 2) / 2) / 3
    one = (1 / 2 * (1 / 8) / 2 + 1 / 2) / 3
    assert fold([baskets], 3, 0.5, 0.5, varying=False, counted=True) == {0: zero, 1: one}
    assert fold([[{7 % ITEMS}]], 3, 0.5, 0.5, varying=False, counted=True) == {1: 0.25}  # fewer than m: decayed


def test_a_vector_computed_by_hand() -> None:
    """Groups {0}{1} and {0}: item 0 gets (1/2 * (1/2)/2 + 1)/2, item 1 gets (1/2 * 1/2)/2."""
    assert fold([[{0}, {1}], [{0}]], 2, 0.5, 0.5, varying=False) == {0: 0.5625, 1: 0.125}


def test_items_are_touched_in_the_order_they_come() -> None:
    assert list(fold([[{4}, {0, 4}], [{2}, {4}]], 2, 0.5, 0.5, varying=False)) == [4, 0, 2]


def test_a_history_that_is_not_stored_is_folded_like_one_that_is() -> None:
    baskets, space, one = [[0, 3], [1], [3], [0, 2]], FoldWorkspace(), 2**24
    for varying in (False, True):
        rule = Rule(2, 0.5, 0.5, varying, False, STRIDE)
        vector = queries.query(baskets, space, rule)
        expected = fold(chunks([set(basket) for basket in baskets], 2), 2, 0.5, 0.5, varying=varying)
        assert dict(zip(vector.items.tolist(), vector.weights.tolist(), strict=True)) == {
            item: round(weight * one) for item, weight in expected.items()
        }
        assert is_clean(space)


def test_a_workspace_grows_clean() -> None:
    space, rule = FoldWorkspace(), Rule(2, 0.5, 0.5, False, False, STRIDE)
    queries.query([[3]], space, rule)
    before = space.room
    queries.query([[1000]], space, rule)
    assert space.room > before
    assert is_clean(space)


def test_weights_are_rounded_to_the_nearest_even() -> None:
    one = 2.0**-24
    assert [fixed_point(x * one) for x in (0.49, 0.5, 0.51, 1.5, 2.5, 2**24)] == [0, 0, 1, 2, 2, 2**24]
