"""Table 2 on a small shop: the figures of the evaluation package, and a check of equality that can fail."""

import math

import polars as pl
import pytest
from tests.reproduction.conftest import USERS

from unbasket.datasets import load
from unbasket.domain.results import Forgotten
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import PROTOCOLS, Holdout
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.reproduction import table2
from unbasket.reproduction.scoring import COUNTED, NEXT, UNION
from unbasket.reproduction.workloads import Settings

pytestmark = pytest.mark.usefixtures("data")
SETTINGS = Settings(seed=3, user_shares=(0.001, 0.5), draws=2)


def run(dataset: str) -> pl.DataFrame:
    return pl.DataFrame(table2.run(dataset, SETTINGS, lambda *_: None), infer_schema_length=None)


def test_baseline_has_the_figures_of_the_evaluation_package() -> None:
    shop = load("tafeng")
    assert shop.future is not None
    assert shop.params is not None
    expected = evaluate(Holdout(shop.history, shop.future), shop.params, PROTOCOLS["paper"]).scores[TIFUKNN]
    baseline = run("tafeng").filter(pl.col("model") == "baseline")
    assert baseline["users"].to_list() == [expected.height] * 4
    for metric, column in (("Recall@10", "recall@10"), ("NDCG@20", "ndcg_paper@20")):
        row = baseline.row(by_predicate=pl.col("metric") == metric, named=True)
        assert row["ours"] == pytest.approx(expected[column].mean(), abs=1e-12)
        assert row["difference"] == pytest.approx(row["ours"] - row["paper"])


def test_updates_by_events_equal_a_retrain() -> None:
    frame = run("tafeng")
    assert frame["digest_equal"].all()
    assert frame["recommendations_equal"].all()
    assert frame["model"].unique(maintain_order=True).to_list() == [
        "baseline", "incremental", "decremental", "decremental 50%",
    ]  # fmt: skip


def test_forgetting_moves_the_figures_and_learning_does_not() -> None:
    ours = {key[0]: rows["ours"].to_list() for key, rows in run("tafeng").group_by("model")}
    assert ours["incremental"] == ours["baseline"]
    assert ours["decremental 50%"] != ours["baseline"]


def test_an_engine_that_does_not_forget_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Recommender, "forget", lambda *_, **__: Forgotten(0, 0, 0))
    equal = dict(run("tafeng").select("model", "digest_equal").iter_rows())
    assert equal == {"baseline": True, "incremental": True, "decremental": False, "decremental 50%": False}


def test_the_shares_determine_how_many_forget() -> None:
    baskets = dict(load("tafeng").history.group_by("user").agg(pl.col("basket").n_unique()).iter_rows())
    users, forgotten = table2._draw_forgotten(load("tafeng").history, 0.5, seed=3)
    assert users == USERS / 2
    per_user = pl.DataFrame(forgotten, schema=["user", "basket"], orient="row").group_by("user").len()
    assert per_user.height == users
    assert all(count == math.ceil(baskets[user] / 10) for user, count in per_user.iter_rows())
    assert len(set(forgotten)) == len(forgotten)


def test_another_seed_forgets_other_baskets() -> None:
    history = load("tafeng").history
    assert table2._draw_forgotten(history, 0.5, seed=3) == table2._draw_forgotten(history, 0.5, seed=3)
    assert table2._draw_forgotten(history, 0.5, seed=3) != table2._draw_forgotten(history, 0.5, seed=4)


def test_valuedshopper_is_scored_against_each_target() -> None:
    frame = run("valuedshopper").filter(pl.col("model") == "baseline", pl.col("metric") == "Recall@10")
    assert frame["target"].to_list() == [NEXT, UNION, COUNTED]
    next_basket, union, counted = frame["ours"]
    assert next_basket != union
    assert counted < union  # the same hits, a larger truth


def test_each_seed_draws_other_users() -> None:
    frame = run("tafeng")
    drawn = frame.filter(pl.col("model") == "decremental 50%", pl.col("metric") == "Recall@20")
    assert drawn["seed"].to_list() == [3, 4]
    assert drawn["ours"].n_unique() == 2
    assert set(frame.filter(pl.col("model") == "incremental")["seed"]) == {None}


def test_cells_have_the_mean_of_the_draws_and_their_range() -> None:
    frame = run("tafeng")
    quality, equality = table2.present(frame).tables
    assert quality.header == ("data", "target", "model", "Recall@10", "NDCG@10", "Recall@20", "NDCG@20")
    cells = {row[2]: row[3:] for row in quality.rows}
    assert cells["paper, baseline"] == ("0.1298", "0.0847", "0.1859", "0.0816")
    draws = frame.filter(pl.col("model") == "decremental 50%", pl.col("metric") == "Recall@20")["ours"]
    low, high = sorted(draws)
    assert cells["ours, decremental 50%"][2] == f"{(low + high) / 2:.4f} [{low:.4f}, {high:.4f}]"
    assert "paper, decremental 50%" not in cells
    assert {row[2]: row[3] for row in equality.rows} == {
        "baseline": "1", "incremental": "1", "decremental": "2", "decremental 50%": "2",
    }  # fmt: skip


def test_one_different_draw_is_reported() -> None:
    one = (pl.col("model") == "decremental 50%") & (pl.col("seed") == 4)
    frame = run("tafeng").with_columns(digest_equal=~one.fill_null(value=False))
    section = table2.present(frame)
    digests = {row[2]: row[7] for row in section.tables[1].rows}
    assert digests == {
        "baseline": "equal", "incremental": "equal", "decremental": "equal", "decremental 50%": "DIFFERENT",
    }  # fmt: skip
    assert section.findings[0] == (
        "4 of 5 models that were updated by events are bit-equal to their retrain.",
        False,
    )


def test_the_finding_on_tafeng_can_fail() -> None:
    frame = run("tafeng")
    assert table2.present(frame).findings[1].holds is False  # a small shop has other figures than the paper
    near = frame.with_columns(difference=pl.lit(0.0001))
    assert table2.present(near).findings[1].holds is True
