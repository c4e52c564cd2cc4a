"""What the engine remembers, by external ids: the histories, and everything derived from them.

Every method applies one change completely or answers one question; locking and checking are the caller's.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from unbasket.core import TIED, UNTIMED, Baskets, FoldWorkspace, Histories, Vector
from unbasket.core.index import bulk_load
from unbasket.core.model import queries
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.ids import Id, Ids, Kind, Texts, in_order, sort_key
from unbasket.domain.results import Basket, Forgotten, Learned, Renamed, Sizes
from unbasket.engine.model_state import ModelState
from unbasket.params import Params

LONG = 512  # baskets from which on a history has a set of its basket ids; shorter ones are searched


class Record(NamedTuple):
    """One remembered basket, by codes."""

    basket: Id
    time: int | None
    items: list[int]
    opens: bool


class EngineState:
    """Users, items and baskets under their codes, their histories, and the live index."""

    def __init__(self, params: Params) -> None:
        self.users = Ids()
        self.items = Ids()
        self.texts = Texts()
        self.histories = Histories()
        self._room = (0, 0)
        self.adopt(self.derive(params))
        self.long: dict[int, set[Id]] = {}  # the basket ids of long histories, from the first event on that needs them
        self.suppressed: dict[Id, set[Id]] = {}  # items that users do not want to be recommended, known or not
        self.vanished: set[Id] = set()  # items that lost their last purchase, for whoever changed something to look at

    def derive(self, params: Params) -> ModelState:
        """What would be derived with other parameters; of nobody yet."""
        return ModelState(params, self.histories, self._precedes)

    def renew(self, derived: ModelState, owner: int) -> None:
        """Bring what is derived with other parameters up to date with the history of a user."""
        derived.live.admit(*self._room)
        derived.renew(owner, self.users.names[owner])

    def adopt(self, derived: ModelState) -> None:
        """Use what is derived of everybody from now on, with room for all codes, also if there is nobody now."""
        derived.live.admit(*self._room)
        self.params, self.rule = derived.params, derived.rule
        self.index, self.pool = derived.index, derived.pool
        self.lots, self.live = derived.lots, derived.live

    def learn(self, user: Id, items: list[Id], basket: Id, time: int | None) -> Learned:
        """Add a basket of distinct items, or replace the items of the one that has this id."""
        owner = self.users.codes.get(user)
        is_new = owner is None
        if owner is None:
            owner = self.users.add(user)
        codes = self._item_codes(items)
        if is_new and self.pool is not None:
            self.live.join(owner, self.lots.of(user))
        moment = UNTIMED if time is None else time
        is_text = isinstance(basket, str)
        key = self.texts.claim(basket) if isinstance(basket, str) else basket
        long = self.long.get(owner)
        search = long is None or basket in long
        found, position, count = self.live.learn(owner, key, is_text, moment, codes, search)
        if found >= 0:
            if is_text:
                self.texts.release(key)
            return self._relearn(owner, found, user, items, basket, time)
        if found == TIED:
            position = self._position_by_id(owner, position, moment, basket)
            self.live.learn_at(owner, position, key, is_text, moment, codes)
        if long is not None or count >= LONG:
            self._ids_of_long(owner).add(basket)
        return Learned.ADDED

    def comes_last(self, user: Id, basket: Id, time: int | None) -> bool:
        """Whether a basket would be new, and the user's last."""
        owner = self.users.codes.get(user)
        if owner is None:
            return True
        long = self.long.get(owner)
        moment = UNTIMED if time is None else time
        return self.live.comes_last(owner, *self._key(basket), moment, long is None or basket in long)

    def _relearn(self, owner: int, position: int, user: Id, items: list[Id], basket: Id, time: int | None) -> Learned:
        """Learn a basket whose id is known: nothing new, other items, or another time."""
        record = self._records(owner, position, position + 1)[0]
        if time is not None and time != record.time:
            suppressed = self.suppressed.get(user)
            self.forget(user, basket, None)
            self.learn(user, items, basket, time)
            if suppressed is not None:  # it would have gone with the only basket
                self.suppressed[user] = suppressed
            return Learned.REPLACED
        if {self.items.names[code] for code in record.items} == set(items):
            return Learned.UNCHANGED
        self._drop_items(self.live.edit(owner, position, self._item_codes(items)))
        return Learned.REPLACED

    def forget(self, user: Id, basket: Id | None, item: Id | None) -> Forgotten:
        """Remove a user, a basket, an item of a basket, or an item of all of the user's baskets."""
        owner = self.users.codes.get(user)
        if owner is None:
            return Forgotten(0, 0, 0)
        if item is not None:
            forgotten = self._forget_item(owner, basket, item)
        elif basket is not None:
            forgotten = self._forget_basket(owner, basket)
        else:
            forgotten = self._forget_user(owner)
        if forgotten.users:
            if self.pool is not None:
                self.live.leave(owner)
            self.users.remove(user)
            self.long.pop(owner, None)
            self.suppressed.pop(user, None)
        return forgotten

    def rename(self, user: Id, other: Id) -> Renamed:
        """Let the other learn all baskets of a user, who then goes; they have no basket id in common."""
        baskets = self.history(user)
        for basket, time, items in baskets:  # before the user goes, so that the other does not get their code
            self.learn(other, list(items), basket, time)
        for item in self.suppressed.get(user, ()):
            self.suppress(other, item)
        self.forget(user, None, None)
        return Renamed(sum(len(basket.items) for basket in baskets), len(baskets))

    def common_baskets(self, user: Id, other: Id) -> set[Id]:
        """The basket ids that two users both have."""
        owners = [self.users.codes[name] for name in (user, other) if name in self.users]
        return set.intersection(*map(self.basket_ids, owners)) if len(owners) == 2 else set()

    def suppress(self, user: Id, item: Id) -> bool:
        """Keep an item from a user who is there; returns whether that is new."""
        suppressed = self.suppressed.setdefault(user, set())
        is_new = item not in suppressed
        suppressed.add(item)
        return is_new

    def allow(self, user: Id, item: Id) -> bool:
        """Take that back; returns whether there was something to take back."""
        suppressed = self.suppressed.get(user, set())
        if item not in suppressed:
            return False
        suppressed.remove(item)
        if not suppressed:
            del self.suppressed[user]
        return True

    def _forget_item(self, owner: int, basket: Id | None, item: Id) -> Forgotten:
        first, end = 0, self.histories.count(owner)
        if basket is not None:
            first = self.histories.find(owner, *self._key(basket))
            end = first + 1
        code = self.items.codes.get(item)
        if first < 0 or code is None:
            return Forgotten(0, 0, 0)
        removed, left, emptied, gone = self.live.forget_item(owner, first, end, code)
        if removed == 0:
            return Forgotten(0, 0, 0)
        self._drop_baskets(owner, emptied)
        self._drop_items(gone)
        return Forgotten(removed, len(emptied), int(left == 0))

    def _forget_basket(self, owner: int, basket: Id) -> Forgotten:
        size, left, gone = self.live.forget_basket(owner, *self._key(basket))
        if size == 0:
            return Forgotten(0, 0, 0)
        self._drop_basket(owner, basket)
        self._drop_items(gone)
        return Forgotten(size, 1, int(left == 0))

    def _forget_user(self, owner: int) -> Forgotten:
        purchases, baskets, gone = self.live.forget_user(owner)
        self._drop_baskets(owner, baskets)
        self._drop_items(gone)
        return Forgotten(purchases, len(baskets), 1)

    def load(self, orders: BasketColumns) -> None:
        """Add orders: new users at once, further baskets of known users one by one."""
        known = [user in self.users for user in orders.users]
        if any(known):
            for user, baskets in orders.histories(np.flatnonzero(known)):
                for record in baskets:
                    self.learn(user, list(record.items), record.basket, record.time)
            orders = orders.select(np.flatnonzero(~np.array(known)))
        if not orders.users:
            return
        owners = np.array(self.users.add_all(orders.users), np.int64)
        codes = np.array(self.items.add_all(orders.items), np.uint32)
        self._admit()
        if self.pool is not None:
            for owner, lot in zip(owners.tolist(), self.lots.of_all(orders.users).tolist(), strict=True):
                self.live.join(owner, lot)
        basket_ends, item_ends = orders.ends_by_user()
        bulk_load.load(self.live, self._baskets(orders), owners, basket_ends, item_ends, codes, orders.purchases)

    def _baskets(self, orders: BasketColumns) -> Baskets:
        keys = orders.keys
        if orders.texts:
            are_texts = orders.are_texts.astype(np.bool_)
            uses = np.bincount(keys[are_texts], minlength=len(orders.texts)).tolist()
            claimed = [self.texts.claim(*use) if use[1] else 0 for use in zip(orders.texts, uses, strict=True)]
            keys = keys.copy()
            keys[are_texts] = np.array(claimed, np.int64)[keys[are_texts]]
        return Baskets(
            keys,
            orders.are_texts,
            orders.times,
            orders.sizes,
            orders.opens.astype(np.uint8) * (self.params.grouping == "varying"),
        )

    def orders(self, users: list[Id]) -> BasketColumns:
        """The remaining orders of some users, as they would be loaded."""
        names = self.items.names
        return BasketColumns.of(
            (user, [(r.basket, r.time, [names[code] for code in r.items], r.opens) for r in self.records(user)])
            for user in users
        )

    def holds(self, user: Id, basket: Id | None, item: Id | None) -> bool:
        """Whether there is something that `forget` would remove."""
        owner = self.users.codes.get(user)
        if owner is None:
            return False
        first, end = 0, self.histories.count(owner)
        if basket is not None:
            first = self.histories.find(owner, *self._key(basket))
            end = first + 1
        if item is None or first < 0:
            return first >= 0
        code = self.items.codes.get(item)
        return any(code in items for _, _, _, items, _ in self.histories.read(owner, first, end))

    def has_texts(self, kind: Kind) -> bool:
        """Whether there is a text among the ids of users, items or baskets."""
        if kind == "basket":
            return bool(self.texts.codes)
        return (self.users if kind == "user" else self.items).has_texts()

    def has_basket_like(self, user: Id, basket: int) -> bool:
        """Whether the user has a basket of this number, or none with a text as its id."""
        owner = self.users.codes[user]
        return self.histories.find(owner, basket, False) >= 0 or not self.histories.has_texts(owner)

    def in_pool(self, user: Id) -> bool:
        """Whether a user is among those whom neighbors are looked for among: without a pool, everybody is."""
        return self.pool is None or self.pool.has(self.users.codes[user])

    def left_out_for(self, user: Id) -> int:
        """Who is no neighbor of a user: the user or, if that is somebody new, whoever would leave the pool for them.

        -1 is nobody.
        """
        owner = self.users.codes.get(user)
        last = -1 if self.pool is None else self.pool.last()
        if owner is not None or self.pool is None or last < 0:
            return -1 if owner is None else owner
        lot, largest = self.lots.of(user), self.pool.lot_of(last)
        enters = lot < largest or (lot == largest and sort_key(user) < sort_key(self.users.names[last]))
        return last if enters else -1

    def query(self, owner: int, space: FoldWorkspace) -> Vector:
        """The vector of a user, who need not be in the pool."""
        return queries.vector_of(self.live, space, owner)

    def sizes(self) -> Sizes:
        """How much there is."""
        return Sizes(len(self.users), len(self.items), *queries.sizes(self.live))

    def take_vanished(self) -> list[Id]:
        """The items that nobody has any longer, of those that somebody had when this was last asked."""
        vanished, self.vanished = self.vanished, set()
        return [item for item in vanished if item not in self.items]

    @contextmanager
    def lent_items(self, items: Iterable[Id]) -> Iterator[None]:
        """Codes for items that nobody has, for the duration of a question."""
        for item in items:
            self.items.add(item)
        self._admit()
        try:
            yield
        finally:
            for item in items:
                self.items.remove(item)

    def history(self, user: Id) -> list[Basket]:
        """The user's baskets, oldest first."""
        names = self.items.names
        return [
            Basket(
                record.basket,
                record.time,
                tuple(in_order([names[code] for code in record.items])),
            )
            for record in self.records(user)
        ]

    def basket_ids(self, owner: int) -> set[Id]:
        """The ids of all baskets of a user."""
        numbers, texts = self.histories.keys(owner)
        return {*numbers, *map(self.texts.names.__getitem__, texts)}

    def count(self, user: Id) -> int:
        """The number of the user's baskets."""
        return self.histories.count(self.users.codes[user])

    def records(self, user: Id, first: int = 0, end: int | None = None) -> list[Record]:
        """The user's baskets by codes, oldest first: all, or those at positions `first` to `end`."""
        return self._records(self.users.codes[user], first, self.count(user) if end is None else end)

    def _records(self, owner: int, first: int, end: int) -> list[Record]:
        return [
            Record(self._basket_id(key, is_text), None if time == UNTIMED else time, items, opens)
            for key, is_text, time, items, opens in self.histories.read(owner, first, end)
        ]

    def _basket_id(self, key: int, is_text: bool) -> Id:
        return self.texts.names[key] if is_text else key

    def _key(self, basket: Id) -> tuple[int, bool]:
        """How a basket id is stored; a text that no basket bears gets a key that none has."""
        return (self.texts.codes.get(basket, -1), True) if isinstance(basket, str) else (basket, False)

    def _precedes(self, owner: int, other: int) -> bool:
        """Whether a user comes before another in the order of ids."""
        return sort_key(self.users.names[owner]) < sort_key(self.users.names[other])

    def _position_by_id(self, owner: int, position: int, time: int, basket: Id) -> int:
        """Where a basket goes among those of the same time, the last of which are before `position`."""
        for earlier in range(position - 1, -1, -1):
            other = self._records(owner, earlier, earlier + 1)[0]
            if other.time is not None:
                if other.time != time or sort_key(other.basket) < sort_key(basket):
                    break
                position = earlier
        return position

    def _ids_of_long(self, owner: int) -> set[Id]:
        if owner not in self.long:
            self.long[owner] = self.basket_ids(owner)
        return self.long[owner]

    def _item_codes(self, items: list[Id]) -> list[int]:
        """The codes of items; new ones are added. Makes room for all codes given out so far."""
        try:
            codes = [*map(self.items.codes.__getitem__, items)]
        except KeyError:
            codes = [self.items.add(item) for item in items]
        self._admit()
        return codes

    def _admit(self) -> None:
        users, items = len(self.users.names), len(self.items.names)
        if users > self._room[0] or items > self._room[1]:
            self._room = (users + users // 4, items + items // 4)
            self.live.admit(*self._room)

    def _drop_items(self, codes: list[int]) -> None:
        for code in set(codes):
            self.vanished.add(self.items.names[code])
            self.items.remove(self.items.names[code])

    def _drop_baskets(self, owner: int, keys: list[tuple[int, bool]]) -> None:
        for key, is_text in keys:
            self._drop_basket(owner, self._basket_id(key, is_text))

    def _drop_basket(self, owner: int, basket: Id) -> None:
        if owner in self.long:
            self.long[owner].discard(basket)
        if isinstance(basket, str):
            self.texts.release(self.texts.codes[basket])
