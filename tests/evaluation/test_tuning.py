import sqlite3
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from unbasket.datasets import generate
from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.evaluation import PROTOCOLS, Holdout, Split, hide_last_basket
from unbasket.evaluation import tuning as module
from unbasket.evaluation.metrics import METRICS
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.evaluation.tuning import tune
from unbasket.params import Params
from unbasket.residue import audit

TRIALS = 14  # more than the ten that Optuna draws at random, so the sampler is used too


@pytest.fixture(scope="module")
def history() -> pl.DataFrame:
    return generate(users=30, seed=5, baskets_per_user=8, basket_size=5).history


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Params]:
    """Record the parameters that are scored, in order."""
    scored: list[Params] = []
    score = module._score

    def recorded(data: Holdout, split: Split, params: Params, metric: str, cutoff: int) -> float:
        scored.append(params)
        return score(data, split, params, metric, cutoff)

    monkeypatch.setattr(module, "_score", recorded)
    return scored


def validation_score(history: pl.DataFrame, params: Params, metric: str = "recall@10") -> float:
    """Return the same figure from an evaluation of the validation split."""
    evaluation = evaluate(hide_last_basket(history), params, PROTOCOLS["all-users"])
    mean = evaluation.mean(TIFUKNN, metric)
    assert mean is not None
    return mean.mean


def test_finds_the_best_of_its_trials(history: pl.DataFrame, tried: list[Params]) -> None:
    tuning = tune(history, trials=TRIALS)
    values = [validation_score(history, params) for params in tried]
    assert len(tried) == tuning.trials == TRIALS
    assert tuning.value == pytest.approx(max(values))
    assert tuning.params in [params for params, value in zip(tried, values, strict=True) if value == max(values)]
    assert max(values) > values[0]
    assert tuning.users == hide_last_basket(history).future["user"].n_unique()


def test_starts_with_the_given_parameters(history: pl.DataFrame, tried: list[Params]) -> None:
    start = Params(group_size=2, basket_decay=0.85, group_decay=0.65, neighbors=12, alpha=0.3)
    tuning = tune(history, trials=1, start=start)
    assert tried == [start]
    assert tuning.params == start


def test_a_start_beyond_the_data_is_moved_into_range(history: pl.DataFrame, tried: list[Params]) -> None:
    tune(history, trials=1, start=Params(group_size=1000, neighbors=1000, alpha=0.8))
    baskets = hide_last_basket(history).history.group_by("user").agg(pl.col("basket").n_unique())["basket"]
    assert tried == [Params(group_size=max(baskets.to_list()), neighbors=29, alpha=0.8)]


def test_all_trials_have_the_pool_of_the_first(history: pl.DataFrame, tried: list[Params], tmp_path: Path) -> None:
    start = Params(group_size=2, neighbors=25, grouping="count", alpha=0.8, pool=9, pool_seed=3)
    tuning = tune(history, trials=4, start=start, study=tmp_path / "study.db")
    assert {(params.grouping, params.pool, params.pool_seed) for params in tried} == {("count", 9, 3)}
    assert max(params.neighbors for params in tried) <= 9
    assert tuning.value == pytest.approx(validation_score(history, tuning.params))
    assert tuning.params.pool == 9
    assert tuning.line().endswith(", grouping='count', pool=9, pool_seed=3)")
    with pytest.raises(InvalidRequestError, match="is a study of"):
        tune(history, trials=4, start=replace(start, pool=8), study=tmp_path / "study.db")


def test_equal_seeds_try_equal_parameters(history: pl.DataFrame, tried: list[Params]) -> None:
    for seed in (1, 1, 2):
        tune(history, trials=3, seed=seed)
    assert tried[:3] == tried[3:6]
    assert tried[7:] != tried[1:3]
    assert len(set(tried[:3])) == 3


def test_a_study_is_resumed(history: pl.DataFrame, tried: list[Params], tmp_path: Path) -> None:
    """A resumed search tries exactly the parameters of an uninterrupted one, and then stops."""
    whole = tune(history, trials=TRIALS)
    uninterrupted = tried.copy()
    tried.clear()
    file = tmp_path / "study.db"
    tune(history, trials=5, study=file)
    assert len(tried) == 5
    assert tune(history, trials=TRIALS, study=file) == whole
    assert tried == uninterrupted
    assert tune(history, trials=TRIALS, study=file) == whole
    assert tune(history, trials=2, study=file) == whole
    assert len(tried) == TRIALS


def test_an_interrupted_trial_is_tried_again(
    history: pl.DataFrame, tried: list[Params], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = tune(history, trials=4)
    uninterrupted = tried.copy()
    tried.clear()
    file = tmp_path / "study.db"
    tune(history, trials=2, study=file)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_score", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(history, trials=4, study=file)
    assert tune(history, trials=4, study=file) == whole
    assert tried == uninterrupted


def _interrupt(*_: object) -> float:
    raise KeyboardInterrupt


def test_an_interrupted_first_trial_still_comes_first(
    history: pl.DataFrame, tried: list[Params], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = Params(group_size=2, neighbors=12, alpha=0.3)
    with monkeypatch.context() as patch:
        patch.setattr(module, "_score", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            tune(history, trials=1, start=start, study=tmp_path / "study.db")
    tune(history, trials=2, start=start, study=tmp_path / "study.db")
    assert tried[0] == start
    assert tried[1] != start


def test_never_sees_the_future(history: pl.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last history basket is hidden from the model, and only this basket is scored against."""
    last = hide_last_basket(history)
    seen: list[Holdout] = []

    def record(data: Holdout, *_: object) -> float:
        seen.append(data)
        return 0.0

    monkeypatch.setattr(module, "_score", record)
    tune(history, trials=1)
    assert seen[0].history.equals(last.history)
    assert seen[0].future.equals(last.future)


def test_the_study_file_holds_no_personal_data(history: pl.DataFrame, tmp_path: Path) -> None:
    named = history.with_columns(
        user="customer-" + pl.col("user").cast(pl.String), item="article-" + pl.col("item").cast(pl.String)
    )
    file = tmp_path / "study.db"
    tune(named, trials=2, study=file)
    _, findings = audit([tmp_path], ["neighbors", "customer-", "article-"])
    assert {finding.marker for finding in findings} == {"neighbors"}


@pytest.mark.parametrize("change", ["data", "metric"])
def test_a_study_of_other_data_or_another_metric_is_refused(history: pl.DataFrame, tmp_path: Path, change: str) -> None:
    file = tmp_path / "study.db"
    tune(history, trials=1, study=file)
    other = history.filter(pl.col("user") != 1) if change == "data" else history
    with pytest.raises(InvalidRequestError, match=r"study\.db is a study of .* give another"):
        tune(other, trials=2, study=file, metric="recall@10" if change == "data" else "recall@5")


def test_a_file_that_is_not_a_study_is_refused(history: pl.DataFrame, tmp_path: Path) -> None:
    text = tmp_path / "notes.txt"
    text.write_text("not a database\n" * 100)
    for path in (text, tmp_path / "nowhere" / "study.db"):
        with pytest.raises(InvalidRequestError, match="cannot be used as a study file"):
            tune(history, trials=1, study=path)
    assert text.read_text() == "not a database\n" * 100


def test_the_study_file_is_closed(history: pl.DataFrame, tmp_path: Path) -> None:
    file = tmp_path / "study.db"
    tune(history, trials=1, study=file)
    with sqlite3.connect(file, timeout=0) as connection:
        connection.execute("BEGIN EXCLUSIVE")
    connection.close()


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_can_be_tuned(history: pl.DataFrame, name: str) -> None:
    tuning = tune(history, trials=1, metric=f"{name}@20")
    assert tuning.value == pytest.approx(validation_score(history, tuning.params, f"{name}@20"))


def test_the_line_is_valid_python(history: pl.DataFrame) -> None:
    tuning = tune(history, trials=4)
    assert eval(tuning.line(), {"Params": Params}) == tuning.params


def test_progress_counts_trials(history: pl.DataFrame, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    for trials in (2, 3):
        tune(
            history,
            trials=trials,
            study=tmp_path / "study.db",
            progress=lambda done, total: seen.append((done, total)),
        )
    assert seen == [(1, 2), (2, 2), (3, 3)]


def test_bad_requests_are_named(history: pl.DataFrame) -> None:
    with pytest.raises(InvalidRequestError, match="not 0"):
        tune(history, trials=0)
    for metric in ("recall", "recall@", "recall@0", "recall@-1", "ndcg@10", "@10"):
        with pytest.raises(InvalidRequestError, match=f"not '{metric}'"):
            tune(history, metric=metric)
    with pytest.raises(InvalidRequestError, match="two baskets"):
        tune(history.unique("user"))


def test_without_optuna_the_error_says_how_to_install_it(
    history: pl.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UnbasketError, match=r"pip install 'unbasket\[tune\]'"):
        tune(history)
