"""The law of equality on Spark: random events in random micro-batches give the engine's state, bit for bit."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice, pairwise
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.laws import ShopEvent, apply
from tests.spark.scoring import recommendations, vectors_in
from tests.spark.shop import Shop, random_shop_events

from unbasket import Params, Recommender
from unbasket.domain.ids import Id
from unbasket.spark import State, event_schema, histories, maintain, read_files, recommend, settle
from unbasket.spark.sources import IdType

PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7, alpha=0.8)


def random_batches(
    chance: random.Random, users: Sequence[Id], baskets: Sequence[Id], items: Sequence[Id]
) -> list[list[ShopEvent]]:
    """Generate sequences of 30 events for groups of three users, cut into micro-batches of many sizes."""
    sequences = [
        list(islice(random_shop_events(chance, users[i : i + 3], baskets, items), 30)) for i in range(0, len(users), 3)
    ]
    cuts = [0, *sorted(chance.sample(range(1, 30), 4)), 30]
    return [[event for sequence in sequences for event in sequence[a:b]] for a, b in pairwise(cuts)]


Case = tuple[Params, Sequence[Id], Sequence[Id], Sequence[Id], tuple[IdType, IdType, IdType]]
CASES: dict[str, Case] = {
    "fixed": (
        PARAMS,
        [f"user {i}" for i in range(240)],
        ["a", "b", "ä", "1"],
        [1, 2, -3, 10**12],
        ("string", "string", "long"),
    ),
    "varying": (
        replace(PARAMS, grouping="varying", pool=20, pool_seed=3),
        range(240),
        [1, 2, 3, 4, 5, 6],
        ["p", "q", "r"],
        ("long", "long", "string"),
    ),
    "learned": (
        Params(neighbors=20, pool=30, pool_seed=1),
        [f"user {i}" for i in range(240)],
        ["a", "b", "ä", "1"],
        ["p", "q", "r"],
        ("string", "string", "string"),
    ),
    "count": (
        replace(PARAMS, grouping="count"),
        range(240),
        [1, 2, 3, 4, 5, 6],
        ["p", "q", "r"],
        ("long", "long", "string"),
    ),
}


def test_random_streams_equal_the_engine(spark: SparkSession, tmp_path: Path) -> None:
    """All groupings, learned weights, a pool, and ids of both types, in streams at once."""
    engines: dict[str, Recommender] = {}
    queries: list[StreamingQuery] = []
    for name, (params, users, baskets, items, types) in CASES.items():
        shop, engine = Shop(tmp_path / name / "events"), Recommender(params)
        for batch in random_batches(random.Random(4), users, baskets, items):
            shop.write(batch)
            apply(engine, batch)
        assert 10 < len(engine) < len(users)
        engines[name] = engine
        events = read_files(spark, str(shop.folder), event_schema(*types), most=1)
        stream = maintain(events, params, checkpoint=str(tmp_path / name), shards=3)
        queries.append(stream.into(every="0 seconds"))
    for query in queries:
        settle(query)
    for name, engine in engines.items():
        state, held = State.read(str(tmp_path / name)), histories(spark, str(tmp_path / name)).cache()
        assert (state.params, state.users) == (engine.params, len(engine))
        assert vectors_in(held, state.params) == {user: engine.vector(user) for user in engine.users()}
        assert {row.user: row.suppressed for row in held.collect()} == {u: engine.suppressed(u) for u in engine.users()}
        assert any(engine.suppressed(user) for user in engine.users())
        assert recommendations(recommend(held, state.params)) == engine.recommend_many()
        held.unpersist()
