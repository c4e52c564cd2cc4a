"""A naive model of the whole engine, written from the paper's equations: slow, obvious, plain Python.

Everything fast must agree with it. It stores each user's baskets and computes the rest in every query. Its input is
taken as valid, but for an id that does not spell one of the type held: a `RefusedIdError`. An unknown user is a
KeyError.

With `alpha="learned"` (docs/engine.md), the sums that alpha and the factors come from are whole numbers, in the fixed
point of the engine: they, and their ratios, have the engine's bits.
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


ONE = 2**24  # the fixed-point weight 1
FACTOR_ONE = 2**16  # the fixed-point factor 1
PRIOR_USERS, PRIOR_ALPHA = 20, round(0.8 * ONE)  # alpha of a shop without users, and how many users it is worth


def total_decay(n: int, r: float) -> float:
    """Return D(n), the sum of r^lag over n baskets: d of an item that is in all of them."""
    return fsum(r**lag for lag in range(n))


def decayed(baskets: Sequence[AbstractSet[Id]], r: float) -> dict[Id, float]:
    """Return d, the sum of r^lag over the baskets with an item; the newest basket has the lag 0."""
    items = {item for basket in baskets for item in basket}
    return {item: fsum(r**lag for lag, basket in enumerate(reversed(baskets)) if item in basket) for item in items}


def fixed_vector(baskets: Sequence[AbstractSet[Id]], r: float) -> dict[Id, int]:
    """Return the vector of the search for neighbors, d/n; no item of the history has the weight 0."""
    return {item: max(1, round(d / len(baskets) * ONE)) for item, d in decayed(baskets, r).items()}


def scaled_vector(baskets: Sequence[AbstractSet[Id]], r: float) -> dict[Id, int]:
    """Return u = d / D(n), as the vector times n / D(n)."""
    n = len(baskets)
    scale = round(n / total_decay(n, r) * FACTOR_ONE)
    return {item: weight * scale // FACTOR_ONE for item, weight in fixed_vector(baskets, r).items()}


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

    def _baskets(self) -> list[list[set[Id]]]:
        return [[stored.items for stored in history] for history in self._histories.values()]

    def alpha(self) -> int:
        """Return alpha: how much of an item's weight before a user's last basket comes true in that basket.

        It is the slope of the least squares through zero, sum(x y) / sum(x x), over all users with two baskets or more,
        and shrinks towards 0.8 as if 20 further users had that.
        """
        xy = xx = users = 0
        for *earlier, last in self._baskets():
            if earlier:
                whole = total_decay(len(earlier), self.params.group_decay)
                weights = decayed(earlier, self.params.group_decay)
                before = {item: round(d / whole * ONE) for item, d in weights.items()}
                users += 1
                xy += sum(x for item, x in before.items() if item in last)
                xx += sum(x * x for x in before.values()) // ONE
        slope = min(xy * ONE // xx, ONE) if xx else 0
        return (users * slope + PRIOR_USERS * PRIOR_ALPHA) // (users + PRIOR_USERS)

    def factors(self) -> dict[Id, int]:
        """Return f of each item: repurchases per weight of it that faded, relative to those of all items.

        f_i = (C_i - U_i + kappa rho) / (C_i - S_i + kappa) / rho, where rho = sum(C - U) / sum(C - S).
        """
        repeats: Counter[Id] = Counter()  # C - U
        faded: Counter[Id] = Counter()  # C - S
        for baskets in self._baskets():
            for one, weight in fixed_vector(baskets, self.params.group_decay).items():
                count = sum(one in basket for basket in baskets)
                repeats[one] += count - 1
                faded[one] += count * ONE - len(baskets) * weight
        all_repeats, all_faded = sum(repeats.values()), max(0, sum(faded.values()))
        if self.params.repurchase is None or all_repeats == 0 or all_faded == 0:
            return dict.fromkeys(repeats, FACTOR_ONE)
        kappa = round(self.params.repurchase * ONE)
        return {
            item: (repeats[item] * (all_faded // all_repeats) + kappa) * FACTOR_ONE // (max(0, faded[item]) + kappa)
            for item in repeats
        }

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
        that too few of them have is one that none of them has. The factor of an item that too few people bought is 1.
        """
        buyers = Counter(item for other in stored.pool() for item in stored.vector(other))
        part = {item: weight for item, weight in self.vector(user).items() if buyers[item] >= privacy.buyers}
        near = self.nearest(user, part)
        having = Counter(item for other in near for item in self.vector(other))
        shared = {item for item, count in having.items() if count >= privacy.neighbors}
        return self._mixture(user, near, shared, privacy.buyers)

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
        near = [other for other, _ in self.neighbors_of(user, self.params.neighbors)]
        return self._mixture(user, near, {item for other in near for item in self.vector(other)})

    def _mixture(self, user: Id, near: list[Id], shared: set[Id], buyers: int = 0) -> dict[Id, float]:
        """Return the prediction with these neighbors, of whom only `shared` items count.

        With learned weights it is alpha * f * u + (1 - alpha) * mean of the neighbors' u, where f is 1 for an item that
        fewer than `buyers` people bought.
        """
        if self.params.alpha == "learned":
            alpha, factors = self.alpha() / ONE, self.factors()
            bought_by = Counter(item for other in self.users() for item in self.vector(other))
            factors |= {item: FACTOR_ONE for item, count in bought_by.items() if count < buyers}
            own = {item: factors[item] / FACTOR_ONE * weight / ONE for item, weight in self.scaled(user).items()}
            vectors = [{item: weight / ONE for item, weight in self.scaled(other).items()} for other in near]
        else:
            alpha, own, vectors = self.params.alpha, self.vector(user), [self.vector(other) for other in near]
        mean = {item: weight for item, weight in _mean(vectors).items() if item in shared}
        return {
            item: alpha * own.get(item, 0.0) + (1 - alpha) * mean.get(item, 0.0) for item in own.keys() | mean.keys()
        }

    def scaled(self, user: Id) -> dict[Id, int]:
        """Return the user's u."""
        return scaled_vector([stored.items for stored in self._histories[user]], self.params.group_decay)

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
