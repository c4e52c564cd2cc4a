"""Codes of numbers by a table."""

import numpy as np

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.codec.group_baskets import encode, tick


def frozen(values: list[int]) -> Int64s:
    array = np.array(values, np.int64)
    array.flags.writeable = False
    return array


def test_values_tick_their_places() -> None:
    table = np.zeros(6, np.uint32)
    tick(frozen([-2, 3, -2]), -2, table)
    tick(frozen([0]), -2, table)
    assert table.tolist() == [1, 0, 1, 0, 0, 1]


def test_values_are_looked_up() -> None:
    table: Codes = np.array([7, 0, 8, 0, 0, 9], np.uint32)
    codes = np.empty(4, np.uint32)
    encode(frozen([3, -2, 0, 3]), -2, table, codes)
    assert codes.tolist() == [9, 7, 8, 9]
