"""Figures (a) and (b): the rivals compute the same vector, and their curves are complete."""

import numpy as np
import polars as pl
import pytest

from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.params import Params
from unbasket.reproduction import updates, workloads
from unbasket.reproduction.baselines import USER, DenseRetrain, Engine, PaperRules, _FromNewest
from unbasket.reproduction.settings import Settings
from unbasket.reproduction.workloads import SINGLE_ITEM

PARAMS = Params(group_size=3, basket_decay=0.9, group_decay=0.7)
BASKETS = [[0, 1], [1], [2, 3], [0], [3], [1, 2], [0, 3], [2]]


def test_retrain_is_the_engines_vector() -> None:
    rival, engine = DenseRetrain(PARAMS, 4, len(BASKETS)), Recommender(PARAMS)
    rival.load(BASKETS)
    for number, basket in enumerate(BASKETS):
        engine.learn("u", basket, basket=number)
    for place in (2, 0, 4):  # of what is left then: baskets 2, 0 and 6
        rival.delete(place)
    for number in (2, 0, 6):
        engine.forget("u", basket=number)
    expected = [engine.vector("u").get(item, 0.0) for item in range(4)]
    assert rival.vector == pytest.approx(np.array(expected), abs=1e-14)


def test_papers_rules_add_as_a_retrain_does() -> None:
    retrain, rules = DenseRetrain(PARAMS, 4, len(BASKETS)), PaperRules(PARAMS, 4)
    for basket in BASKETS:
        assert retrain.add(basket) > 0
        assert rules.add(basket) > 0
    assert rules._user.vector == pytest.approx(retrain.vector)
    rules.delete(len(BASKETS) - 1)
    retrain.delete(len(BASKETS) - 1)
    assert rules._user.vector == pytest.approx(retrain.vector)


def test_places_from_the_newest_are_those_from_the_oldest() -> None:
    user = _FromNewest(3, 0.9, 0.7, 4)
    for basket in BASKETS:
        user.add_basket(basket)
    count = len(BASKETS)
    found = [user._locate(place - count) for place in range(count)]
    assert found == [super(_FromNewest, user)._locate(place) for place in range(count)]
    with pytest.raises(InvalidRequestError, match="before the oldest"):
        user._locate(-count - 1)


def test_engine_deletes_the_basket_at_the_place() -> None:
    rival = Engine(PARAMS, pl.DataFrame(), recommend=True)
    rival.load(BASKETS)
    rival.delete(2)
    rival.delete(2)
    assert [list(basket.items) for basket in rival._engine.history(USER)] == BASKETS[:2] + BASKETS[4:]


def test_orders_of_deletion() -> None:
    assert updates.positions("end", 4, seed=0) == [3, 2, 1]
    assert updates.positions("start", 4, seed=0) == [0, 0, 0]
    drawn = updates.positions("random", 100, seed=0)
    assert all(0 <= place < length for place, length in zip(drawn, range(100, 1, -1), strict=True))
    assert drawn == updates.positions("random", 100, seed=0)
    assert drawn != updates.positions("random", 100, seed=1)


@pytest.mark.usefixtures("data")
def test_longest_history_is_the_stream() -> None:
    stream = workloads.read("coop100", most=5)
    assert len(stream.baskets) == 5
    assert stream.others["user"].n_unique() == 39
    assert max(max(basket) for basket in stream.baskets) < stream.dimension
    counts = stream.others.group_by("user").agg(pl.col("basket").n_unique())
    assert len(workloads.read("coop100", most=1000).baskets) >= max(counts["basket"])


@pytest.mark.parametrize("dataset", [SINGLE_ITEM, "coop100"])
@pytest.mark.usefixtures("data")
def test_every_rival_has_a_curve(dataset: str) -> None:
    settings = Settings(stream_baskets=15)
    additions = pl.DataFrame(updates.run_additions(dataset, settings, lambda *_: None))
    deletions = pl.DataFrame(updates.run_deletions(dataset, settings, lambda *_: None))
    assert additions.group_by("rival").agg(pl.col("events").max())["events"].to_list() == [15] * 4
    ends = deletions.group_by("rival", "order").agg(pl.col("events").max())
    assert ends.height == 12
    assert set(ends["events"]) == {14}
    assert additions["ms"].min() > 0  # type: ignore[operator]
    assert len(updates.present_additions(additions).figure.axes) == 1
    assert len(updates.present_deletions(deletions).figure.axes) == 3


def test_a_point_is_the_mean_of_its_events_medians() -> None:
    quiet, disturbed = [0.001, 0.003] * 40, [5.0] * 80
    assert updates.curve([disturbed, quiet, quiet])[:2] == [{"events": 2, "ms": 2.0}, {"events": 4, "ms": 2.0}]


def test_finding_is_about_our_curve() -> None:
    points = [{"stream": SINGLE_ITEM, "rival": name, "events": 1, "ms": 0.1} for name in updates.RIVALS]
    frame = pl.DataFrame(points)
    assert updates.present_additions(frame).findings == (
        ("Our median point is 0.100 ms per addition, and 1 of 1 points lie below the paper's 0.2 ms.", True),
    )
    slow = frame.with_columns(ms=pl.when(pl.col("rival") == "ours").then(0.3).otherwise(pl.col("ms")))
    assert updates.present_additions(slow).findings[0].holds is False
