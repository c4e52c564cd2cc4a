"""The laws that every engine keeps, whatever it stores its baskets in: a reusable suite.

Random events go into an engine and into the oracle. The engine must then hold what the oracle holds, and be equal,
bit for bit, to a fresh engine that only ever saw the remainder, in another order and under other codes.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import strategies as st
from tests.oracle import Oracle

from unbasket import Basket, Params, Recommender
from unbasket.domain.ids import Id

Factory = Callable[[Params], Recommender]


class Learn(NamedTuple):
    """A basket arrives, or is edited."""

    user: Id
    items: tuple[Id, ...]
    basket: Id
    time: int | None


class Forget(NamedTuple):
    """A deletion request."""

    user: Id
    basket: Id | None
    item: Id | None


class Hide(NamedTuple):
    """Items are out of stock."""

    items: tuple[Id, ...]


class Show(NamedTuple):
    """Items are back."""

    items: tuple[Id, ...]


class Suppress(NamedTuple):
    """A user does not want to be recommended an item."""

    user: Id
    item: Id


class Allow(NamedTuple):
    """They take it back."""

    user: Id
    item: Id


class Rename(NamedTuple):
    """A guest becomes an account."""

    user: Id
    other: Id


Event = Learn | Forget
"""What happens to a history."""

ShopEvent = Event | Hide | Show | Suppress | Allow | Rename
"""Whatever can happen in a shop."""


class World(NamedTuple):
    """The ids that events are made of: few, so that they meet, and of both types."""

    timed: tuple[Id, ...]
    untimed: tuple[Id, ...]
    mixed: tuple[Id, ...]
    baskets: tuple[Id, ...]
    items: tuple[Id, ...]

    @property
    def users(self) -> tuple[Id, ...]:
        return self.timed + self.untimed + self.mixed

    def events(self, most: int) -> st.SearchStrategy[list[Event]]:
        """Lists of events, two learns to a forget."""
        return st.lists(st.one_of(self._learns(), self._learns(), self._forgets()), min_size=1, max_size=most)

    def shop_events(self, most: int) -> st.SearchStrategy[list[ShopEvent]]:
        """Lists of whatever can happen in a shop; most of it happens to histories."""
        histories = st.one_of(self._learns(), self._learns(), self._learns(), self._forgets(), self._forgets())
        others = self._restocks() | self._wishes() | self._renames()
        return st.lists(st.one_of(histories, histories, others), min_size=1, max_size=most)

    def _learns(self) -> st.SearchStrategy[Learn]:
        times = st.integers(-2, 4)
        untimed: st.SearchStrategy[int | None] = st.none()
        items = st.lists(st.sampled_from(self.items), min_size=1, max_size=4).map(tuple)

        def learn(user: Id) -> st.SearchStrategy[Learn]:
            time = times if user in self.timed else untimed if user in self.untimed else times | untimed
            return st.builds(Learn, st.just(user), items, st.sampled_from(self.baskets), time)

        return st.sampled_from(self.users).flatmap({user: learn(user) for user in self.users}.__getitem__)

    def _forgets(self) -> st.SearchStrategy[Forget]:
        basket, item = st.none() | st.sampled_from(self.baskets), st.none() | st.sampled_from(self.items)
        return st.builds(Forget, st.sampled_from(self.users), basket, item)

    def _restocks(self) -> st.SearchStrategy[Hide | Show]:
        items = st.lists(st.sampled_from((*self.items, "nobody has this")), max_size=3).map(tuple)
        return st.builds(Hide, items) | st.builds(Show, items)

    def _wishes(self) -> st.SearchStrategy[Suppress | Allow]:
        user, item = st.sampled_from(self.users), st.sampled_from((*self.items, "nobody has this"))
        return st.builds(Suppress, user, item) | st.builds(Suppress, user, item) | st.builds(Allow, user, item)

    def _renames(self) -> st.SearchStrategy[Rename]:
        """Among users of a kind, whose baskets all have times, or none of them has."""
        pairs = [pair for kind in (self.timed, self.untimed, self.mixed) for pair in permutations(kind, 2)]
        return st.sampled_from(pairs).map(lambda pair: Rename(*pair))


MIXED_IDS = World(("t", 2), (-1,), ("m", 10**12), (1, "b", 2, "a", 3, "1"), ("x", 1, "ä", 2, "1", "z", 7))
TEXT_IDS = World(("t", "s", "r"), ("u", "v"), (), ("a", "b", "c", "d", "e", "f"), ("p", "q", "x", "y", "z"))

SOME: tuple[Id, ...] = ("x", 1, "1", "z", "p", "nobody has this")
CART: tuple[Id, ...] = ("x", 7, "nobody has this either")
FILTERS: list[dict[str, Any]] = [
    {"only_new": True},
    {"only": SOME},
    {"only": SOME, "exclude": ["x"], "only_new": True},
    {"only": SOME, "cart": CART},
]

PARAMS = st.builds(
    lambda pool, **others: Params(**others, **pool),
    pool=st.just({}) | st.fixed_dictionaries({"pool": st.integers(1, 4)}, optional={"pool_seed": st.integers(0, 3)}),
    group_size=st.integers(1, 4),
    basket_decay=st.sampled_from([1.0, 0.9, 0.5]),
    group_decay=st.sampled_from([1.0, 0.7, 0.3]),
    neighbors=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)


@pytest.fixture(autouse=True, scope="module")
def short_histories_count_as_long() -> Iterator[None]:
    """Checkpoints and sets of basket ids are for long histories; random ones are short."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.histories.CHECKPOINT_EVERY", 2)
        patch.setattr("unbasket.engine.histories.LONG", 3)
        yield


@pytest.fixture(autouse=True, scope="module")
def parts_are_small() -> Iterator[None]:
    """The few users of a law are in several parts of the index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.state.SHARD_SIZE", 4)
        yield


def apply(engine: Recommender | Oracle, events: Sequence[ShopEvent]) -> None:
    """Apply the events."""
    for event in events:
        match event:
            case Learn(user, items, basket, time):
                engine.learn(user, list(items), basket=basket, time=time)
            case Forget(user, basket, item):
                engine.forget(user, basket=basket, item=item)
            case Hide(items):
                engine.hide(items)
            case Show(items):
                engine.show(items)
            case Suppress(user, item):
                if user in engine.users():  # else it is an error
                    engine.suppress(user, item)
            case Allow(user, item):
                engine.allow(user, item)
            case Rename(user, other):
                if user in engine.users() and not _basket_ids(engine, user) & _basket_ids(engine, other):
                    engine.rename(user, other)


def _basket_ids(engine: Recommender | Oracle, user: Id) -> set[Id]:
    return {basket.basket for basket in engine.history(user)} if user in engine.users() else set()


def law_of_the_oracle(engine: Recommender, oracle: Oracle) -> None:
    """The engine holds what the equations say: histories and groups exactly, numbers within the rounding."""
    assert engine.users() == oracle.users()
    assert engine.hidden() == oracle.hidden()
    assert engine.popular(100) == oracle.popular(100)
    assert engine.popular(3, only=SOME) == oracle.popular(3, SOME)
    for since in (-2, 0, 3, 5):
        assert engine.popular(100, since=since) == oracle.popular(100, since=since)
    for user in oracle.users():
        assert [tuple(basket) for basket in engine.history(user)] == [
            (basket.basket, basket.time, tuple(sorted(basket.items, key=_id_key))) for basket in oracle.history(user)
        ]
        assert engine.groups(user) == [len(group) for group in oracle.groups(user)]
        assert engine.suppressed(user) == oracle.suppressed(user)
        assert engine.vector(user) == pytest.approx(oracle.vector(user), abs=1e-9)
        _check_neighbors(engine, oracle, user)
        if engine.params.neighbors >= len(oracle.pool()):  # no neighbor is left out by a rounded distance
            expected = dict(oracle.recommend(user, 100))
            for item, score in engine.recommend(user, n=100):
                assert score == pytest.approx(expected.pop(item), abs=1e-6)
            assert all(score < 1e-6 for score in expected.values())
            _check_filters(engine, oracle, user)


def _check_filters(engine: Recommender, oracle: Oracle, user: Id) -> None:
    """Filters choose among the scores; a cart is a basket that was learned, and is not recommended itself."""
    bought = {item for basket in oracle.history(user) for item in basket.items}
    new = {item for item in engine.items() if item not in bought}
    carted = oracle.with_cart(user, CART)
    offered = {item for item in SOME if item not in CART}
    for found, expected in (
        (engine.recommend(user, 100, only=SOME), oracle.recommend(user, 100, SOME)),
        (engine.recommend(user, 100, only_new=True), oracle.recommend(user, 100, new)),
        (engine.recommend(user, 100, only=SOME, cart=CART), carted.recommend(user, 100, offered)),
    ):
        assert dict(found) == pytest.approx({item: score for item, score in expected if score > 1e-6}, abs=1e-6)


def law_of_the_cart(engine: Recommender, user: Id, cart: Sequence[Id]) -> None:
    """With a cart, an engine says what it would say if the cart were the user's newest basket, bit for bit."""
    before = engine.digest()
    asked = engine.recommend(user, 100, cart=cart), engine.recommend(user, 2, only=SOME, only_new=True, cart=cart)
    assert engine.digest() == before
    items = engine.items()
    bought = [item for basket in engine.history(user) for item in basket.items] if user in engine else []
    engine.learn(user, cart, basket="the cart, an id that no basket has")
    learned = (
        engine.recommend(user, 100, exclude=cart),
        engine.recommend(user, 2, only=SOME, exclude=[*cart, *bought]),
    )
    engine.forget(user, basket="the cart, an id that no basket has")
    assert engine.items() == items
    assert engine.digest() == before
    assert asked == learned


def _check_neighbors(engine: Recommender, oracle: Oracle, user: Id) -> None:
    k = engine.params.neighbors
    found = engine.similar_users(user, k)
    distances = {other: oracle.distance(user, other) for other in oracle.pool() if other != user}
    assert len(found) == min(k, len(distances))
    for other, distance in found:
        assert distance == pytest.approx(distances.pop(other), abs=1e-6)
    assert not distances or not found or min(distances.values()) > max(d for _, d in found) - 1e-6


def _id_key(value: Id) -> tuple[bool, Id]:
    return isinstance(value, str), value


def law_of_equality(engine: Recommender, other: Recommender) -> None:
    """Two engines that hold the same are equal, bit for bit, in everything that they say."""
    assert engine.digest() == other.digest()
    assert engine.users() == other.users()
    assert engine.items() == other.items()
    assert engine.hidden() == other.hidden()
    assert engine.popular(100) == other.popular(100)
    for user in engine.users():
        assert engine.history(user) == other.history(user)
        assert engine.suppressed(user) == other.suppressed(user)
        assert engine.recommend_for([["x"]], user=user) == other.recommend_for([["x"]], user=user)
        assert engine.groups(user) == other.groups(user)
        assert engine.vector(user) == other.vector(user)
        assert engine.similar_users(user, 100) == other.similar_users(user, 100)
        assert engine.recommend(user, 100) == other.recommend(user, 100)
        for filters in FILTERS:
            assert engine.recommend(user, 2, **filters) == other.recommend(user, 2, **filters)
    for filters in ({}, *FILTERS[:-1]):
        assert engine.recommend_many(n=3, **filters) == other.recommend_many(n=3, **filters)
        expected = {user: engine.recommend(user, 3, **filters) for user in engine.users()}
        assert engine.recommend_many(n=3, **filters) == expected
    assert engine.popular(2, exclude=["x"], only=SOME) == other.popular(2, exclude=["x"], only=SOME)
    assert engine.recommend_for([["x"], ["y", "unheard of"]]) == other.recommend_for([["x"], ["y", "unheard of"]])


def law_of_retraining(engine: Recommender, make: Factory, seed: int) -> None:
    """The engine equals a fresh one that was given only the remainder, in another order, under other codes."""
    assert engine.verify() == (True, len(engine), ())
    shuffle = random.Random(seed)
    fresh = make(engine.params)
    occupy_codes(fresh)
    if engine.params.grouping == "fixed":
        _learn_remainder(engine, fresh, shuffle)
    else:
        _fit_remainder(engine, fresh, shuffle)
    fresh.forget("somebody else")
    fresh.hide(engine.hidden())
    for user in shuffle.sample(engine.users(), len(engine.users())):
        for item in shuffle.sample(engine.suppressed(user), len(engine.suppressed(user))):
            fresh.suppress(user, item)
    law_of_equality(engine, fresh)


def occupy_codes(engine: Recommender) -> None:
    """Take codes, so that those who come later get other ones than in an engine without this."""
    for number in range(3):
        engine.learn("somebody else", [f"something else {number}", "x", 1], basket=number)


def _learn_remainder(engine: Recommender, fresh: Recommender, shuffle: random.Random) -> None:
    """Timed baskets in any order, untimed ones in theirs; users interleaved."""
    queues = []
    for user in engine.users():
        baskets = [(user, basket) for basket in engine.history(user)]
        if all(basket.time is not None for _, basket in baskets):
            shuffle.shuffle(baskets)
        queues.append(baskets)
    while queues:
        queue = shuffle.choice(queues)
        user, (basket, time, items) = queue.pop(0)
        fresh.learn(user, shuffle.sample(items, len(items)), basket=basket, time=time)
        queues = [queue for queue in queues if queue]


def _fit_remainder(engine: Recommender, fresh: Recommender, shuffle: random.Random) -> None:
    """Through frames, which can carry the surviving group boundaries."""
    for timed in (True, False):
        rows = []
        for user in shuffle.sample(engine.users(), len(engine.users())):
            numbers = [number for number, size in enumerate(engine.groups(user)) for _ in range(size)]
            history = engine.history(user)
            if (history[0].time is not None) == timed:
                rows += [_row(user, basket, number) for basket, number in zip(history, numbers, strict=True)]
        if rows:
            frame = pl.DataFrame(rows, orient="row", schema=["user", "basket", "item", "time", "group"])
            fresh.fit(frame if timed else frame.drop("time"), group="group")


def _row(user: Id, basket: Basket, group: int) -> tuple[Id, Id, list[Id], int | None, int]:
    return user, basket.basket, list(basket.items), basket.time, group
