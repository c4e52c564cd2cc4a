"""Columns of lists as arrays, and arrays as columns of lists."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from unbasket.core import Vector


def vectors_of(queries: pa.Table) -> Iterator[Vector]:
    """The vector of each query as the index would hold it: without weights that are rounded to zero."""
    return map(Vector, rows_of(queries["codes"], np.uint32), rows_of(queries["weights"], np.uint32))


def rows_of(lists: pa.ChunkedArray, kind: type) -> list[Any]:
    """The lists of a column as arrays."""
    column = lists.combine_chunks()
    ends = np.cumsum(column.value_lengths().to_numpy())
    return np.split(column.flatten().to_numpy().astype(kind), ends)[:-1]


def joined(arrays: list[Any], kind: type) -> Any:
    """The arrays one after the other."""
    return np.concatenate([np.zeros(0, kind), *arrays]).astype(kind)


def offsets(lengths: Any) -> pa.Array:
    """Where lists of these lengths begin and end."""
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
