import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.errors import InvalidRequestError
from unbasket.evaluation._item_sets import ItemSets

LISTS = st.lists(st.lists(st.integers(0, 8), max_size=6), max_size=5)


def as_sets(sets: ItemSets) -> list[set[int]]:
    return [set(sets.items[a:b].tolist()) for a, b in zip(sets.offsets, sets.offsets[1:], strict=False)]


@settings(deadline=None)
@given(LISTS)
def test_lists_become_sets_in_ascending_order(lists: list[list[int]]) -> None:
    sets = ItemSets.from_lists(lists)
    assert len(sets) == len(lists)
    assert as_sets(sets) == [set(items) for items in lists]
    assert sets.sizes.tolist() == [len(set(items)) for items in lists]
    assert sets.items.tolist() == [item for items in lists for item in sorted(set(items))]


@settings(deadline=None)
@given(LISTS, LISTS)
def test_intersection_and_difference_are_those_of_each_user(one: list[list[int]], two: list[list[int]]) -> None:
    users = min(len(one), len(two))
    first, second = ItemSets.from_lists(one[:users]), ItemSets.from_lists(two[:users])
    pairs = list(zip(one[:users], two[:users], strict=True))
    assert as_sets(first.intersection(second)) == [set(a) & set(b) for a, b in pairs]
    assert as_sets(first.difference(second)) == [set(a) - set(b) for a, b in pairs]


@settings(deadline=None)
@given(LISTS)
def test_contains_handles_items_outside_the_range(lists: list[list[int]]) -> None:
    sets = ItemSets.from_lists(lists)
    for row, items in enumerate(lists):
        # -1 and the codes past the largest are where one user's key could run into the next user's.
        queried = np.arange(-2, 20)
        found = sets.contains(np.full(len(queried), row), queried)
        assert found.tolist() == [item in items for item in queried]


@pytest.mark.parametrize(
    ("offsets", "items", "message"),
    [
        ([], [], "from 0 to 0"),
        ([1, 2], [5, 6], "from 0 to 2"),
        ([0, 1], [5, 6], "from 0 to 2"),
        ([0, 2, 1, 2], [5, 6], "not descend"),
        ([0, 2], [-1, 6], "not -1"),
        ([0, 2], [6, 5], "ascend"),
        ([0, 2], [5, 5], "ascend"),
    ],
)
def test_malformed_arrays_are_refused(offsets: list[int], items: list[int], message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        ItemSets(np.array(offsets, dtype=np.int64), np.array(items, dtype=np.int64))


def test_items_may_descend_between_users() -> None:
    assert as_sets(ItemSets(np.array([0, 1, 2]), np.array([6, 5]))) == [{6}, {5}]


def test_pairs_that_fit_no_user_or_item_are_refused() -> None:
    with pytest.raises(InvalidRequestError, match="not -1"):
        ItemSets.from_pairs(np.array([0, 1]), np.array([3, -1]), 2)
    for row in (-1, 2):
        with pytest.raises(InvalidRequestError, match="offsets"):
            ItemSets.from_pairs(np.array([0, row]), np.array([3, 3]), 2)
