"""A column that grows, with and without somebody who looks at it."""

import numpy as np
import pytest

from unbasket.core import GrowableArray

COUNTS = [3, 2**19 - 1, 2**19, 2**20]  # from 2^19 numbers on, memory is mapped


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("width", [1, 4])
def test_a_column_grows_where_it_is(count: int, width: int) -> None:
    column = GrowableArray(width, count)
    assert not np.asarray(column).any()
    np.asarray(column)[:] = 7
    assert column.extended(count - 1) is column.extended(2 * count) is column
    grown = np.asarray(column)
    assert grown.shape == ((2 * count, width) if width > 1 else (2 * count,))
    assert (grown[:count] == 7).all()
    assert not grown[count:].any()


@pytest.mark.parametrize("count", COUNTS)
def test_what_somebody_looks_at_stays(count: int) -> None:
    column = GrowableArray(1, count)
    seen = np.asarray(column)
    seen[:] = 7
    other = column.extended(2 * count)
    assert other is not column
    assert (np.asarray(other)[:count] == 7).all()
    assert not np.asarray(other)[count:].any()
    np.asarray(other)[:] = 8
    assert (seen == 7).all()
    del seen
    assert column.extended(2 * count) is column
