"""Sets of item codes, one per user, in two flat arrays."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from unbasket.errors import InvalidRequestError

Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class ItemSets:
    """Sets of item codes; user u's are `items[offsets[u]:offsets[u + 1]]`, non-negative and strictly ascending.

    >>> sets = ItemSets.from_lists([[7, 3], [], [3, 3]])
    >>> sets.offsets, sets.items
    (array([0, 2, 2, 3]), array([3, 7, 3]))
    >>> sets.contains(np.array([0, 1, 2]), np.array([3, 3, 7]))
    array([ True, False, False])
    """

    offsets: Codes
    items: Codes

    def __post_init__(self) -> None:
        offsets = self.offsets
        if offsets.ndim != 1 or len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(self.items):
            raise InvalidRequestError(f"offsets must run from 0 to {len(self.items)}, the number of items")
        if np.any(self.sizes < 0):
            raise InvalidRequestError("offsets must not descend")
        _check_codes(self.items)
        same_user = np.diff(self.rows) == 0
        if np.any(same_user & (np.diff(self.items) <= 0)):
            raise InvalidRequestError("a user's items must ascend without repeats; ItemSets.from_pairs sorts them")

    @classmethod
    def from_pairs(cls, rows: Codes, items: Codes, users: int) -> Self:
        """Build the sets from (row, item code) pairs in any order; repeats count once."""
        _check_codes(items)
        width = items.max(initial=0) + 1
        keys = np.unique(rows * width + items)
        return cls(np.searchsorted(keys, np.arange(users + 1) * width), keys % width)

    @classmethod
    def from_lists(cls, lists: Sequence[Iterable[int]]) -> Self:
        """Build the sets from one iterable of item codes per user."""
        pairs = [(row, item) for row, items in enumerate(lists) for item in items]
        rows, items = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        return cls.from_pairs(rows, items, len(lists))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def sizes(self) -> Codes:
        """The number of items of each user."""
        return np.diff(self.offsets)

    @property
    def rows(self) -> Codes:
        """The user's row of each item."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def contains(self, rows: Codes, items: Codes) -> Flags:
        """Return, for each (row, item), whether that user has that item. No user has a negative item."""
        if len(self.items) == 0:
            return np.zeros(np.broadcast_shapes(rows.shape, items.shape), dtype=np.bool_)
        # One integer per (row, item), ascending like the sets themselves, for a binary search.
        width = self.items.max() + 1
        keys = self.rows * width + self.items
        wanted = rows * width + items
        position = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        found: Flags = (keys[position] == wanted) & (items >= 0) & (items < width)
        return found

    def intersection(self, other: Self) -> Self:
        """Return the items of each user that `other` also has for that user."""
        return self._filter(other.contains(self.rows, self.items))

    def difference(self, other: Self) -> Self:
        """Return the items of each user that `other` does not have for that user."""
        return self._filter(~other.contains(self.rows, self.items))

    def _filter(self, keep: Flags) -> Self:
        kept_before = np.concatenate(([0], np.cumsum(keep)))
        return type(self)(kept_before[self.offsets], self.items[keep])


def _check_codes(items: Codes) -> None:
    if items.min(initial=0) < 0:
        raise InvalidRequestError(f"item codes must be at least 0, not {items.min()}")
