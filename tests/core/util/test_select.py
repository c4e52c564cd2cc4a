"""The k smallest, ties and all, against sorted()."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.core.util.topn import smallest


def check(keys: list[int], order: list[int], k: int) -> None:
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


def test_nothing_of_nothing() -> None:
    assert smallest([], 0, np.zeros(0, np.int64)) == []
