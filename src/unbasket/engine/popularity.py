"""Popularity: the items in most baskets, counted exactly."""

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.model import queries
from unbasket.core.util import named
from unbasket.domain.results import ItemCount
from unbasket.domain.validation import Filters
from unbasket.engine.model import Model

_CHUNK = 16_384  # users counted under the first lock


class Popularity:
    """Basket counts per item. Arguments are validated already, and mean the same as in `Recommender`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._state = model.state

    def most_common(self, n: int, filters: Filters | None) -> list[ItemCount]:
        """Return the n items in most baskets, from counts that the histories maintain."""
        with self._model.lock.reading:
            return self._largest(queries.popularity(self._state.histories), n, filters)

    def most_common_since(self, time: int, n: int, filters: Filters | None) -> list[ItemCount]:
        """Return the n items in most baskets of this time or later.

        The users are counted in chunks, each under its own lock, to bound the time that writers wait.
        """
        state = self._state
        first, size, changes = 0, _CHUNK, -1
        counts = np.zeros(0, np.int64)
        while True:
            with self._model.lock.reading:
                if state.items.changes != changes:  # codes may mean other items now: start over, in larger chunks
                    first, size, changes = 0, 4 * size, state.items.changes
                    counts = np.zeros(state.histories.item_room, np.int64)
                queries.add_popularity(state.histories, first, first + size, time, counts)
                first += size
                if first >= len(state.users.names):
                    return self._largest(counts, n, filters)

    def _largest(self, counts: Int64s, n: int, filters: Filters | None) -> list[ItemCount]:
        item_filter, items = self._model.item_filters.of(filters, None), self._state.items
        allowed = None
        if item_filter is not None:
            counts[item_filter.banned] = 0
            allowed = item_filter.allowed
        largest = queries.largest(counts, allowed, items.order, min(n, len(items.names)))
        return named(ItemCount, largest, items.names)
