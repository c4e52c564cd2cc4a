"""Order histories as columns: what a frame becomes, what the memory is loaded from and written out as."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from unbasket.ids import Id
from unbasket.kernels.jit import Codes, Int64s
from unbasket.model.history import UNTIMED
from unbasket.results import Basket


class Orders(NamedTuple):
    """Baskets of many users: user after user, each user's oldest first, items distinct within a basket.

    Ids are listed once, in `users`, `items` and `names` (of baskets); `owners`, `purchases` and `baskets` are positions
    in these lists. `opens` says which baskets open a group; only
    varying groups need it. A time of `model.history.UNTIMED` is none.
    """

    users: list[Id]
    items: list[Id]
    names: list[Id]
    owners: Codes
    baskets: Int64s
    times: Int64s
    sizes: Int64s
    opens: Int64s
    purchases: Codes

    def ends_by_user(self) -> tuple[Int64s, Int64s]:
        """Where each user's baskets end, and his purchases."""
        basket_ends = np.cumsum(np.bincount(self.owners, minlength=len(self.users)))
        item_ends = np.concatenate(([0], np.cumsum(self.sizes)))[basket_ends]
        return basket_ends, item_ends

    def of_user(self, position: int) -> Iterator[Basket]:
        """The baskets of the user at a position of `users`."""
        first, end = np.searchsorted(self.owners, [position, position + 1]).tolist()
        place = int(self.sizes[:first].sum())
        for i in range(first, end):
            size, time = int(self.sizes[i]), int(self.times[i])
            items = tuple(self.items[code] for code in self.purchases[place : place + size])
            yield Basket(self.names[self.baskets[i]], None if time == UNTIMED else time, items)
            place += size

    def select(self, positions: Int64s) -> "Orders":
        """The orders of the users at these positions only, with only their items."""
        kept = np.isin(self.owners, positions)
        items, purchases = np.unique(self.purchases[np.repeat(kept, self.sizes)], return_inverse=True)
        return Orders(
            users=[self.users[position] for position in positions],
            items=[self.items[code] for code in items],
            owners=np.searchsorted(positions, self.owners[kept]).astype(np.uint32),
            names=self.names,
            baskets=self.baskets[kept],
            times=self.times[kept],
            sizes=self.sizes[kept],
            opens=self.opens[kept],
            purchases=purchases.astype(np.uint32),
        )
