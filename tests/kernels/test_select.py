"""The k smallest, ties and all, against sorted()."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.kernels.select import smallest_first


def select(keys: list[int], order: list[int], k: int, count: int | None = None) -> tuple[list[int], list[int]]:
    """The keys and codes after the selection; code i has the key keys[i] and the order order[i]."""
    some_keys, codes = np.array(keys, np.int64), np.arange(len(keys), dtype=np.uint32)
    smallest_first(some_keys, codes, len(keys) if count is None else count, k, np.array(order, np.int64))
    return some_keys.tolist(), codes.tolist()


def check(keys: list[int], order: list[int], k: int) -> None:
    after, codes = select(keys, order, k)
    assert sorted(codes) == list(range(len(keys)))
    assert after == [keys[code] for code in codes]
    expected = sorted(range(len(keys)), key=lambda code: (keys[code], order[code]))
    assert set(codes[:k]) == set(expected[:k])


@st.composite
def choices(draw: st.DrawFn) -> tuple[list[int], list[int], int]:
    spread = draw(st.sampled_from([0, 1, 3, 2**62]))
    keys = draw(st.lists(st.integers(-spread, spread), min_size=1, max_size=60))
    order = draw(st.permutations(range(len(keys))))
    return keys, list(order), draw(st.integers(1, len(keys)))


@settings(max_examples=500, deadline=None)
@given(choices())
def test_the_k_smallest_come_first(choice: tuple[list[int], list[int], int]) -> None:
    check(*choice)


@pytest.mark.parametrize("shape", ["rising", "falling", "equal", "organ pipe", "two values"])
@pytest.mark.parametrize("k", [1, 2, 500, 999, 1000])
def test_shapes_that_are_hard_for_quickselect(shape: str, k: int) -> None:
    keys = {
        "rising": list(range(1000)),
        "falling": list(range(1000, 0, -1)),
        "equal": [7] * 1000,
        "organ pipe": [min(i, 999 - i) for i in range(1000)],
        "two values": [i % 2 for i in range(1000)],
    }[shape]
    check(keys, [(i * 617) % 1000 for i in range(1000)], k)


def test_only_the_first_count_take_part() -> None:
    keys, codes = select([5, 3, 4, 0, 1], [0, 1, 2, 3, 4], k=1, count=3)
    assert (keys[0], codes[0]) == (3, 1)
    assert (keys[3:], codes[3:]) == ([0, 1], [3, 4])


def test_nothing_of_nothing() -> None:
    assert select([], [], 3) == ([], [])
