"""The data that an engine holds, by external ids: histories of users, and the items that they do not want.

Every method applies one change completely or answers one query; locking and validation are the caller's.
"""

import sys
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from unbasket.core.arrays import Codes, Int64s
from unbasket.core.model import CHECKPOINT_EVERY, TIED, UNTIMED, Baskets, EventApplier, Histories, Rule
from unbasket.core.util import coded_learns
from unbasket.domain.basket_columns import BasketColumns
from unbasket.domain.events import Change, Learn, Rename, Suppress
from unbasket.domain.ids import NO_TYPES, BasketIds, Id, Ids, IdTypes, in_order
from unbasket.domain.results import Basket, Forgotten, Learned, Renamed
from unbasket.errors import BasketConflictError, InvalidEventError, UnknownUserError
from unbasket.params import LEARNED, Params

MAX_SUPPRESSIONS = 1_000
"""Items that a user may suppress."""

LONG = 512  # baskets of a long history, which gets a set of its basket ids; shorter ones are searched


class Record(NamedTuple):
    """A basket with item codes."""

    basket: Id
    time: int | None
    items: list[int]
    opens: bool


class HistoryState:
    """Users, items and baskets under their codes, their histories, and suppressions: no index."""

    def __init__(self, params: Params) -> None:
        self.users = Ids("user")
        self.items = Ids("item")
        self.baskets = BasketIds()
        self.histories = Histories()
        self.params = params.seeded()
        self.rule = rule_of(params)
        self.events = EventApplier(self.histories, self.rule)
        self._types = NO_TYPES
        self._room = (0, 0)
        self.long_histories: dict[int, set[Id]] = {}  # basket ids of long histories that an event has searched
        self.suppressed: dict[Id, set[Id]] = {}  # items that users do not want to be recommended, known or not
        self.orphaned_items: set[Id] = set()  # items that lost their last purchase, until the caller clears them

    def _users_added(self, owners: Iterable[int], users: Iterable[Id]) -> None:
        """Follow new users, who have codes and no baskets yet: a hook."""

    def _user_removed(self, owner: int) -> None:
        """Follow a user who has lost the last basket, and is about to lose the code: a hook."""

    def learn(self, user: Id, items: list[Id], basket: Id, time: int | None) -> Learned:
        """Add a basket of distinct items, or replace the items of the basket with this id."""
        owner = self.users.codes.get(user)
        is_new = owner is None
        if owner is None:
            owner = self.users.add(user)
        codes = self._item_codes(items)
        if is_new:
            self._users_added([owner], [user])
        moment = UNTIMED if time is None else time
        key = self.baskets.claim(basket)
        known = self.long_histories.get(owner)
        search = known is None or basket in known
        found, position, count = self.events.learn(owner, key, moment, codes, search)
        if found >= 0:
            self.baskets.release(basket)
            return self._relearn(owner, found, user, items, basket, time)
        if found == TIED:
            position = self._position_by_id(owner, position, moment, basket)
            self.events.learn_at(owner, position, key, moment, codes)
        if known is not None:
            known.add(basket)
        elif count >= LONG:
            self.long_histories[owner] = self.basket_ids(owner)
        return Learned.ADDED

    def learn_all(self, events: list[Learn]) -> list[Learned]:
        """Learn baskets in order, and return what `learn` would: fast for new baskets, if a user's are adjacent."""
        results = list[Learned]()
        while len(results) < len(events):
            results += self._learn_next(events[len(results) :])
        return results

    def _learn_next(self, events: list[Learn]) -> list[Learned]:
        """Learn the new baskets that these events start with, and the one that follows."""
        columns = self._coded(events)
        count = self.events.learn_all(*columns, LONG)
        for event in events[count:]:
            self.baskets.release(event.basket)
        if self.long_histories:  # an event may have made one short, which may become long again
            for owner, event in zip(columns[0][:count].tolist(), events, strict=False):
                if owner in self.long_histories:
                    self.long_histories[owner].add(event.basket)
        return [Learned.ADDED] * count + [self.learn(*event) for event in events[count : count + 1]]

    def _coded(self, events: list[Learn]) -> tuple[Int64s, Int64s, Int64s, Int64s, Codes]:
        """Return learns as columns for `EventApplier.learn_all`, with a key claimed for each basket."""
        added = dict[int, Id]()

        def add_user(user: Id) -> int:
            code = self.users.add(user)
            added[code] = user
            return code

        ids = self.users.codes, self.items.codes
        columns = coded_learns(events, *ids, add_user, self.items.add, self.baskets.claim)
        self._admit()
        self._users_added(added.keys(), added.values())
        return columns

    def comes_last(self, user: Id, basket: Id, time: int | None) -> bool:
        """Return whether a basket would be new, and the user's last."""
        owner = self.users.codes.get(user)
        if owner is None:
            return True
        known = self.long_histories.get(owner)
        moment = UNTIMED if time is None else time
        return self.events.comes_last(owner, self.baskets.key(basket), moment, known is None or basket in known)

    def _relearn(self, owner: int, position: int, user: Id, items: list[Id], basket: Id, time: int | None) -> Learned:
        """Learn a basket whose id is known: unchanged, with other items, or at another time."""
        record = self._records(owner, position, position + 1)[0]
        if time is not None and time != record.time:
            self._forget_basket(owner, basket)  # the user stays, even without baskets for a moment
            self.learn(user, items, basket, time)
            return Learned.REPLACED
        if {self.items.names[code] for code in record.items} == set(items):
            return Learned.UNCHANGED
        self._drop_items(self.events.edit(owner, position, self._item_codes(items)))
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
            self._user_removed(owner)
            self.users.remove(user)
            self.long_histories.pop(owner, None)
            self.suppressed.pop(user, None)
        return forgotten

    def rename(self, user: Id, other: Id) -> Renamed:
        """Move all baskets and suppressions of a user to another, who has none of the basket ids."""
        baskets = self.history(user)
        for basket, time, items in baskets:  # before the user's code is free, which the other could get
            self.learn(other, list(items), basket, time)
        for item in self.suppressed.get(user, ()):
            self.suppress(other, item)
        self.forget(user, None, None)
        return Renamed(sum(len(basket.items) for basket in baskets), len(baskets))

    def check(self, event: Change) -> None:
        """Raise an error if a suppress or a rename can't be applied; the other events always can."""
        if type(event) is Suppress and event.user not in self.users:
            raise UnknownUserError(
                f"nothing is held about user {event.user!r}: suppressions are stored only for users with baskets"
            )
        if isinstance(event, Rename):
            if event.user not in self.users:
                raise UnknownUserError(f"nothing is held about user {event.user!r}")
            owners = [self.users.codes[name] for name in event if name in self.users]
            common = set.intersection(*map(self.basket_ids, owners)) if len(owners) == 2 else set()
            if common:
                raise BasketConflictError(
                    f"users {event.user!r} and {event.other!r} both have a basket {in_order(common)[0]!r}. "
                    "Forget one of the two, or learn it under another id first"
                )

    def check_suppressions(self, event: Change) -> None:
        """Raise an error if an event would leave a user with too many suppressions."""
        if type(event) is Suppress:
            user, added = event.user, {event.item}
        elif isinstance(event, Rename):
            user, added = event.other, self.suppressed.get(event.user, set())
        else:
            return
        held = self.suppressed.get(user, set())
        if not added <= held and len(held | added) > MAX_SUPPRESSIONS:
            raise InvalidEventError(
                f"user {user!r} would have {len(held | added):,} suppressed items, of at most {MAX_SUPPRESSIONS:,}. "
                "Allow some of them first"
            )

    def suppress(self, user: Id, item: Id) -> bool:
        """Suppress an item for a known user; return whether that is new."""
        suppressed = self.suppressed.setdefault(user, set())
        is_new = item not in suppressed
        suppressed.add(item)
        return is_new

    def drop_suppressions_of_unknown_users(self) -> None:
        """Drop the suppressions that an interrupt has separated from the last basket of their user."""
        self.suppressed = {user: items for user, items in self.suppressed.items() if user in self.users}

    def allow(self, user: Id, item: Id) -> bool:
        """Undo `suppress`; return whether the item was suppressed."""
        suppressed = self.suppressed.get(user, set())
        if item not in suppressed:
            return False
        suppressed.remove(item)
        if not suppressed:
            del self.suppressed[user]
        return True

    def _forget_item(self, owner: int, basket: Id | None, item: Id) -> Forgotten:
        first, end = self._positions(owner, basket)
        code = self.items.codes.get(item)
        if first < 0 or code is None:
            return Forgotten(0, 0, 0)
        removed, left, emptied, orphaned = self.events.forget_item(owner, first, end, code)
        if removed == 0:
            return Forgotten(0, 0, 0)
        self._drop_baskets(owner, emptied)
        self._drop_items(orphaned)
        return Forgotten(removed, len(emptied), int(left == 0))

    def _positions(self, owner: int, basket: Id | None) -> tuple[int, int]:
        """Return where a basket (None: all baskets) starts and ends in the user's history; -1 and 0 if unknown."""
        if basket is None:
            return 0, self.histories.count(owner)
        first = self.histories.position_of(owner, self.baskets.key(basket))
        return first, first + 1

    def _forget_basket(self, owner: int, basket: Id) -> Forgotten:
        size, left, orphaned = self.events.forget_basket(owner, self.baskets.key(basket))
        if size == 0:
            return Forgotten(0, 0, 0)
        self._drop_basket(owner, basket)
        self._drop_items(orphaned)
        return Forgotten(size, 1, int(left == 0))

    def _forget_user(self, owner: int) -> Forgotten:
        purchases, baskets, orphaned = self.events.forget_user(owner)
        self._drop_baskets(owner, baskets)
        self._drop_items(orphaned)
        return Forgotten(purchases, len(baskets), 1)

    def load(self, columns: BasketColumns, suppressed: Mapping[Id, set[Id]] | None = None) -> None:
        """Add baskets: new users in bulk, further baskets of known users one by one. New users may suppress items."""
        known = [user in self.users for user in columns.users]
        if any(known):
            for user, baskets in columns.histories(np.flatnonzero(known)):
                for record in baskets:
                    self.learn(user, list(record.items), record.basket, record.time)
            columns = columns.select(np.flatnonzero(~np.array(known)))
        if not columns.users:
            return
        owners = self.users.add_all(columns.users)
        codes = np.array(self.items.add_all(columns.items), np.uint32)
        self._admit()
        self._users_added(owners, columns.users)
        ends = columns.ends_by_user()
        self.events.load(self._baskets(columns), np.array(owners, np.int64), *ends, codes, columns.purchases)
        self.suppressed.update(suppressed or {})

    def _baskets(self, columns: BasketColumns) -> Baskets:
        keys = columns.keys if columns.baskets is None else self.baskets.claim_all(columns.baskets, columns.keys)
        return Baskets(keys, columns.times, columns.sizes, columns.opens.astype(np.uint8) * self.rule.varying)

    def columns(self, users: list[Id]) -> BasketColumns:
        """Return the baskets of some users, as `load` takes them."""
        return self._columns(users, np.array([self.users.codes[user] for user in users], np.int64))

    def all_columns(self) -> BasketColumns:
        """Return the baskets of all users, from histories and names alone, which no interrupt tears."""
        named = min(len(self.users.names), self._room[0])
        owners = [code for code in range(named) if self.histories.count(code)]
        return self._columns([self.users.names[code] for code in owners], np.array(owners, np.int64))

    def _columns(self, users: list[Id], owners: Int64s) -> BasketColumns:
        keys, times, sizes, opens, counts, bought = self.histories.columns(owners)
        is_bought = np.zeros(len(self.items.names), bool)
        is_bought[bought] = True
        items, purchases = np.flatnonzero(is_bought), (np.cumsum(is_bought) - 1)[bought]
        baskets = self.baskets.names
        if baskets is not None:
            used, keys = np.unique(keys, return_inverse=True)
            baskets = [baskets[key] for key in used.tolist()]
        return BasketColumns(
            users=users,
            items=[self.items.names[code] for code in items.tolist()],
            baskets=baskets,
            owners=np.repeat(np.arange(len(users), dtype=np.uint32), counts),
            keys=keys,
            times=times,
            sizes=sizes,
            opens=opens,
            purchases=purchases.astype(np.uint32),
        )

    def holds(self, user: Id, basket: Id | None, item: Id | None) -> bool:
        """Return whether `forget` would remove something."""
        owner = self.users.codes.get(user)
        if owner is None:
            return False
        first, end = self._positions(owner, basket)
        if item is None or first < 0:
            return first >= 0
        code = self.items.codes.get(item)
        return any(code in items for _, _, items, _ in self.histories.read(owner, first, end))

    def id_types(self) -> IdTypes:
        """Return the types of the ids held here, which are asked for before every change.

        They change only while there are no users: every user has baskets, and every basket has items.
        """
        held = self.users.type
        if held is None:
            self._types = NO_TYPES
        elif held is not self._types.user:
            self._types = IdTypes(held, int if self.baskets.names is None else str, self.items.type)
        return self._types

    def history(self, user: Id) -> list[Basket]:
        """Return the user's baskets, oldest first."""
        names = self.items.names
        return [
            Basket(record.basket, record.time, tuple(in_order([names[code] for code in record.items])))
            for record in self.records(user)
        ]

    def basket_ids(self, owner: int) -> set[Id]:
        """Return the ids of a user's baskets."""
        return {*map(self.baskets.name, self.histories.keys(owner))}

    def records(self, user: Id, first: int = 0, end: int | None = None) -> list[Record]:
        """Return the user's baskets with item codes, oldest first: all, or those at positions `first` to `end`."""
        owner = self.users.codes[user]
        return self._records(owner, first, self.histories.count(owner) if end is None else end)

    def _records(self, owner: int, first: int, end: int) -> list[Record]:
        return [
            Record(self.baskets.name(key), None if time == UNTIMED else time, items, opens)
            for key, time, items, opens in self.histories.read(owner, first, end)
        ]

    def _position_by_id(self, owner: int, position: int, time: int, basket: Id) -> int:
        """Return where a basket goes among baskets of the same time, the last of which is before `position`."""
        for earlier in range(position - 1, -1, -1):
            other = self._records(owner, earlier, earlier + 1)[0]
            if other.time is not None:
                if other.time != time or in_order([other.basket, basket])[0] != basket:
                    break
                position = earlier
        return position

    def _item_codes(self, items: list[Id]) -> list[int]:
        """Return the codes of items, new ones included. Makes room for all codes given out so far."""
        try:
            codes = [*map(self.items.codes.__getitem__, items)]
        except KeyError:
            codes = [self.items.add(item) for item in items]
        self._admit()
        return codes

    def _admit(self) -> None:
        users, items = len(self.users.names), len(self.items.names)
        if users > self._room[0] or items > self._room[1]:
            room = (users + users // 4, items + items // 4)
            self.events.admit(*room)
            self._room = room

    def _drop_items(self, codes: list[int]) -> None:
        for code in set(codes):
            self.orphaned_items.add(self.items.names[code])
            self.items.remove(self.items.names[code])

    def _drop_baskets(self, owner: int, keys: list[int]) -> None:
        for key in keys:
            self._drop_basket(owner, self.baskets.name(key))

    def _drop_basket(self, owner: int, basket: Id) -> None:
        if owner in self.long_histories:
            self.long_histories[owner].discard(basket)
        self.baskets.release(basket)


def rule_of(params: Params) -> Rule:
    """Return the rule of the fold with these parameters."""
    counted = params.grouping == "count"
    return Rule(
        params.group_size,
        params.basket_decay,
        params.group_decay,
        params.grouping == "varying",
        counted,
        sys.maxsize if counted else max(1, CHECKPOINT_EVERY // params.group_size),  # no state survives an event
        params.alpha == LEARNED,
    )
