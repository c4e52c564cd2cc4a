"""A naive model of the whole engine, written from the paper's equations: slow, obvious, plain Python.

Everything fast must agree with it. It keeps nothing but each user's baskets and computes the rest when asked.
Its input is taken as valid; an unknown user is a KeyError.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import deepcopy
from dataclasses import dataclass
from hashlib import blake2b
from math import fsum, sqrt
from typing import NamedTuple, TypeVar

import msgspec

from unbasket.params import Params

Id = int | str
Number = TypeVar("Number", int, float)


def id_key(external: Id) -> tuple[int, int, str]:
    """Sort key of the one order of ids: ints before strs, each in their natural order."""
    return (0, external, "") if isinstance(external, int) else (1, 0, external)


def priority(seed: int, user: Id) -> int:
    """The number by which a user gets into the pool, if it is small enough."""
    key, person = seed.to_bytes(8, "big"), b"unbasket pool"
    return int(blake2b(msgspec.msgpack.encode(user), digest_size=8, key=key, person=person).hexdigest(), 16)


def group_vector(baskets: Sequence[AbstractSet[Id]], r_b: float) -> dict[Id, float]:
    """Eq. groupvector: the sum of r_b^(tau-i) * b_i over tau, for the tau baskets that the group has."""
    tau = len(baskets)
    items = {item for basket in baskets for item in basket}
    return {
        item: fsum(r_b ** (tau - i) for i, basket in enumerate(baskets, start=1) if item in basket) / tau
        for item in items
    }


def user_vector(groups: Sequence[Sequence[AbstractSet[Id]]], r_b: float, r_g: float) -> dict[Id, float]:
    """Eq. uservector: the sum of r_g^(k-j) * g_j over k, for the k groups."""
    k = len(groups)
    vectors = [group_vector(group, r_b) for group in groups]
    items = {item for vector in vectors for item in vector}
    return {
        item: fsum(r_g ** (k - j) * vector.get(item, 0.0) for j, vector in enumerate(vectors, start=1)) / k
        for item in items
    }


class Basket(NamedTuple):
    """A basket as it is shown: items in id order."""

    basket: Id
    time: int | None
    items: tuple[Id, ...]


@dataclass
class Entry:
    """A basket as it is kept. `starts` says that it begins a group; only the varying grouping looks at it."""

    basket: Id
    time: int | None
    items: set[Id]
    starts: bool = False

    def is_after(self, other: "Entry") -> bool:
        """Whether both are timed and this one belongs behind the other."""
        if self.time is None or other.time is None:
            return False
        return (self.time, id_key(self.basket)) > (other.time, id_key(other.basket))


class Oracle:
    """Learns, forgets and recommends like the engine, by recomputing everything at every question."""

    def __init__(self, params: Params) -> None:
        self.params = params
        self._histories: dict[Id, list[Entry]] = {}
        self._hidden: set[Id] = set()
        self._suppressed: dict[Id, set[Id]] = {}

    def rename(self, user: Id, other: Id) -> None:
        """Learn a user's baskets under another id, and forget the user."""
        for basket, time, items in self.history(user):
            self.learn(other, items, basket, time)
        for item in self.suppressed(user):
            self.suppress(other, item)
        self.forget(user)

    def suppress(self, user: Id, item: Id) -> None:
        """Never recommend an item to a user."""
        self._suppressed.setdefault(user, set()).add(item)

    def allow(self, user: Id, item: Id) -> None:
        """Take that back."""
        self._suppressed.get(user, set()).discard(item)

    def suppressed(self, user: Id) -> list[Id]:
        """What a user has suppressed, by id; it goes with their last basket."""
        return sorted(self._suppressed.get(user, ()), key=id_key)

    def hide(self, items: Iterable[Id]) -> None:
        """Recommend these items to nobody."""
        self._hidden |= set(items)

    def show(self, items: Iterable[Id]) -> None:
        """Recommend these items again."""
        self._hidden -= set(items)

    def hidden(self) -> list[Id]:
        """What is hidden, by id."""
        return sorted(self._hidden, key=id_key)

    def learn(self, user: Id, items: Iterable[Id], basket: Id, time: int | None = None) -> None:
        """Add a basket, or edit the one of this id: in place unless a different time moves it."""
        history = self._histories.setdefault(user, [])
        known = [entry for entry in history if entry.basket == basket]
        if known and time in (None, known[0].time):
            known[0].items = set(items)
            return
        for entry in known:
            _remove(history, entry)
        self._insert(history, Entry(basket, time, set(items)))

    def forget(self, user: Id, basket: Id | None = None, item: Id | None = None) -> None:
        """Forget the user, a basket, an item of a basket or an item of all baskets, if it is there."""
        history = self._histories.get(user, [])
        for entry in list(history):
            if basket is None or entry.basket == basket:
                entry.items -= entry.items if item is None else {item}
                if not entry.items:
                    _remove(history, entry)
        if not history:
            self._histories.pop(user, None)
            self._suppressed.pop(user, None)

    def users(self) -> list[Id]:
        return sorted(self._histories, key=id_key)

    def history(self, user: Id) -> list[Basket]:
        """The user's baskets, oldest first."""
        return [_shown(entry) for entry in self._histories[user]]

    def groups(self, user: Id) -> list[list[Basket]]:
        """The user's baskets, oldest first, split into groups."""
        return [[_shown(entry) for entry in group] for group in self._split(self._histories[user])]

    def vector(self, user: Id) -> dict[Id, float]:
        groups = [[entry.items for entry in group] for group in self._split(self._histories[user])]
        return user_vector(groups, self.params.basket_decay, self.params.group_decay)

    def distance(self, a: Id, b: Id) -> float:
        """Euclidean distance of two users over the items of either."""
        x, y = self.vector(a), self.vector(b)
        return sqrt(fsum((x.get(item, 0.0) - y.get(item, 0.0)) ** 2 for item in x.keys() | y.keys()))

    def pool(self) -> list[Id]:
        """The users among whom neighbors are looked for: those with the smallest lots, or all; equal lots by id."""
        seed = self.params.pool_seed or 0
        return sorted(self.users(), key=lambda user: (priority(seed, user), id_key(user)))[: self.params.pool]

    def neighbors_of(self, user: Id, k: int) -> list[tuple[Id, float]]:
        """The k nearest other users of the pool and their distances, nearest first, equally near ones by id."""
        others = [(other, self.distance(user, other)) for other in self.pool() if other != user]
        return sorted(others, key=lambda other: (other[1], id_key(other[0])))[:k]

    def prediction(self, user: Id) -> dict[Id, float]:
        """Section 2.2: p = alpha * own vector + (1 - alpha) * mean of the neighbors' vectors.

        The mean is over the neighbors there are; with none at all their part is zero.
        """
        alpha = self.params.alpha
        own = self.vector(user)
        mean = _mean([self.vector(other) for other, _ in self.neighbors_of(user, self.params.neighbors)])
        return {
            item: alpha * own.get(item, 0.0) + (1 - alpha) * mean.get(item, 0.0) for item in own.keys() | mean.keys()
        }

    def recommend(self, user: Id, n: int, allowed: Collection[Id] | None = None) -> list[tuple[Id, float]]:
        """The n items of the highest scores, equal scores by id; of those that are allowed, if that is said."""
        scores = self._offered(self.prediction(user), allowed)
        return _highest({item: score for item, score in scores.items() if item not in self.suppressed(user)}, n)

    def with_cart(self, user: Id, cart: Collection[Id]) -> "Oracle":
        """An oracle that has learned the cart as the user's newest basket, and whatever else this one holds."""
        other = Oracle(self.params)
        other._histories, other._hidden = deepcopy(self._histories), self._hidden
        other._suppressed = self._suppressed
        other.learn(user, cart, basket="the cart, an id that no basket has")
        return other

    def popular(self, n: int, allowed: Collection[Id] | None = None, since: int | None = None) -> list[tuple[Id, int]]:
        """The n items that are in the most remembered baskets of all users, equal counts by id.

        With `since`, only baskets of that time or later count.
        """
        entries = [entry for history in self._histories.values() for entry in history]
        if since is not None:
            entries = [entry for entry in entries if entry.time is not None and entry.time >= since]
        return _highest(self._offered(Counter(item for entry in entries for item in entry.items), allowed), n)

    def _offered(self, scores: Mapping[Id, Number], allowed: Collection[Id] | None) -> dict[Id, Number]:
        """The scores of what is not hidden and, if that is said, allowed."""
        return {
            item: score
            for item, score in scores.items()
            if item not in self._hidden and (allowed is None or item in allowed)
        }

    def _split(self, history: list[Entry]) -> list[list[Entry]]:
        """The groups: runs of m from the oldest on, or whatever runs the start flags mark."""
        groups: list[list[Entry]] = []
        for position, entry in enumerate(history):
            starts = position % self.params.group_size == 0 if self.params.grouping == "fixed" else entry.starts
            if starts:
                groups.append([])
            groups[-1].append(entry)
        return groups

    def _insert(self, history: list[Entry], entry: Entry) -> None:
        """Put a basket directly before the oldest timed one that belongs behind it, or else at the end."""
        behind = [position for position, other in enumerate(history) if other.is_after(entry)]
        position = min(behind, default=len(history))
        entry.starts = position == 0 or self._is_full_at(history, position - 1)
        history.insert(position, entry)

    def _is_full_at(self, history: list[Entry], position: int) -> bool:
        """Whether the group of the basket at this position has no room for another."""
        owners = [group for group in self._split(history) for _ in group]
        return len(owners[position]) >= self.params.group_size


def _remove(history: list[Entry], entry: Entry) -> None:
    """Take a basket out. If it started a group that goes on, the next basket starts it now."""
    position = history.index(entry)
    if entry.starts and position + 1 < len(history):
        history[position + 1].starts = True
    del history[position]


def _shown(entry: Entry) -> Basket:
    return Basket(entry.basket, entry.time, tuple(sorted(entry.items, key=id_key)))


def _mean(vectors: Sequence[Mapping[Id, float]]) -> dict[Id, float]:
    items = {item for vector in vectors for item in vector}
    return {item: fsum(vector.get(item, 0.0) for vector in vectors) / len(vectors) for item in items}


def _highest(scores: Mapping[Id, Number], n: int) -> list[tuple[Id, Number]]:
    return sorted(scores.items(), key=lambda pair: (-pair[1], id_key(pair[0])))[:n]
