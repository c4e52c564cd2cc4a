"""The paper's own rules: by hand, against the definition, on its examples, and their numeric breakdown."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracle import Oracle

from unbasket.errors import InvalidBasketError, InvalidRequestError
from unbasket.evaluation.paper_rules import (
    PaperUser,
    Vector,
    add,
    decaying_average,
    decays,
    delete,
    differences,
    multi_hot,
    update,
)
from unbasket.params import Params

ITEMS = 3

numbers = st.floats(-10, 10)
serieses = st.lists(numbers, min_size=2, max_size=8)
rates = st.floats(0.1, 1)


def close(expected: float) -> object:
    return pytest.approx(expected, rel=1e-9, abs=1e-9)


def as_vectors(series: Sequence[float]) -> list[Vector]:
    """Pair each number with its double, to check that vectors follow the same rule element by element."""
    return [np.array([x, 2 * x]) for x in series]


def grouped(user: PaperUser) -> list[list[list[int]]]:
    """Return the items of each basket of each group."""
    return [[np.flatnonzero(basket).tolist() for basket in group.baskets] for group in user.groups]


def user_with(baskets: Sequence[Sequence[int]], dimension: int) -> PaperUser:
    user = PaperUser(m=2, r_b=0.5, r_g=0.25, dimension=dimension)
    for items in baskets:
        user.add_basket(items)
    return user


# The rules by hand, with r = 0.5: the average of 1, 2, 4 is (0.25 + 1 + 4) / 3 = 1.75.


def test_decaying_average_by_hand() -> None:
    assert decaying_average([1.0, 2.0, 4.0], 0.5) == 1.75
    assert decaying_average(as_vectors([1, 2, 4]), 0.5).tolist() == [1.75, 3.5]


def test_add_by_hand() -> None:
    assert add(1.75, 3, 8.0, 0.5) == (0.125 + 0.5 + 2 + 8) / 4


def test_add_to_an_empty_series_is_the_value() -> None:
    assert add(0.0, 0, 8.0, 0.5) == 8


@pytest.mark.parametrize(("i", "remaining"), [(0, (0.5 * 2 + 4) / 2), (1, (0.5 * 1 + 4) / 2), (2, (0.5 * 1 + 2) / 2)])
def test_delete_by_hand(i: int, remaining: float) -> None:
    assert delete(1.75, [1.0, 2.0, 4.0], i, 0.5) == remaining


def test_update_by_hand() -> None:
    assert update(1.75, 3, 1, 2.0, 6.5, 0.5) == (0.25 + 3.25 + 4) / 3


def test_differences_and_decays_by_hand() -> None:
    assert differences([1.0, 2.0, 4.0]) == [1, 2, -4]
    assert decays(0.5, 2) == [0.25, 0.5, 1]


def test_an_empty_series_has_no_average() -> None:
    with pytest.raises(InvalidRequestError, match="empty series"):
        decaying_average(list[float](), 0.5)
    with pytest.raises(InvalidRequestError, match="series of 1"):
        delete(3.0, [3.0], 0, 0.5)


# The rules against the definition, for any short series, of numbers and of vectors.


@given(serieses, numbers, rates)
def test_add_agrees_with_the_definition(series: list[float], x: float, r: float) -> None:
    expected = decaying_average([*series, x], r)
    assert add(decaying_average(series, r), len(series), x, r) == close(expected)
    vectors = as_vectors(series)
    added = add(decaying_average(vectors, r), len(series), np.array([x, 2 * x]), r)
    assert added.tolist() == [close(expected), close(2 * expected)]


@given(serieses, st.data(), rates)
def test_delete_agrees_with_the_definition(series: list[float], data: st.DataObject, r: float) -> None:
    i = data.draw(st.integers(0, len(series) - 1))
    expected = decaying_average(series[:i] + series[i + 1 :], r)
    assert delete(decaying_average(series, r), series, i, r) == close(expected)
    vectors = as_vectors(series)
    deleted = delete(decaying_average(vectors, r), vectors, i, r)
    assert deleted.tolist() == [close(expected), close(2 * expected)]


@given(serieses, st.data(), numbers, rates)
def test_update_agrees_with_the_definition(series: list[float], data: st.DataObject, new: float, r: float) -> None:
    i = data.draw(st.integers(0, len(series) - 1))
    n = len(series)
    expected = decaying_average([*series[:i], new, *series[i + 1 :]], r)
    assert update(decaying_average(series, r), n, i, series[i], new, r) == close(expected)
    vectors = as_vectors(series)
    updated = update(decaying_average(vectors, r), n, i, vectors[i], np.array([new, 2 * new]), r)
    assert updated.tolist() == [close(expected), close(2 * expected)]


# The paper's worked examples.


def test_multi_hot_example() -> None:
    encoded = [multi_hot([item - 1 for item in basket], 4).tolist() for basket in ({1, 4}, {1, 2, 3})]
    assert encoded == [[1, 0, 0, 1], [1, 1, 1, 0]]


@pytest.mark.parametrize("items", [[], [-1], [0, 4]])
def test_multi_hot_refuses_invalid_baskets(items: list[int]) -> None:
    with pytest.raises(InvalidBasketError, match="from 0 to 3"):
        multi_hot(items, 4)


def test_groups_under_additions() -> None:
    """Section 4.2: m = 2 and four baskets, then the fifth opens a group and the sixth joins it."""
    user = user_with([[0], [1], [2], [3]], dimension=6)
    assert grouped(user) == [[[0], [1]], [[2], [3]]]
    assert user.vector.tolist() == [0.25 * 0.25 / 2, 0.25 * 0.5 / 2, 0.25 / 2, 0.5 / 2, 0, 0]
    user.add_basket([4])
    assert grouped(user) == [[[0], [1]], [[2], [3]], [[4]]]
    assert user.vector[4] == close(1 / 3)
    user.add_basket([5])
    assert grouped(user) == [[[0], [1]], [[2], [3]], [[4], [5]]]
    expected = [group * basket / 3 for group in (1 / 16, 1 / 4, 1) for basket in (0.25, 0.5)]
    assert user.vector.tolist() == pytest.approx(expected, rel=1e-9)


def test_varying_groups_under_deletions() -> None:
    """Section 4.3: of eight baskets in groups of two, b3 and then b6 are deleted; no boundary moves."""
    user = user_with([[item] for item in range(8)], dimension=8)
    user.delete_basket(2)
    assert grouped(user) == [[[0], [1]], [[3]], [[4], [5]], [[6], [7]]]
    user.delete_basket(4)
    assert grouped(user) == [[[0], [1]], [[3]], [[4]], [[6], [7]]]
    expected = [1 / 64 * 0.25, 1 / 64 * 0.5, 0, 1 / 16, 1 / 4, 0, 0.25, 0.5]
    assert user.vector.tolist() == pytest.approx([weight / 4 for weight in expected], rel=1e-9)


def test_a_new_basket_fills_a_shortened_newest_group() -> None:
    user = user_with([[0], [1]], dimension=3)
    user.delete_basket(0)
    user.add_basket([2])
    assert grouped(user) == [[[1], [2]]]
    assert user.vector.tolist() == pytest.approx([0, 0.25, 0.5], rel=1e-9)


# Scenario 3: deleting an item and, with the last item, its basket and group.


def test_delete_an_item_of_a_basket_with_others() -> None:
    user = user_with([[0, 1], [0]], dimension=2)
    user.delete_item(0, 0)
    assert grouped(user) == [[[1], [0]]]
    assert user.vector.tolist() == pytest.approx([0.5, 0.25], rel=1e-9)


def test_a_basket_is_deleted_with_its_last_item() -> None:
    user = user_with([[0], [1], [1]], dimension=2)
    user.delete_item(0, 0)
    assert grouped(user) == [[[1]], [[1]]]
    assert user.vector.tolist() == pytest.approx([0, (0.25 + 1) / 2], rel=1e-9, abs=1e-12)


def test_a_group_is_deleted_with_its_last_basket() -> None:
    user = user_with([[0], [0], [1]], dimension=2)
    user.delete_item(2, 1)
    assert grouped(user) == [[[0], [0]]]
    assert user.vector.tolist() == pytest.approx([0.75, 0], rel=1e-9, abs=1e-12)


def test_user_without_baskets_is_the_zero_vector() -> None:
    user = user_with([[0]], dimension=2)
    user.delete_item(0, 0)
    assert grouped(user) == []
    assert user.vector.tolist() == user.retrained().tolist() == [0, 0]


@pytest.mark.parametrize("position", [-1, 2])
def test_no_basket_at_that_position(position: int) -> None:
    user = user_with([[0], [1]], dimension=2)
    with pytest.raises(InvalidRequestError, match=f"position {position}"):
        user.delete_basket(position)


def test_retrained_by_hand() -> None:
    user = user_with([[0], [0, 1], [1]], dimension=2)
    user.vector = np.zeros(2)  # a retrain does not use the maintained vector
    assert user.retrained().tolist() == [0.09375, 0.5625]


# All scenarios together, against the oracle's varying grouping.

Change = frozenset[int] | int | tuple[int, int]  # a basket to add, one to delete, an item of one to delete

items = st.integers(0, ITEMS - 1)
positions = st.integers(0, 99)
baskets = st.frozensets(items, min_size=1)
histories: st.SearchStrategy[list[Change]] = st.lists(baskets, max_size=8)
changes: st.SearchStrategy[list[Change]] = st.lists(baskets | positions | st.tuples(positions, items), max_size=12)


def apply(change: Change, basket: int, user: PaperUser, oracle: Oracle) -> None:
    """Apply one change to both; a position wraps around the number of baskets."""
    if isinstance(change, frozenset):
        user.add_basket(change)
        oracle.learn("u", change, basket)
    elif oracle.users():
        history = oracle.history("u")
        number, item = change if isinstance(change, tuple) else (change, None)
        position = number % len(history)
        oracle.forget("u", basket=history[position].basket, item=item)
        if item is None:
            user.delete_basket(position)
        else:
            user.delete_item(position, item)


@given(histories, changes, st.integers(1, 3))
def test_any_changes_agree_with_the_oracle(history: list[Change], changes: list[Change], m: int) -> None:
    user = PaperUser(m=m, r_b=0.9, r_g=0.7, dimension=ITEMS)
    oracle = Oracle(Params(group_size=m, basket_decay=0.9, group_decay=0.7, grouping="varying", alpha=0.8))
    for basket, change in enumerate(history + changes):
        apply(change, basket, user, oracle)
    held = bool(oracle.users())
    vector = oracle.vector("u") if held else {}
    groups = [[list(basket.items) for basket in group] for group in oracle.groups("u")] if held else []
    assert grouped(user) == groups
    assert user.vector.tolist() == [close(vector.get(item, 0.0)) for item in range(ITEMS)]
    assert user.retrained().tolist() == [close(vector.get(item, 0.0)) for item in range(ITEMS)]


# Section 6.3: the deletion rule multiplies its rounding errors.


def relative_errors(user: PaperUser, deletions: int) -> list[float]:
    """Return the user vector's error after each deletion of the newest basket."""
    errors = []
    baskets = sum(len(group.baskets) for group in user.groups)
    for position in range(baskets - 1, baskets - 1 - deletions, -1):
        user.delete_basket(position)
        true = user.retrained()
        errors.append(float(np.linalg.norm(user.vector - true) / np.linalg.norm(true)))
    return errors


def test_repeated_deletions_destroy_the_vector() -> None:
    """The paper reports an error of 1 % after 180 deletions."""
    user = PaperUser(m=2, r_b=0.9, r_g=0.7, dimension=1)
    for _ in range(1000):
        user.add_basket([0])
    errors = relative_errors(user, 320)
    assert errors[0] < 1e-12
    first = next(count for count, error in enumerate(errors, start=1) if error > 0.01)
    assert 100 < first < 300
    assert errors[-1] > 1e3
    hundreds = errors[99::100]
    assert all(later > 1e6 * earlier for earlier, later in pairwise(hundreds))
