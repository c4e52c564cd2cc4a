"""A reusable suite of laws that every engine obeys, in memory, durable or on Spark.

Random events go into an engine and into the oracle. The engine must then agree with the oracle, and be equal, bit for
bit, to a fresh engine that only ever saw the remaining baskets, in another order and under other codes.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any, NamedTuple

import polars as pl
import pytest
from hypothesis import strategies as st
from tests.oracle import Oracle, RefusedIdError

from unbasket import Basket, Params, Recommender
from unbasket.domain.ids import Id, Kind
from unbasket.errors import InvalidIdError

Factory = Callable[..., Recommender]


class Learn(NamedTuple):
    """A basket to add or edit."""

    user: Id
    items: tuple[Id, ...]
    basket: Id
    time: int | None


class Forget(NamedTuple):
    """Something to forget."""

    user: Id
    basket: Id | None
    item: Id | None


class Hide(NamedTuple):
    """Items to hide."""

    items: tuple[Id, ...]


class Show(NamedTuple):
    """Items to show."""

    items: tuple[Id, ...]


class Suppress(NamedTuple):
    """An item never to recommend to a user."""

    user: Id
    item: Id


class Allow(NamedTuple):
    """A suppressed item to recommend again."""

    user: Id
    item: Id


class Rename(NamedTuple):
    """A user to merge into another."""

    user: Id
    other: Id


Event = Learn | Forget
"""An event that changes a history."""

ShopEvent = Event | Hide | Show | Suppress | Allow | Rename
"""Any event of a shop."""


class World(NamedTuple):
    """The ids of random events: few, to make them collide."""

    timed: tuple[Id, ...]
    untimed: tuple[Id, ...]
    mixed: tuple[Id, ...]
    baskets: tuple[Id, ...]
    items: tuple[Id, ...]

    @property
    def users(self) -> tuple[Id, ...]:
        return self.timed + self.untimed + self.mixed

    @property
    def _unknown_item(self) -> Id:
        return 10**9 if isinstance(self.items[0], int) else "unknown"

    def events(self, most: int) -> st.SearchStrategy[list[Event]]:
        """Return lists of events, two learns to a forget."""
        return st.lists(st.one_of(self._learns(), self._learns(), self._forgets()), min_size=1, max_size=most)

    def shop_events(self, most: int) -> st.SearchStrategy[list[ShopEvent]]:
        """Return lists of any events of a shop; most change histories."""
        histories = st.one_of(self._learns(), self._learns(), self._learns(), self._forgets(), self._forgets())
        others = self._availability_changes() | self._suppressions() | self._renames()
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

    def _availability_changes(self) -> st.SearchStrategy[Hide | Show]:
        items = st.lists(st.sampled_from((*self.items, self._unknown_item)), max_size=3).map(tuple)
        return st.builds(Hide, items) | st.builds(Show, items)

    def _suppressions(self) -> st.SearchStrategy[Suppress | Allow]:
        user, item = st.sampled_from(self.users), st.sampled_from((*self.items, self._unknown_item))
        return st.builds(Suppress, user, item) | st.builds(Suppress, user, item) | st.builds(Allow, user, item)

    def _renames(self) -> st.SearchStrategy[Rename]:
        """Return renames among users of a kind: all baskets timed, none timed, or mixed."""
        pairs = [pair for kind in (self.timed, self.untimed, self.mixed) for pair in permutations(kind, 2)]
        return st.sampled_from(pairs).map(lambda pair: Rename(*pair))


NUMBER_IDS = World((10, 2, 2**62 + 1), (-1, 8), (11, 10**12), (1, 10, 2, 9, 3, 0), (5, 1, -2, 20, 7, 2**62))
TEXT_IDS = World(("t", "s", "r"), ("u", "v"), (), ("a", "b", "c", "d", "e", "f"), ("p", "q", "x", "y", "z"))
SPELLED_IDS = World(
    (2, "2", "t", "02"),
    (-1, "-1"),
    (10**12, "1000000000000", "m"),
    (1, "1", 2, "2", "b", "01"),
    (1, "1", "x", 7, "7", "ä"),
)
"""Ids of both types: the first of a kind decides, and then the same id comes in two spellings, or is refused."""


def some_of(engine: Recommender) -> list[Id]:
    """Return some items of an engine, and an unknown one."""
    return [*engine.items()[::2], 10**15]


def cart_of(engine: Recommender) -> list[Id]:
    """Return a cart with items of an engine, and an unknown one."""
    return [*engine.items()[:2], 10**15 + 1]


def filters_of(engine: Recommender) -> list[dict[str, Any]]:
    """Return filters for recommendations; the last one has a cart."""
    some = some_of(engine)
    return [
        {"only_new": True},
        {"only": some},
        {"only": some, "exclude": some[:1], "only_new": True},
        {"only": some, "cart": cart_of(engine)},
    ]


POOLS: st.SearchStrategy[dict[str, int]] = st.just({}) | st.fixed_dictionaries(
    {"pool": st.integers(1, 4)}, optional={"pool_seed": st.integers(0, 3)}
)

NUMBERED = st.builds(
    lambda pool, **others: Params(**others, **pool),
    pool=POOLS,
    group_size=st.integers(1, 4),
    basket_decay=st.sampled_from([1.0, 0.9, 0.5]),
    group_decay=st.sampled_from([1.0, 0.7, 0.3]),
    neighbors=st.integers(1, 6),
    alpha=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
)
"""Parameters with a number for alpha."""

LEARNED = st.builds(
    lambda pool, **others: Params(**others, **pool),
    pool=POOLS,
    group_decay=st.sampled_from([1.0, 0.95, 0.7, 0.5]),
    neighbors=st.integers(1, 6),
    repurchase=st.sampled_from([1.5, 0.01, None]),
)
"""Parameters of a model that sets its own weights."""

PARAMS = NUMBERED | LEARNED


@pytest.fixture(autouse=True, scope="module")
def short_histories_count_as_long() -> Iterator[None]:
    """Lower the limits of checkpoints and sets of basket ids, which short random histories would not reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.histories.CHECKPOINT_EVERY", 2)
        patch.setattr("unbasket.engine.histories.LONG", 3)
        yield


@pytest.fixture(autouse=True, scope="module")
def shards_are_small() -> Iterator[None]:
    """Spread the few users of a law over several shards of the index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("unbasket.engine.state.SHARD_SIZE", 4)
        yield


def apply(engine: Recommender | Oracle, events: Sequence[ShopEvent]) -> list[ShopEvent]:
    """Apply the events; return those that were refused, since an id does not spell one of the type held."""
    refused = []
    for event in events:
        try:
            _apply(engine, event)
        except (InvalidIdError, RefusedIdError):
            refused.append(event)
    return refused


def _apply(engine: Recommender | Oracle, event: ShopEvent) -> None:
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
            if user in engine:  # else it is an error
                engine.suppress(user, item)
        case Allow(user, item):
            engine.allow(user, item)
        case Rename(user, other):
            if str(user) != str(other) and user in engine and not _common_baskets(engine, user, other):
                engine.rename(user, other)


def _common_baskets(engine: Recommender | Oracle, user: Id, other: Id) -> set[Id]:
    names = [{basket.basket for basket in engine.history(each)} if each in engine else set() for each in (user, other)]
    return names[0] & names[1]


def law_of_the_oracle(engine: Recommender, oracle: Oracle) -> None:
    """Check the engine against the equations: histories and groups exactly, numbers within the rounding."""
    assert engine.users() == oracle.users()
    assert engine.hidden() == oracle.hidden()
    assert engine.popular(100) == oracle.popular(100)
    some = some_of(engine)
    assert engine.popular(3, only=some) == oracle.popular(3, some)
    if engine.params.alpha == "learned":
        assert learned_bits(engine) == (oracle.alpha(), oracle.factors())
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
        if engine.params.neighbors >= len(oracle.pool()):  # rounded distances leave no neighbor out
            expected = dict(oracle.recommend(user, 100))
            for item, score in engine.recommend(user, n=100):
                assert score == pytest.approx(expected.pop(item), abs=1e-6)
            assert all(score < 1e-6 for score in expected.values())
            _check_filters(engine, oracle, user)


def learned_bits(engine: Recommender) -> tuple[int, dict[Id, int]] | None:
    """Return alpha and the factors of all items, in fixed point; None with a number for alpha."""
    state = engine._state
    if state.sums is None:
        return None
    return state.sums.alpha(), {item: state.sums.factor(state.items.codes[item], 0) for item in engine.items()}


def _check_filters(engine: Recommender, oracle: Oracle, user: Id) -> None:
    """Check that filters select among the scores, and that a cart counts as a learned basket."""
    bought = {item for basket in oracle.history(user) for item in basket.items}
    new = {item for item in engine.items() if item not in bought}
    some, cart = some_of(engine), cart_of(engine)
    carted = oracle.with_cart(user, cart)
    offered = {item for item in some if item not in cart}
    for found, expected in (
        (engine.recommend(user, 100, only=some), oracle.recommend(user, 100, some)),
        (engine.recommend(user, 100, only_new=True), oracle.recommend(user, 100, new)),
        (engine.recommend(user, 100, only=some, cart=cart), carted.recommend(user, 100, offered)),
    ):
        assert dict(found) == pytest.approx({item: score for item, score in expected if score > 1e-6}, abs=1e-6)


def law_of_the_cart(engine: Recommender, user: Id, cart: Sequence[Id]) -> None:
    """Check that a cart gives the same answer, bit for bit, as learning it as the user's newest basket."""
    before, some = engine.digest(), some_of(engine)
    asked = engine.recommend(user, 100, cart=cart), engine.recommend(user, 2, only=some, only_new=True, cart=cart)
    assert engine.digest() == before
    items = engine.items()
    bought = [item for basket in engine.history(user) for item in basket.items] if user in engine else []
    engine.learn(user, cart, basket=10**15)  # an id that no basket has
    learned = (
        engine.recommend(user, 100, exclude=cart),
        engine.recommend(user, 2, only=some, exclude=[*cart, *bought]),
    )
    engine.forget(user, basket=10**15)
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
    """Check that two engines with the same data give equal answers, bit for bit."""
    assert engine.digest() == other.digest()
    assert engine.users() == other.users()
    assert engine.items() == other.items()
    assert engine.hidden() == other.hidden()
    assert engine.popular(100) == other.popular(100)
    assert engine.learned() == other.learned()
    assert learned_bits(engine) == learned_bits(other)
    some, filters_tried = some_of(engine), filters_of(engine)
    for user in engine.users():
        assert engine.history(user) == other.history(user)
        assert engine.suppressed(user) == other.suppressed(user)
        assert engine.recommend_for([some[:1]], user=user) == other.recommend_for([some[:1]], user=user)
        assert engine.groups(user) == other.groups(user)
        assert engine.vector(user) == other.vector(user)
        assert engine.similar_users(user, 100) == other.similar_users(user, 100)
        assert engine.recommend(user, 100) == other.recommend(user, 100)
        for filters in filters_tried:
            assert engine.recommend(user, 2, **filters) == other.recommend(user, 2, **filters)
    for filters in ({}, *filters_tried[:-1]):
        assert engine.recommend_many(n=3, **filters) == other.recommend_many(n=3, **filters)
        expected = {user: engine.recommend(user, 3, **filters) for user in engine.users()}
        assert engine.recommend_many(n=3, **filters) == expected
    assert engine.popular(2, exclude=some[:1], only=some) == other.popular(2, exclude=some[:1], only=some)
    assert engine.recommend_for([some[:1], [10**9, 10**15]]) == other.recommend_for([some[:1], [10**9, 10**15]])


def law_of_one_person(engine: Recommender) -> None:
    """Check that no id is there twice, and that every spelling of an id finds the same."""
    for ids in (engine.users(), engine.items(), engine.hidden()):
        assert len({str(name) for name in ids}) == len(ids)
        assert len({type(name) for name in ids}) <= 1
    for user in engine.users():
        other = str(user) if isinstance(user, int) else int(user) if re.fullmatch("0|-?[1-9][0-9]*", user) else user
        assert other in engine
        assert engine.history(other) == engine.history(user)
        assert engine.recommend(other, 3) == engine.recommend(user, 3)
        baskets = [str(basket.basket) for basket in engine.history(user)]
        assert len(set(baskets)) == len(baskets)


def law_of_retraining(engine: Recommender, make: Factory, seed: int) -> None:
    """Check that the engine equals a fresh one that saw only the remainder, in another order, under other codes."""
    assert engine.verify() == (True, len(engine), ())
    shuffle = random.Random(seed)
    fresh = make(engine.params, salt=engine.salt)
    other_user = occupy_codes(fresh, engine)
    if engine.params.grouping != "varying":
        _learn_remainder(engine, fresh, shuffle)
    else:
        _fit_remainder(engine, fresh, shuffle)
    fresh.forget(other_user)
    fresh.hide(engine.hidden())
    for user in shuffle.sample(engine.users(), len(engine.users())):
        for item in shuffle.sample(engine.suppressed(user), len(engine.suppressed(user))):
            fresh.suppress(user, item)
    law_of_equality(engine, fresh)


def occupy_codes(fresh: Recommender, engine: Recommender) -> Id:
    """Let a user with ids of an engine's types occupy codes, so that others get other codes there; return the user."""
    held = engine.id_types()

    def typed(kind: Kind, number: int) -> Id:
        return str(number) if held[kind] == "text" else number

    user = typed("user", 10**15)
    for number in range(3):
        items = [typed("item", each) for each in (10**15 + number, 1, 7)]
        fresh.learn(user, items, basket=typed("basket", number))
    return user


def _learn_remainder(engine: Recommender, fresh: Recommender, shuffle: random.Random) -> None:
    """Learn timed baskets in random order, untimed ones in theirs, users interleaved."""
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
    """Fit frames, which can carry the surviving group boundaries."""
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
