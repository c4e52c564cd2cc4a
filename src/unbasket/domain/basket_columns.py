"""Baskets as columns: the form of bulk loads from frames and files, and of exports."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple, Self

import numpy as np

from unbasket.core.arrays import Codes, Flags, Int64s
from unbasket.core.model import UNTIMED
from unbasket.domain.ids import Id
from unbasket.domain.results import Basket

StoredBasket = tuple[Id, int | None, Sequence[Id], bool]
"""A basket's id, time and items, and whether it opens a group."""


class BasketColumns(NamedTuple):
    """Baskets of many users: user after user, each user's oldest first, items distinct within a basket.

    `owners` and `purchases` are positions in the lists `users` and `items`. A basket's key is its id if that is a
    number, else the position of the id in `texts`. `opens` flags the baskets that open a group; only varying groups
    need it. `core.UNTIMED` stands for no time.
    """

    users: list[Id]
    items: list[Id]
    texts: list[str]
    owners: Codes
    keys: Int64s
    are_texts: Flags
    times: Int64s
    sizes: Int64s
    opens: Int64s
    purchases: Codes

    @classmethod
    def of(cls, histories: Iterable[tuple[Id, Sequence[StoredBasket]]]) -> Self:
        """Return the columns of users with their baskets, oldest first."""
        users, counts, baskets = list[Id](), list[int](), list[StoredBasket]()
        for user, history in histories:
            users.append(user)
            counts.append(len(history))
            baskets += history
        names, times, items, opens = zip(*baskets, strict=True) if baskets else ((), (), (), ())
        codes: dict[Id, int] = {item: code for code, item in enumerate(dict.fromkeys(chain.from_iterable(items)))}
        texts = {name: code for code, name in enumerate(dict.fromkeys(n for n in names if isinstance(n, str)))}
        return cls(
            users=users,
            items=list(codes),
            texts=list(texts),
            owners=np.repeat(np.arange(len(users), dtype=np.uint32), counts),
            keys=np.array([texts[name] if isinstance(name, str) else name for name in names], np.int64),
            are_texts=np.array([isinstance(name, str) for name in names], np.uint8),
            times=np.array([UNTIMED if time is None else time for time in times], np.int64),
            sizes=np.array([*map(len, items)], np.int64),
            opens=np.array(opens, np.int64),
            purchases=np.array([codes[item] for item in chain.from_iterable(items)], np.uint32),
        )

    def ends_by_user(self) -> tuple[Int64s, Int64s]:
        """Return the end of each user's baskets, and of their purchases."""
        basket_ends = np.cumsum(np.bincount(self.owners, minlength=len(self.users)))
        item_ends = np.concatenate(([0], np.cumsum(self.sizes)))[basket_ends]
        return basket_ends, item_ends

    def histories(self, positions: Int64s) -> Iterator[tuple[Id, list[Basket]]]:
        """Yield the users at these positions of `users`, with their baskets."""
        basket_ends, _ = self.ends_by_user()
        item_ends = np.cumsum(self.sizes)
        for position in positions.tolist():
            first = int(basket_ends[position - 1]) if position else 0
            yield self.users[position], [self._basket(i, item_ends) for i in range(first, int(basket_ends[position]))]

    def _basket(self, i: int, item_ends: Int64s) -> Basket:
        codes = self.purchases[item_ends[i] - self.sizes[i] : item_ends[i]].tolist()
        key, time = int(self.keys[i]), int(self.times[i])
        items = tuple(self.items[code] for code in codes)
        return Basket(self.texts[key] if self.are_texts[i] else key, None if time == UNTIMED else time, items)

    def select(self, positions: Int64s) -> Self:
        """Return the columns of the users at these positions alone, without the items of others."""
        kept = np.isin(self.owners, positions)
        items, purchases = np.unique(self.purchases[np.repeat(kept, self.sizes)], return_inverse=True)
        by_basket = {name: getattr(self, name)[kept] for name in ("keys", "are_texts", "times", "sizes", "opens")}
        return self._replace(
            users=[self.users[position] for position in positions],
            items=[self.items[code] for code in items],
            owners=np.searchsorted(positions, self.owners[kept]).astype(np.uint32),
            purchases=purchases.astype(np.uint32),
            **by_basket,
        )
