"""Growable arrays, with and without views."""

import numpy as np
import pytest

from unbasket.core.memory import GrowableArray

COUNTS = [3, 2**19 - 1, 2**19, 2**20]  # from 2^19 numbers on, memory is mapped


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", [1, 4])
def test_an_array_without_views_grows_in_place(count: int, width: int) -> None:
    array = GrowableArray(width, count)
    assert not np.asarray(array).any()
    np.asarray(array)[:] = 7
    assert array.extended(count - 1) is array.extended(2 * count) is array
    grown = np.asarray(array)
    assert grown.shape == ((2 * count, width) if width > 1 else (2 * count,))
    assert (grown[:count] == 7).all()
    assert not grown[count:].any()


@pytest.mark.parametrize("count", COUNTS)
def test_an_array_with_views_is_copied(count: int) -> None:
    array = GrowableArray(1, count)
    view = np.asarray(array)
    view[:] = 7
    other = array.extended(2 * count)
    assert other is not array
    assert (np.asarray(other)[:count] == 7).all()
    assert not np.asarray(other)[count:].any()
    np.asarray(other)[:] = 8
    assert (view == 7).all()
    del view
    assert array.extended(2 * count) is array
