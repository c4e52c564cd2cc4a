"""Which items are in most baskets, exactly counted from what remains."""

import numpy as np

from unbasket.core.arrays import Int64s
from unbasket.core.model import queries
from unbasket.core.util import id_fast
from unbasket.domain.filters import Filters
from unbasket.domain.results import ItemCount
from unbasket.engine.model import Model

_COUNTED = 16_384  # users whose baskets are looked through at first under one lock


class Popularity:
    """Counts the baskets of a model. Arguments are checked already, and mean what they mean to a `Recommender`."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._state = model.state

    def most_common(self, n: int, filters: Filters | None) -> list[ItemCount]:
        """The items in most baskets; in how many each is, is known."""
        with self._model.lock.reading:
            return self._largest(queries.popularity(self._state.histories), n, filters)

    def most_common_since(self, time: int, n: int, filters: Filters | None) -> list[ItemCount]:
        """The items in most baskets of this time or later.

        Some users are looked at under one lock, so that writers do not wait for the size of the shop.
        """
        first, size, changes = 0, _COUNTED, -1
        counts = np.zeros(0, np.int64)
        while True:
            with self._model.lock.reading:
                memory = self._state
                if memory.items.changes != changes:  # codes may stand for other items now: start anew, in larger steps
                    first, size, changes = 0, 4 * size, memory.items.changes
                    counts = np.zeros(memory.histories.item_room, np.int64)
                queries.add_popularity(memory.histories, first, first + size, time, counts)
                first += size
                if first >= len(memory.users.names):
                    return self._largest(counts, n, filters)

    def _largest(self, counts: Int64s, n: int, filters: Filters | None) -> list[ItemCount]:
        choice, items = self._model.item_filters.of(filters, None), self._state.items
        allowed = None
        if choice is not None:
            counts[choice.banned] = 0
            allowed = choice.allowed
        largest = queries.largest(counts, allowed, items.order, min(n, len(items.names)))
        return id_fast.named(ItemCount, largest, items.names)
