"""The benchmark of forgetting: its requests, its measures, and its methods against a retrained model."""

import math

import numpy as np
import polars as pl
import pytest

from unbasket.datasets import generate, hold_out_last
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.forgetting import (
    OURS,
    PAPER,
    RETRAINING,
    STEPS,
    EngineMethod,
    PaperMethod,
    Request,
    benchmark_forgetting,
    categories_like,
    divergence,
    draw_requests,
    without,
)
from unbasket.evaluation.protocols import Holdout
from unbasket.params import Params

SHOP = hold_out_last(generate(users=60, seed=4, baskets_per_user=9, basket_size=6, items=60))
assert SHOP.items is not None
assert SHOP.future is not None
CATEGORIES = SHOP.items.select("item", "category")
PARAMS = Params(group_size=2, basket_decay=0.9, group_decay=0.7, neighbors=5, alpha=0.6)
DAIRY = categories_like(["dairy"], CATEGORIES)["dairy"]


def test_categories_are_found_by_a_word_of_their_name() -> None:
    found = categories_like(["MEAT", "moon"], CATEGORIES)
    assert list(found) == ["MEAT"]
    assert set(found["MEAT"]) == set(CATEGORIES.filter(category="Meat and fish")["item"])
    with pytest.raises(InvalidRequestError, match=r"no category has 'moon' or 'sun' in its name. There are "):
        categories_like(["moon", "sun"], CATEGORIES)


def test_requests_cover_a_thousandth_of_the_interactions() -> None:
    rows = [(user, basket, 1, basket) for user in range(1000) for basket in range(10)]
    history = pl.DataFrame(
        [*rows, *((u, b, 2, b) for u, b, _, _ in rows)], ["user", "basket", "item", "time"], orient="row"
    )
    requests = draw_requests(history, pl.Series([2]), seed=3)
    assert all(request.items == (2,) for request in requests)
    assert (
        len({request.user for request in requests}) == len(requests) == STEPS
    )  # 20 of 20,000 are two users: at least 4
    many = pl.concat([history] + [history.with_columns(user=pl.col("user") + 1000 * i) for i in range(1, 5)])
    assert len(draw_requests(many, pl.Series([2]), seed=3)) == 10
    assert draw_requests(many, pl.Series([2]), seed=3) != draw_requests(many, pl.Series([2]), seed=5)
    assert without(history, requests).height == history.height - 10 * len(requests)
    with pytest.raises(InvalidRequestError, match="0 users have bought items of the category"):
        draw_requests(history, pl.Series([3]), seed=3)


def test_divergence_by_hand() -> None:
    assert divergence({"a": 1.0}, {"a": 3.0}) == 0
    assert divergence({"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 3.0}) == pytest.approx(
        0.5 * math.log2(2) + 0.5 * math.log2(2 / 3)
    )
    assert divergence({"a": 1.0}, {"a": -1.0, "b": 1.0}) > 30  # what the other rules out
    assert divergence({}, {}) == 0


def test_ours_equals_the_retrained_model_and_the_papers_rule_does_not() -> None:
    assert SHOP.future is not None
    steps: list[tuple[int, int]] = []
    result = benchmark_forgetting(
        Holdout(SHOP.history, SHOP.future),
        PARAMS,
        PARAMS,
        {"dairy": DAIRY},
        seeds=(2, 3),
        progress=lambda *s: steps.append(s),
    )
    frame = result.frame()
    assert steps[-1] == (2 * STEPS, 2 * STEPS)
    assert frame.height == 3 * 2 * STEPS
    by_method = {name: frame.filter(method=name) for name in (OURS, RETRAINING, PAPER)}
    assert by_method[OURS]["divergence"].to_list() == [0.0] * 2 * STEPS
    measures = [name for name in frame.columns if name not in ("method", "seconds")]
    assert by_method[OURS].select(measures).equals(by_method[RETRAINING].select(measures))
    assert by_method[PAPER]["divergence"].max() > 0  # type: ignore[operator]
    assert result.means()["method"].to_list() == [OURS, RETRAINING, PAPER]
    assert frame.filter(pl.col("step") < STEPS)["recall@10"].null_count() == frame.height * (STEPS - 1) // STEPS


def test_a_divergence_is_found() -> None:
    """An engine that missed a request is not the retrained one."""
    [request, *_] = draw_requests(SHOP.history, DAIRY, seed=2)
    missed, retrained = EngineMethod(SHOP.history, PARAMS), EngineMethod(without(SHOP.history, [request]), PARAMS)
    assert divergence(retrained.scores(request.user), missed.scores(request.user)) > 0
    missed.forget(request)
    assert divergence(retrained.scores(request.user), missed.scores(request.user)) == 0


def test_the_papers_model_is_the_engines_before_any_request() -> None:
    engine, paper = Recommender(PARAMS).fit(SHOP.history), PaperMethod(SHOP.history, PARAMS)
    requests = [Request(user, (1,)) for user in engine.users()[:3]]
    for prepared in (False, True):
        if prepared:
            paper.prepare(requests)
        for user in engine.users()[:20]:
            assert paper.scores(user) == pytest.approx(dict(engine.recommend(user, 1000)), abs=1e-5)
        assert {user: len(found) for user, found in paper.lists(engine.users()[:4], 7).items()} == dict.fromkeys(
            engine.users()[:4], 7
        )
    assert paper.scores(10**9) == {}
    assert paper.lists([10**9], 5) == {10**9: []}


def test_the_papers_rule_forgets_items_and_emptied_baskets() -> None:
    """Items of a basket with others are updated in place, and a basket of these items alone is deleted."""
    rows = [(1, 1, 7, 1), (1, 1, 8, 1), (1, 2, 7, 2), (1, 3, 9, 3), (2, 1, 7, 1), (3, 1, 9, 1)]
    history = pl.DataFrame(rows, ["user", "basket", "item", "time"], orient="row")
    params = Params(group_size=4, basket_decay=0.5, group_decay=0.5, neighbors=1, alpha=1.0)
    request = Request(1, (7,))
    paper = PaperMethod(history, params)
    paper.prepare([request])
    paper.forget(request)
    retrained = PaperMethod(without(history, [request]), params)
    assert paper.scores(1) == pytest.approx(retrained.scores(1))
    assert 7 not in paper.scores(1)
    assert np.isclose(paper.scores(1)[9], 0.5)
