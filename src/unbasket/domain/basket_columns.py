"""Baskets as columns: the form of bulk loads from frames and files, and of exports."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, Self

import numpy as np

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.codec import gathered
from unbasket.core.model import UNTIMED
from unbasket.domain.ids import Id, IdTypes, all_in_type, type_of
from unbasket.domain.results import Basket

StoredBasket = tuple[Id, int | None, Sequence[Id], bool]
"""A basket's id, time and items, and whether it opens a group."""


class BasketColumns(NamedTuple):
    """Baskets of many users: user after user, each user's oldest first, items distinct within a basket.

    Ids of a kind are of one type. `owners` and `purchases` are positions in the lists `users` and `items`. A basket's
    key is its id if `baskets` is None, else the position of its id in `baskets`. `opens` flags the baskets that open a
    group; only varying groups need it. `core.UNTIMED` stands for no time.
    """

    users: list[Id]
    items: list[Id]
    baskets: list[str] | None
    owners: Codes
    keys: Int64s
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
        texts, keys = _keys(names)
        return cls(
            users=users,
            items=list(codes),
            baskets=texts,
            owners=np.repeat(np.arange(len(users), dtype=np.uint32), counts),
            keys=keys,
            times=np.array([UNTIMED if time is None else time for time in times], np.int64),
            sizes=np.array([*map(len, items)], np.int64),
            opens=np.array(opens, np.int64),
            purchases=np.array([codes[item] for item in chain.from_iterable(items)], np.uint32),
        )

    def in_types(self, types: IdTypes) -> Self:
        """Return the columns with ids of an engine's types, in its order; an error names an id that spells none."""
        columns = self._replace(
            users=all_in_type(self.users, types.user, "user"), items=all_in_type(self.items, types.item, "item")
        )
        if types.basket is None or not len(self.keys) or types.basket is self.basket_type:
            return columns
        texts, keys = _keys(all_in_type(self.basket_ids(), types.basket, "basket"))
        return columns._replace(baskets=texts, keys=keys).by_id()

    @property
    def basket_type(self) -> type[int] | type[str]:
        """The type of the ids of baskets."""
        return int if self.baskets is None else str

    def basket_ids(self) -> list[Id]:
        """Return the id of each basket."""
        keys: list[int] = self.keys.tolist()
        return [*keys] if self.baskets is None else [self.baskets[key] for key in keys]

    def by_id(self) -> Self:
        """Sort a user's baskets of the same time by their ids. Baskets without a time, and groups, stay in place."""
        names: list[Any] = self.basket_ids()
        order, timed = np.arange(len(names)), np.flatnonzero(self.times != UNTIMED)
        order[timed] = sorted(timed.tolist(), key=lambda i: (self.owners[i], self.times[i], names[i]))
        return self._replace(
            keys=self.keys[order],
            times=self.times[order],
            sizes=self.sizes[order],
            purchases=gathered(self.purchases, self.sizes, order),
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
        return Basket(key if self.baskets is None else self.baskets[key], None if time == UNTIMED else time, items)

    def select(self, positions: Int64s) -> Self:
        """Return the columns of the users at these positions alone, without the items of others."""
        kept = np.isin(self.owners, positions)
        items, purchases = np.unique(self.purchases[np.repeat(kept, self.sizes)], return_inverse=True)
        by_basket = {name: getattr(self, name)[kept] for name in ("keys", "times", "sizes", "opens")}
        return self._replace(
            users=[self.users[position] for position in positions],
            items=[self.items[code] for code in items],
            owners=np.searchsorted(positions, self.owners[kept]).astype(np.uint32),
            purchases=purchases.astype(np.uint32),
            **by_basket,
        )


def _keys(names: Sequence[Id]) -> tuple[list[str] | None, Int64s]:
    """Return the distinct ids of baskets if they are texts, and the key of each basket."""
    if type_of(names) is not str:
        return None, np.array(names, np.int64)
    codes = {name: code for code, name in enumerate(dict.fromkeys(map(str, names)))}
    return list(codes), np.array([codes[str(name)] for name in names], np.int64)
