from dataclasses import replace

import polars as pl
import pytest
from tests.oracle import Oracle

from unbasket.datasets import generate, hold_out_last
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.evaluation import BASELINES, PROTOCOLS, Holdout, Split, bootstrap_mean, compare_paired, score_users
from unbasket.evaluation.tifuknn import TIFUKNN, TifuKnn, evaluate, fit_candidates, rank
from unbasket.params import Params

PARAMS = Params(group_size=2, basket_decay=0.8, group_decay=0.6, neighbors=3, alpha=0.6)
HEADLINE = ["recall@10", "ndcg_paper@10", "recall@20", "ndcg_paper@20"]


@pytest.fixture(scope="module")
def shop() -> Holdout:
    dataset = hold_out_last(generate(users=40, seed=3, baskets_per_user=6, basket_size=5))
    assert dataset.future is not None
    return Holdout(dataset.history, dataset.future)


def oracle(history: pl.DataFrame, users: list[int], params: Params = PARAMS) -> Oracle:
    """Return the naive model of these users' baskets."""
    model = Oracle(params)
    baskets = history.group_by("user", "basket", "time", maintain_order=True).agg("item")
    for user, basket, time, items in baskets.iter_rows():
        if user in users:
            model.learn(user, items, basket, time)
    return model


def lists(rankings: pl.DataFrame) -> dict[int, list[int]]:
    return dict(rankings.select("user", "items").iter_rows())


def names(recommendations: list[tuple[int | str, float]]) -> list[int | str]:
    return [item for item, _ in recommendations]


@pytest.mark.needs("tafeng")
@pytest.mark.parametrize(
    ("protocol", "users", "expected"),
    [
        ("paper", 13_904, [0.1298, 0.0847, 0.1859, 0.0816]),
        ("all-users", 13_949, [0.1313, 0.0846, 0.1873, 0.0816]),
    ],
)
def test_the_figures_of_tafeng(tafeng: Holdout, protocol: str, users: int, expected: list[float]) -> None:
    params = Params(group_size=7, basket_decay=0.9, group_decay=0.7, neighbors=300, alpha=0.7)
    scores = evaluate(tafeng, params, PROTOCOLS[protocol]).scores[TIFUKNN]
    assert len(scores) == users
    assert list(scores.select(pl.col(HEADLINE).mean()).row(0)) == pytest.approx(expected, abs=0.0002)


@pytest.mark.parametrize(
    ("protocol", "users", "expected"),
    [
        ("all-users", 2_399, [0.1809, 0.1675, 0.2279, 0.1551]),
        ("hu", 480, [0.1589, 0.1514, 0.2101, 0.1379]),
    ],
)
def test_the_figures_of_the_complete_journey(
    journey: Holdout, protocol: str, users: int, expected: list[float]
) -> None:
    scores = evaluate(journey, Params(), PROTOCOLS[protocol]).scores[TIFUKNN]
    assert len(scores) == users
    assert list(scores.select(pl.col(HEADLINE).mean()).row(0)) == pytest.approx(expected, abs=0.0002)


def test_all_users_agrees_with_the_oracle(shop: Holdout) -> None:
    split = PROTOCOLS["all-users"].split(*shop)
    model = oracle(shop.history, split.candidates.to_list())
    expected = {user: names(model.recommend(user, 10)) for user in split.queries}
    assert lists(TifuKnn(PARAMS)(shop.history, split, 10)) == expected


def test_hu_agrees_with_the_oracle(shop: Holdout) -> None:
    """The oracle of a query has learned only the candidates and that query."""
    split = PROTOCOLS["hu"].split(*shop)
    candidates = split.candidates.to_list()
    assert set(split.queries).isdisjoint(candidates)
    expected = {user: names(oracle(shop.history, [*candidates, user]).recommend(user, 10)) for user in split.queries}
    assert lists(TifuKnn(PARAMS)(shop.history, split, 10)) == expected


@pytest.mark.parametrize("pool", [None, 5])
def test_weights_are_learned_from_all_histories(shop: Holdout, pool: int | None) -> None:
    """Neighbors are candidates only: of the pool's members, if there is a pool."""
    split, params = PROTOCOLS["hu"].split(*shop), Params(neighbors=3, pool=pool)
    candidates = set(split.candidates)
    engine = fit_candidates(shop.history, split, params)
    assert set(engine.users()) == set(shop.history["user"])
    assert engine.learned() == Recommender(params).fit(shop.history).learned()
    near = {other for user in engine.users() for other, _ in engine.similar_users(user, 1000)}
    assert near <= candidates
    assert len(near) == (pool or len(candidates))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (["user", "basket", "item", "time"], [10, 13, 11, 12]),  # by (time, basket): 5, 2, 8
        (["user", "basket", "item"], [10, 12, 11, 13]),  # by first rows: 8, 2, 5
    ],
)
def test_an_unknown_user_is_ranked_like_a_known_one(columns: list[str], expected: list[int]) -> None:
    rows = [(1, 8, 10, 5), (1, 2, 11, 5), (1, 5, 12, 4), (1, 8, 13, 5), (1, 5, 10, 4), (2, 1, 10, 1), (3, 1, 14, 1)]
    history = pl.DataFrame(rows, schema=["user", "basket", "item", "time"], orient="row").select(columns)
    unknown = Split(queries=pl.Series([1]), candidates=pl.Series([2, 3]))
    known = Split(queries=pl.Series([1]), candidates=pl.Series([1, 2, 3]))
    params = replace(PARAMS, group_size=3, alpha=0.9)
    for split in (unknown, known):
        assert lists(TifuKnn(params)(history, split, 4)) == {1: expected}


def test_paper_averages_one_neighbor_fewer(shop: Holdout) -> None:
    scores = evaluate(shop, replace(PARAMS, neighbors=4), PROTOCOLS["paper"]).scores[TIFUKNN]
    assert scores.equals(evaluate(shop, PARAMS, PROTOCOLS["all-users"]).scores[TIFUKNN])
    assert not scores.equals(evaluate(shop, replace(PARAMS, neighbors=4), PROTOCOLS["all-users"]).scores[TIFUKNN])


def test_paper_scores_twins_once() -> None:
    rows = [(user, 1, item, 1) for user, item in [(1, 10), (2, 11), (3, 10), (4, 12)]]
    history = pl.DataFrame(rows, schema=["user", "basket", "item", "time"], orient="row")
    evaluation = evaluate(Holdout(history, history), PARAMS, PROTOCOLS["paper"], baselines=["P-TopFreq"])
    assert [scores["user"].to_list() for scores in evaluation.scores.values()] == [[1, 2, 4], [1, 2, 4]]
    assert evaluation.split.queries.to_list() == [1, 2, 4]
    assert evaluation.split.candidates.to_list() == [1, 2, 3, 4]


def test_baselines_are_scored_on_the_same_users(shop: Holdout) -> None:
    protocol = PROTOCOLS["hu"]
    evaluation = evaluate(shop, PARAMS, protocol, baselines=list(BASELINES), cutoffs=[5])
    assert list(evaluation.scores) == [TIFUKNN, *BASELINES]
    for name, baseline in BASELINES.items():
        ranked = baseline(shop.history, protocol.split(*shop), 5)
        assert evaluation.scores[name].equals(score_users(ranked, *shop, cutoffs=[5]))


def test_means_and_comparisons(shop: Holdout) -> None:
    evaluation = evaluate(shop, PARAMS, PROTOCOLS["all-users"], baselines=["G-TopFreq"])
    ours, theirs = (evaluation.scores[name]["recall@10"] for name in (TIFUKNN, "G-TopFreq"))
    assert evaluation.mean(TIFUKNN, "recall@10") == bootstrap_mean(ours)
    assert evaluation.compare(TIFUKNN, "G-TopFreq", "recall@10") == compare_paired(ours, theirs)


def test_a_metric_without_users_has_no_mean() -> None:
    history = pl.DataFrame({"user": [1, 2], "basket": [1, 1], "item": [10, 11], "time": [1, 1]})
    evaluation = evaluate(Holdout(history, history), PARAMS, PROTOCOLS["all-users"])
    assert evaluation.mean(TIFUKNN, "explore_recall@10") is None
    repeated = evaluation.mean(TIFUKNN, "repeat_recall@10")
    assert repeated is not None
    assert repeated.mean == 1


def test_an_engine_is_ranked_as_it_stands(shop: Holdout) -> None:
    """Items forgotten from a fitted engine are not in its rankings."""
    split = PROTOCOLS["all-users"].split(*shop)
    engine = fit_candidates(shop.history, split, PARAMS)
    before = lists(rank(engine, shop.history, split, 10))
    item = before[1][0]
    for user in engine.users():
        engine.forget(user, item=item)
    after = lists(rank(engine, shop.history, split, 10))
    assert item in before[1]
    assert all(item not in items for items in after.values())


def test_a_user_without_a_prediction_keeps_a_row() -> None:
    """For a single user with alpha 0, no item has a score."""
    history = pl.DataFrame({"user": [1], "basket": [1], "item": [10], "time": [1]})
    split = Split(queries=pl.Series([1]), candidates=pl.Series([1]))
    assert TifuKnn(Params(alpha=0.0))(history, split, 5).rows() == [(1, [])]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_progress_counts_the_queries(shop: Holdout, protocol: str) -> None:
    seen: list[tuple[int, int]] = []
    evaluation = evaluate(shop, PARAMS, PROTOCOLS[protocol], progress=lambda *report: seen.append(report))
    users = len(evaluation.split.queries)
    assert seen[-1] == (users, users)
    assert seen == sorted(seen)


def test_ids_may_be_text(shop: Holdout) -> None:
    text = Holdout(*(frame.with_columns(pl.col("user", "item").cast(pl.String)) for frame in shop))
    scores = evaluate(text, PARAMS, PROTOCOLS["all-users"]).scores[TIFUKNN]
    assert scores["user"].dtype == pl.String
    assert scores["recall@10"].sum() > 0


def test_the_engine_is_fitted_once(shop: Holdout, monkeypatch: pytest.MonkeyPatch) -> None:
    fits: list[int] = []
    fit = Recommender.fit

    def counted(self: Recommender, frame: pl.DataFrame) -> Recommender:
        fits.append(frame.height)
        return fit(self, frame)

    monkeypatch.setattr(Recommender, "fit", counted)
    evaluate(shop, PARAMS, PROTOCOLS["paper"], baselines=list(BASELINES))
    assert fits == [shop.history.height]


def test_bad_requests_are_named(shop: Holdout) -> None:
    with pytest.raises(InvalidRequestError, match="not 'TopFreq'"):
        evaluate(shop, PARAMS, PROTOCOLS["hu"], baselines=["TopFreq"])
    with pytest.raises(InvalidRequestError, match="'hu' finds no user"):
        evaluate(Holdout(shop.history, shop.future.clear()), PARAMS, PROTOCOLS["hu"])
    with pytest.raises(InvalidRequestError, match="at least 2 neighbors"):
        evaluate(shop, replace(PARAMS, neighbors=1), PROTOCOLS["paper"])
