"""`unbasket tune`, on data and on a database: apart from `evaluate`, whose tests use another shop."""

import json
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import unbasket
from unbasket.cli import app
from unbasket.datasets import Dataset, generate, hold_out_last
from unbasket.evaluation.tuning import tune
from unbasket.params import Params

COLUMNS = ["--user", "customer", "--time", "date"]


@pytest.fixture(scope="module")
def shop() -> Dataset:
    return generate(users=30, seed=2, baskets_per_user=7, basket_size=5)


@pytest.fixture(scope="module")
def sales(shop: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "sales.csv"
    shop.history.rename({"user": "customer", "time": "date"}).write_csv(path)
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["tune", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["tune", *arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_prints_a_line_to_paste(sales: Path) -> None:
    """Into Python, or into evaluate."""
    line = run(str(sales), *COLUMNS, "--trials", "3").splitlines()[-1]
    found = eval(line, {"Params": Params})
    assert found == Params(**json.loads(run(str(sales), *COLUMNS, "--trials", "3", "--json"))["params"])
    result = CliRunner().invoke(app, ["evaluate", str(sales), *COLUMNS, "--params", line, "--json"])
    assert Params(**json.loads(result.stdout)["params"]) == found


def test_says_how_good_it_is(sales: Path) -> None:
    arguments = [str(sales), *COLUMNS, "--trials", "2", "--metric", "hit_rate@5"]
    answer = json.loads(run(*arguments, "--json"))
    assert answer["trials"] == 2
    assert f"sales: hit_rate@5 {answer['value']:.4f} on the validation baskets of {answer['users']} users" in run(
        *arguments
    )


def test_the_basket_that_evaluate_predicts_is_not_seen(shop: Dataset, sales: Path) -> None:
    """Without a future in the data, evaluate hides the last basket; the validation basket is the one before."""
    answer = json.loads(run(str(sales), *COLUMNS, "--trials", "4", "--json"))
    seen = hold_out_last(shop).history
    expected = tune(seen, trials=4)
    assert (Params(**answer["params"]), answer["value"]) == (expected.params, expected.value)
    assert answer["value"] != tune(shop.history, trials=4).value


def test_a_future_in_the_data_is_not_seen(shop: Dataset, tmp_path: Path) -> None:
    """The future of a prepared file may be anything: the answer is the same."""
    split = hold_out_last(shop)
    assert split.future is not None
    answers = []
    for name, future in (("a", split.future), ("b", split.future.with_columns(item=pl.col("item") * 7))):
        parts = [split.history.with_columns(split=pl.lit("history")), future.with_columns(split=pl.lit("future"))]
        frame = pl.concat(parts).select(
            user_id="user", basket_id="basket", position="time", item_id="item", quantity=pl.lit(1), split="split"
        )
        frame.write_parquet(tmp_path / f"{name}.parquet")
        answers.append(json.loads(run(str(tmp_path / f"{name}.parquet"), "--trials", "3", "--json")))
    assert answers[0] == answers[1]
    assert answers[0]["value"] == tune(split.history, trials=3).value


def test_a_study_is_continued(sales: Path, tmp_path: Path) -> None:
    study = ["--study", str(tmp_path / "study.db")]
    at_once = run(str(sales), *COLUMNS, "--trials", "4")
    run(str(sales), *COLUMNS, "--trials", "2", *study)
    assert run(str(sales), *COLUMNS, "--trials", "4", *study) == at_once
    assert "the best of 4 trials" in run(str(sales), *COLUMNS, "--trials", "1", *study)


def test_bad_input_is_one_line(sales: Path, tmp_path: Path) -> None:
    assert "trials must be at least 1, not 0" in error(str(sales), *COLUMNS, "--trials", "0")
    assert "not 'fame@10'" in error(str(sales), *COLUMNS, "--metric", "fame@10")
    assert "cannot be used as a study file" in error(str(sales), *COLUMNS, "--study", str(tmp_path))
    assert "no column user" in error(str(sales))


def test_without_optuna_the_error_says_how_to_install_it(sales: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    assert "pip install 'unbasket[tune]'" in error(str(sales), *COLUMNS)


@pytest.fixture
def database(shop: Dataset, tmp_path: Path) -> Path:
    with unbasket.open(tmp_path / "shop.db", Params(alpha=0.0, neighbors=1)) as rec:
        rec.fit(shop.history, time="time")
    return tmp_path / "shop.db"


def test_the_parameters_of_a_database(database: Path, shop: Dataset) -> None:
    """It tunes on the shop's own baskets, compares on the last ones, asks, and changes the model."""
    answer = json.loads(run("--db", str(database), "--trials", "8", "--json"))
    seen = hold_out_last(shop)
    expected = tune(seen.history, trials=8, start=Params(alpha=0.0, neighbors=1))
    assert answer["value"] == pytest.approx(expected.value)
    assert answer["gain"]["difference"]["mean"] > 0
    refused = CliRunner().invoke(app, ["tune", "--db", str(database), "--trials", "8", "--apply"], input="n\n")
    assert refused.exit_code != 0
    with unbasket.open(database) as rec:
        assert rec.params == Params(alpha=0.0, neighbors=1)
    said = CliRunner().invoke(app, ["tune", "--db", str(database), "--trials", "8", "--apply"], input="y\n").stdout
    assert "tuned - the database's own: " in said
    assert said.endswith("shop.db has these parameters now\n")
    with unbasket.open(database) as rec:
        assert rec.params == Params(**answer["params"])
        assert rec.verify().ok


def test_good_parameters_stay(database: Path) -> None:
    run("--db", str(database), "--trials", "8", "--apply", "--yes")
    said = run("--db", str(database), "--trials", "1", "--apply", "--yes")
    assert said.endswith("shop.db keeps its parameters: they are at least as good\n")


def test_data_or_a_database(database: Path) -> None:
    assert "DATA, or else --db" in error()
    assert "DATA, or else --db" in error("tafeng", "--db", str(database))
    assert "--apply is for a database" in error("tafeng", "--apply")
