"""A naive model of the whole engine, written from the paper's equations: slow, obvious, plain Python.

Everything fast must agree with it. It stores each user's baskets and computes the rest in every query. Its input is
taken as valid, but for an id that does not spell one of the type held: a `RefusedIdError`. An unknown user is a
KeyError.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from math import fsum, sqrt
from typing import NamedTuple, TypeVar

import msgspec

from unbasket.domain.privacy import PrivacyThreshold
from unbasket.params import Params

Id = int | str
Number = TypeVar("Number", int, float)
T = TypeVar("T")


def id_key(external: Id) -> tuple[int, int, str]:
    """Return the sort key of an id: ints before strs, each in their natural order."""
    return (0, external, "") if isinstance(external, int) else (1, 0, external)


def priority(seed: int, user: Id) -> int:
    """Return a user's priority: the users with the smallest ones are the pool."""
    key, person = seed.to_bytes(8, "big"), b"unbasket pool"
    return int(blake2b(msgspec.msgpack.encode(user), digest_size=8, key=key, person=person).hexdigest(), 16)


def group_vector(baskets: Sequence[AbstractSet[Id]], r_b: float) -> dict[Id, float]:
    """Return Eq. groupvector: the sum of r_b^(tau-i) * b_i over tau, for the tau baskets of the group."""
    tau = len(baskets)
    items = {item for basket in baskets for item in basket}
    return {
        item: fsum(r_b ** (tau - i) for i, basket in enumerate(baskets, start=1) if item in basket) / tau
        for item in items
    }


def user_vector(groups: Sequence[Sequence[AbstractSet[Id]]], r_b: float, r_g: float) -> dict[Id, float]:
    """Return Eq. uservector: the sum of r_g^(k-j) * g_j over k, for the k groups."""
    k = len(groups)
    vectors = [group_vector(group, r_b) for group in groups]
    items = {item for vector in vectors for item in vector}
    return {
        item: fsum(r_g ** (k - j) * vector.get(item, 0.0) for j, vector in enumerate(vectors, start=1)) / k
        for item in items
    }


def counted_groups(baskets: Sequence[T], m: int) -> list[Sequence[T]]:
    """Return m groups as the original TIFU-kNN does: equally long but for the newest ones, which have one more.

    Fewer baskets than m are a group each (`HaojiHu/TIFUKNN`, TIFUKNN.py: group_history_list).
    """
    if len(baskets) < m:
        return [[basket] for basket in baskets]
    base, longer = divmod(len(baskets), m)
    older = [baskets[i * base : (i + 1) * base] for i in range(m - longer)]
    newest = baskets[(m - longer) * base :]
    return older + [newest[i * (base + 1) : (i + 1) * (base + 1)] for i in range(longer)]


def counted_vector(baskets: Sequence[AbstractSet[Id]], m: int, r_b: float, r_g: float) -> dict[Id, float]:
    """Return the user vector of the original TIFU-kNN (temporal_decay_sum_history).

    Baskets decay by their age in the whole history, groups by their distance from group m.
    """
    weights = [dict.fromkeys(basket, r_b**age) for age, basket in enumerate(reversed(baskets))][::-1]
    groups = counted_groups(weights, m)
    items = {item for basket in baskets for item in basket}
    return {
        item: fsum(
            r_g ** (m - j) * fsum(basket.get(item, 0.0) for basket in group) / len(group)
            for j, group in enumerate(groups, start=1)
        )
        / len(groups)
        for item in items
    }


class Basket(NamedTuple):
    """A basket as returned: items in the order of ids."""

    basket: Id
    time: int | None
    items: tuple[Id, ...]


@dataclass
class StoredBasket:
    """A basket as stored. `starts` flags the first basket of a group, for the varying grouping only."""

    basket: Id
    time: int | None
    items: set[Id]
    starts: bool = False

    def is_after(self, other: "StoredBasket") -> bool:
        """Return whether both have a time and this basket sorts after the other."""
        if self.time is None or other.time is None:
            return False
        return (self.time, id_key(self.basket)) > (other.time, id_key(other.basket))


class RefusedIdError(ValueError):
    """An id that does not spell one of the type that is held."""


def column(ids: Iterable[Id]) -> list[Id]:
    """Return ids of one type: texts, unless all are numbers."""
    names = list(ids)
    return names if all(isinstance(name, int) for name in names) else list(map(str, names))


class Oracle:
    """The engine's methods, recomputed from the baskets in every query."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self._histories: dict[Id, list[StoredBasket]] = {}
        self._hidden: set[Id] = set()
        self._suppressed: dict[Id, set[Id]] = {}

    def _held(self, kind: str) -> list[Id]:
        """Return the ids of a kind that are held, some more than once."""
        stored = [basket for history in self._histories.values() for basket in history]
        if kind == "user":
            return [*self._histories]
        if kind == "basket":
            return [basket.basket for basket in stored]
        return [*self._hidden, *chain(*(basket.items for basket in stored), *self._suppressed.values())]

    def canonical(self, kind: str, spelled: Id) -> Id:
        """Return the id that a value spells: of the type of the ids that are held or, without any, the value itself."""
        held = self._held(kind)
        if not held or type(spelled) is type(held[0]):
            return spelled
        if isinstance(held[0], str):
            return str(spelled)
        if not re.fullmatch("0|-?[1-9][0-9]*", str(spelled)):
            raise RefusedIdError(spelled)
        return int(spelled)

    def __contains__(self, user: Id) -> bool:
        try:
            return self.canonical("user", user) in self._histories
        except RefusedIdError:
            return False

    def rename(self, user: Id, other: Id) -> None:
        """Learn a user's baskets under another id, and forget the user."""
        user, other = self.canonical("user", user), self.canonical("user", other)
        if user == other:
            raise RefusedIdError(other)
        for basket, time, items in self.history(user):
            self.learn(other, items, basket, time)
        for item in self.suppressed(user):
            self.suppress(other, item)
        self.forget(user)

    def suppress(self, user: Id, item: Id) -> None:
        """Never recommend an item to a user."""
        user, item = self.canonical("user", user), self.canonical("item", item)
        self._suppressed.setdefault(user, set()).add(item)

    def allow(self, user: Id, item: Id) -> None:
        """Undo `suppress`."""
        user, item = self.canonical("user", user), self.canonical("item", item)
        self._suppressed.get(user, set()).discard(item)

    def suppressed(self, user: Id) -> list[Id]:
        """Return the user's suppressed items by id; they are removed with the last basket."""
        return sorted(self._suppressed.get(user, ()), key=id_key)

    def hide(self, items: Iterable[Id]) -> None:
        """Stop recommending these items."""
        self._hidden |= {self.canonical("item", item) for item in column(items)}

    def show(self, items: Iterable[Id]) -> None:
        """Recommend these items again."""
        self._hidden -= {self.canonical("item", item) for item in column(items)}

    def hidden(self) -> list[Id]:
        """Return the hidden items by id."""
        return sorted(self._hidden, key=id_key)

    def learn(self, user: Id, items: Iterable[Id], basket: Id, time: int | None = None) -> None:
        """Add a basket, or edit the one of this id: in place unless a different time moves it."""
        user, basket = self.canonical("user", user), self.canonical("basket", basket)
        items = [self.canonical("item", item) for item in column(items)]
        history = self._histories.setdefault(user, [])
        known = [stored for stored in history if stored.basket == basket]
        if known and time in (None, known[0].time):
            known[0].items = set(items)
            return
        for stored in known:
            _remove(history, stored)
        self._insert(history, StoredBasket(basket, time, set(items)))

    def forget(self, user: Id, basket: Id | None = None, item: Id | None = None) -> None:
        """Forget the user, a basket, an item of a basket or an item of all baskets, if present."""
        user = self.canonical("user", user)
        basket = None if basket is None else self.canonical("basket", basket)
        item = None if item is None else self.canonical("item", item)
        history = self._histories.get(user, [])
        for stored in list(history):
            if basket is None or stored.basket == basket:
                stored.items -= stored.items if item is None else {item}
                if not stored.items:
                    _remove(history, stored)
        if not history:
            self._histories.pop(user, None)
            self._suppressed.pop(user, None)

    def users(self) -> list[Id]:
        return sorted(self._histories, key=id_key)

    def history(self, user: Id) -> list[Basket]:
        """Return the user's baskets, oldest first."""
        return [_shown(stored) for stored in self._histories[self.canonical("user", user)]]

    def groups(self, user: Id) -> list[list[Basket]]:
        """Return the user's baskets, oldest first, split into groups."""
        return [[_shown(stored) for stored in group] for group in self._split(self._histories[user])]

    def vector(self, user: Id) -> dict[Id, float]:
        if self.params.grouping == "count":
            baskets = [stored.items for stored in self._histories[user]]
            return counted_vector(baskets, self.params.group_size, self.params.basket_decay, self.params.group_decay)
        groups = [[stored.items for stored in group] for group in self._split(self._histories[user])]
        return user_vector(groups, self.params.basket_decay, self.params.group_decay)

    def distance(self, a: Id, b: Id) -> float:
        """Return the Euclidean distance of two users over the items of either."""
        return _distance(self.vector(a), self.vector(b))

    def pool(self) -> list[Id]:
        """Return the candidates for neighbors: the users with the smallest priorities, or all; ties by id."""
        seed = self.params.pool_seed or 0
        return sorted(self.users(), key=lambda user: (priority(seed, user), id_key(user)))[: self.params.pool]

    def private_prediction(self, user: Id, privacy: PrivacyThreshold, stored: "Oracle") -> dict[Id, float]:
        """Return the prediction under a privacy threshold; `stored` has the users whose items count as bought.

        The neighbors are the nearest to the part of the user's vector that has items with enough buyers, and an item
        that too few of them have is one that none of them has.
        """
        own, alpha = self.vector(user), self.params.alpha
        buyers = Counter(item for other in stored.pool() for item in stored.vector(other))
        part = {item: weight for item, weight in own.items() if buyers[item] >= privacy.buyers}
        near = [self.vector(other) for other in self.nearest(user, part)]
        having = Counter(item for vector in near for item in vector)
        mean = {item: weight for item, weight in _mean(near).items() if having[item] >= privacy.neighbors}
        return {
            item: alpha * own.get(item, 0.0) + (1 - alpha) * mean.get(item, 0.0) for item in own.keys() | mean.keys()
        }

    def nearest(self, user: Id, vector: Mapping[Id, float]) -> list[Id]:
        """Return the other users of the pool that are nearest to a vector; ties by id."""
        others = [other for other in self.pool() if other != user]
        return sorted(others, key=lambda other: (_distance(vector, self.vector(other)), id_key(other)))[
            : self.params.neighbors
        ]

    def neighbors_of(self, user: Id, k: int) -> list[tuple[Id, float]]:
        """Return the k nearest other users of the pool and their distances, nearest first; ties by id."""
        others = [(other, self.distance(user, other)) for other in self.pool() if other != user]
        return sorted(others, key=lambda other: (other[1], id_key(other[0])))[:k]

    def prediction(self, user: Id) -> dict[Id, float]:
        """Return the prediction of section 2.2: p = alpha * own vector + (1 - alpha) * mean of the neighbors' vectors.

        The mean is over the neighbors found; without any, their share is zero.
        """
        alpha = self.params.alpha
        own = self.vector(user)
        mean = _mean([self.vector(other) for other, _ in self.neighbors_of(user, self.params.neighbors)])
        return {
            item: alpha * own.get(item, 0.0) + (1 - alpha) * mean.get(item, 0.0) for item in own.keys() | mean.keys()
        }

    def recommend(self, user: Id, n: int, allowed: Collection[Id] | None = None) -> list[tuple[Id, float]]:
        """Return the n items of the highest scores, ties by id; allowed items only, if given."""
        scores = self._offered(self.prediction(user), allowed)
        return _highest({item: score for item, score in scores.items() if item not in self.suppressed(user)}, n)

    def with_cart(self, user: Id, cart: Collection[Id]) -> "Oracle":
        """Return a copy that has learned the cart as the user's newest basket."""
        other = Oracle(self.params)
        other._histories, other._hidden = deepcopy(self._histories), self._hidden
        other._suppressed = self._suppressed
        other.learn(user, cart, basket=10**15)  # an id that no basket has
        return other

    def popular(self, n: int, allowed: Collection[Id] | None = None, since: int | None = None) -> list[tuple[Id, int]]:
        """Return the n items in most baskets of all users, ties by id.

        With `since`, only baskets of that time or later count.
        """
        baskets = [stored for history in self._histories.values() for stored in history]
        if since is not None:
            baskets = [stored for stored in baskets if stored.time is not None and stored.time >= since]
        return _highest(self._offered(Counter(item for stored in baskets for item in stored.items), allowed), n)

    def _offered(self, scores: Mapping[Id, Number], allowed: Collection[Id] | None) -> dict[Id, Number]:
        """Return the scores of items that are not hidden and, if given, allowed."""
        return {
            item: score
            for item, score in scores.items()
            if item not in self._hidden and (allowed is None or item in allowed)
        }

    def _split(self, history: list[StoredBasket]) -> list[list[StoredBasket]]:
        """Split a history into groups: runs of m from the oldest on, the runs of the start flags, or m groups."""
        if self.params.grouping == "count":
            return [list(group) for group in counted_groups(history, self.params.group_size)]
        groups: list[list[StoredBasket]] = []
        for position, stored in enumerate(history):
            starts = position % self.params.group_size == 0 if self.params.grouping == "fixed" else stored.starts
            if starts:
                groups.append([])
            groups[-1].append(stored)
        return groups

    def _insert(self, history: list[StoredBasket], stored: StoredBasket) -> None:
        """Insert a basket before the oldest timed one that sorts after it, or at the end."""
        behind = [position for position, other in enumerate(history) if other.is_after(stored)]
        position = min(behind, default=len(history))
        stored.starts = position == 0 or self._is_full_at(history, position - 1)
        history.insert(position, stored)

    def _is_full_at(self, history: list[StoredBasket], position: int) -> bool:
        """Return whether the group of the basket at this position is full."""
        owners = [group for group in self._split(history) for _ in group]
        return len(owners[position]) >= self.params.group_size


def _remove(history: list[StoredBasket], stored: StoredBasket) -> None:
    """Remove a basket. If it started a group that has others, the next basket starts it."""
    position = history.index(stored)
    if stored.starts and position + 1 < len(history):
        history[position + 1].starts = True
    del history[position]


def _shown(stored: StoredBasket) -> Basket:
    return Basket(stored.basket, stored.time, tuple(sorted(stored.items, key=id_key)))


def _distance(x: Mapping[Id, float], y: Mapping[Id, float]) -> float:
    return sqrt(fsum((x.get(item, 0.0) - y.get(item, 0.0)) ** 2 for item in x.keys() | y.keys()))


def _mean(vectors: Sequence[Mapping[Id, float]]) -> dict[Id, float]:
    items = {item for vector in vectors for item in vector}
    return {item: fsum(vector.get(item, 0.0) for vector in vectors) / len(vectors) for item in items}


def _highest(scores: Mapping[Id, Number], n: int) -> list[tuple[Id, Number]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], id_key(pair[0])))[:n]
