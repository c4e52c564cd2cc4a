"""The n best and the k smallest, with ties, against sorted()."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.core.check.testing import smallest
from unbasket.core.memory import GrowableArray
from unbasket.core.model.queries import largest


@st.composite
def inputs(draw: st.DrawFn) -> tuple[list[int], list[int], list[int] | None, int]:
    spread = draw(st.sampled_from([1, 3, 2**53]))
    counts = draw(st.lists(st.integers(0, spread), max_size=60))
    order = draw(st.permutations(range(len(counts))))
    items = st.lists(st.integers(0, len(counts) - 1), max_size=80) if counts else st.just([])
    return counts, list(order), draw(st.none() | items), draw(st.integers(0, 70))


@settings(max_examples=500, deadline=None)
@given(inputs())
def test_the_n_largest_are_sorted(case: tuple[list[int], list[int], list[int] | None, int]) -> None:
    counts, order, items, n = case
    counted = [code for code in (range(len(counts)) if items is None else set(items)) if counts[code] > 0]
    expected = sorted(counted, key=lambda code: (-counts[code], order[code]))[:n]
    codes = None if items is None else np.array(items, np.uint32)
    found = largest(np.array(counts, np.int64), codes, GrowableArray.of(np.array(order, np.int64)), n)
    assert found == [(code, counts[code]) for code in expected]


@pytest.mark.parametrize("shape", [range(1, 1001), range(1000, 0, -1), [7] * 1000, [1, 2] * 500], ids=str)
def test_all_of_many_are_sorted(shape: list[int]) -> None:
    counts, order = np.array(shape, np.int64), np.array([(i * 617) % 1000 for i in range(1000)], np.int64)
    expected = sorted(range(1000), key=lambda code: (-shape[code], order[code]))
    assert largest(counts, None, GrowableArray.of(order), 1000) == [(code, shape[code]) for code in expected]


def check_smallest(keys: list[int], order: list[int], k: int) -> None:
    expected = sorted(range(len(keys)), key=lambda code: (keys[code], order[code]))
    assert sorted(smallest(keys, k, np.array(order, np.int64))) == sorted(expected[:k])


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    spread = draw(st.sampled_from([0, 1, 3, 2**62]))
    keys = draw(st.lists(st.integers(-spread, spread), min_size=1, max_size=60))
    order = draw(st.permutations(range(len(keys))))
    return keys, list(order), draw(st.integers(1, len(keys)))


@settings(max_examples=500, deadline=None)
@given(choices())
def test_the_k_smallest_come_first(choice: tuple[list[int], list[int], int]) -> None:
    check_smallest(*choice)


@pytest.mark.parametrize("shape", ["rising", "falling", "equal", "organ pipe", "two values"])
@pytest.mark.parametrize("k", [1, 2, 500, 999, 1000])
def test_inputs_that_are_hard_for_quickselect(shape: str, k: int) -> None:
    keys = {
        "rising": list(range(1000)),
        "falling": list(range(1000, 0, -1)),
        "equal": [7] * 1000,
        "organ pipe": [min(i, 999 - i) for i in range(1000)],
        "two values": [i % 2 for i in range(1000)],
    }[shape]
    check_smallest(keys, [(i * 617) % 1000 for i in range(1000)], k)


def test_no_keys() -> None:
    assert smallest([], 0, np.zeros(0, np.int64)) == []
