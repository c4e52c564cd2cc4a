"""`unbasket evaluate`: the library's answer, options and errors."""

import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from unbasket.cli import app
from unbasket.datasets import generate, hold_out_last, read_table
from unbasket.evaluation import BASELINES, PROTOCOLS, Holdout
from unbasket.evaluation.field_baselines import FIELD_BASELINES
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.params import Params

PARAMS = Params(group_size=2, neighbors=5, alpha=0.4)
PARAMS_TEXT = "group_size=2, neighbors=5, alpha=0.4"


@pytest.fixture(scope="module")
def sales(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a shop's table, with other column names and unsorted rows."""
    path = tmp_path_factory.mktemp("shop") / "sales.csv"
    history = generate(users=40, seed=1, baskets_per_user=6, basket_size=5).history
    shuffled = history.sample(fraction=1, shuffle=True, seed=0)
    shuffled.rename({"user": "customer", "basket": "receipt", "item": "article", "time": "date"}).write_csv(path)
    return path


COLUMNS = ["--user", "customer", "--basket", "receipt", "--item", "article", "--time", "date"]


def published(folder: Path) -> Path:
    """Write a prepared file with a future."""
    rows = [(u, b, b, 10 * u + b, 1, "future" if b == 3 else "history") for u in (1, 2, 3) for b in (1, 2, 3)]
    names = ["user_id", "basket_id", "position", "item_id", "quantity", "split"]
    path = folder / "prepared.parquet"
    pl.DataFrame(rows, schema=names, orient="row").write_parquet(path)
    return path


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


def error(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["evaluate", *arguments])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_json_is_the_library_s_answer(sales: Path, protocol: str) -> None:
    options = ["--params", PARAMS_TEXT, "--protocol", protocol, "--no-baselines", "--json"]
    answer = json.loads(run(str(sales), *COLUMNS, *options))
    dataset = hold_out_last(read_table(sales, user="customer", basket="receipt", item="article", time="date"))
    assert dataset.future is not None
    expected = evaluate(Holdout(dataset.history, dataset.future), PARAMS, PROTOCOLS[protocol])
    assert answer["data"] == "sales"
    assert answer["protocol"] == protocol
    assert Params(**answer["params"]) == PARAMS
    assert (answer["users"], answer["candidates"]) == (len(expected.split.queries), len(expected.split.candidates))
    assert list(answer["models"]) == [TIFUKNN]
    means = answer["models"][TIFUKNN]
    assert f"ndcg_{PROTOCOLS[protocol].ndcg}@20" in means
    for metric, mean in means.items():
        interval = expected.mean(TIFUKNN, metric)
        assert interval is not None
        assert (mean["mean"], mean["low"], mean["high"]) == (interval.mean, interval.low, interval.high)


def test_baselines_are_there_unless_they_are_unwanted(sales: Path) -> None:
    models = json.loads(run(str(sales), *COLUMNS, "--json"))["models"]
    assert list(models) == [TIFUKNN, *BASELINES]
    assert f"{models['GP-TopFreq']['recall@10']['mean']:.4f} ±" in run(str(sales), *COLUMNS)
    assert "GP-TopFreq" not in run(str(sales), *COLUMNS, "--no-baselines")


def test_baselines_of_the_field_on_request(sales: Path) -> None:
    wanted = ["--no-baselines", "--baseline", "UP-CF@r", "--baseline", "TREx repetition"]
    assert list(json.loads(run(str(sales), *COLUMNS, *wanted, "--json"))["models"]) == [TIFUKNN, *FIELD_BASELINES]
    assert "not 'UP-CF'" in error(str(sales), *COLUMNS, "--baseline", "UP-CF")


def test_keysets(sales: Path, tmp_path: Path) -> None:
    """The test users of each keyset, with the mean over keysets; more than one keyset are one figure."""
    users = [str(user) for user in range(1, 41)]
    held = hold_out_last(read_table(sales, user="customer", basket="receipt", item="article", time="date"))
    assert held.future is not None
    asked = [str(user) for user in held.future["user"].unique().sort()]
    files = [tmp_path / "first.json", tmp_path / "second.json"]
    for file, test in zip(files, (asked[:10], asked[10:12]), strict=True):
        train = [user for user in users if user not in test and int(user) in set(held.history["user"])]
        file.write_text(json.dumps({"item_num": 3, "train": train, "val": [], "test": test}))
    answers = [
        json.loads(run(str(sales), *COLUMNS, "--protocol", "reality-check", *options, "--no-baselines", "--json"))
        for options in (
            ["--keyset", str(files[0])],
            ["--keyset", str(files[1])],
            ["--keyset", str(files[0]), "--keyset", str(files[1])],
        )
    ]
    assert [answer["keysets"] for answer in answers] == [1, 1, 2]
    assert [answer["users"] for answer in answers] == [10, 2, 12]
    first, second, both = (answer["models"][TIFUKNN]["recall@10"]["mean"] for answer in answers)
    assert both == pytest.approx((first + second) / 2)
    assert first != second
    assert "needs a keyset" in error(str(sales), *COLUMNS, "--protocol", "uva")
    assert "not for 'hu'" in error(str(sales), *COLUMNS, "--protocol", "hu", "--keyset", str(files[0]))


def test_categories_of_a_file_or_of_the_data(sales: Path, tmp_path: Path) -> None:
    items = pl.read_csv(sales)["article"].unique().to_list()
    path = tmp_path / "categories.json"
    path.write_text(json.dumps({"even": items[::2], "odd": items[1::2]}))
    models = json.loads(run(str(sales), *COLUMNS, "--categories", str(path), "--json"))["models"]
    assert 0 < models[TIFUKNN]["diversity@10"]["mean"] < 0.21
    assert "diversity@10" not in run(str(sales), *COLUMNS)
    path.write_text("[]")
    assert "has no categories" in error(str(sales), *COLUMNS, "--categories", str(path))


def test_the_table_fits_a_terminal(sales: Path) -> None:
    table = run(str(sales), *COLUMNS)
    assert "explore_recall@20 " in table
    assert "…" not in table


def test_says_that_it_hid_the_last_baskets(sales: Path, tmp_path: Path) -> None:
    sentence = "each user's last basket was hidden"
    assert sentence in run(str(sales), *COLUMNS)
    assert "last history basket, hidden" in json.loads(run(str(sales), *COLUMNS, "--json"))["notes"]
    prepared = str(published(tmp_path))
    assert sentence not in run(prepared)
    assert "hidden" not in json.loads(run(prepared, "--json"))["notes"]


def test_a_future_in_the_data_is_predicted(tmp_path: Path) -> None:
    """No user buys an item twice, so there is nothing to repeat."""
    models = json.loads(run(str(published(tmp_path)), "--json"))["models"]
    assert models[TIFUKNN]["repeat_recall@10"] is None
    assert models[TIFUKNN]["recall@10"]["mean"] == 0
    assert "- \n" in run(str(published(tmp_path)))


def test_names_of_columns_matter(sales: Path) -> None:
    assert "no column user, basket, item" in error(str(sales))
    assert "no column clock" in error(str(sales), *COLUMNS[:-1], "clock")


@pytest.mark.parametrize("ending", ["parquet", "ndjson"])
def test_other_files(sales: Path, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"sales.{ending}"
    frame = pl.read_csv(sales)
    frame.write_parquet(path) if ending == "parquet" else frame.write_ndjson(path)
    from_csv, from_other = (json.loads(run(str(file), *COLUMNS, "--json")) for file in (sales, path))
    assert from_other["models"] == from_csv["models"]


def test_reading_options(sales: Path, tmp_path: Path) -> None:
    """The same purchases in another format give the same answer; skipped rows are counted on standard error."""
    frame = pl.read_csv(sales).with_columns(
        pieces=pl.lit(1, pl.Int64), day=pl.from_epoch("date").dt.strftime("%d.%m.%Y %H:%M:%S")
    )
    strange = frame.head(2).with_columns(pieces=pl.Series([0, -1]), article=pl.lit(10**9, pl.Int64))
    path = tmp_path / "sales.csv"
    pl.concat([frame, strange]).write_csv(path, separator=";")
    path.write_text(path.read_text() + "1;2;;3;1;01.01.2026 00:00:00\n")
    options = [*COLUMNS[:-1], "day", "--time-format", "%d.%m.%Y %H:%M:%S", "--separator", ";", "--skip-bad"]
    result = CliRunner().invoke(app, ["evaluate", str(path), *options, "--quantity", "pieces", "--json"])
    assert json.loads(result.stdout)["models"] == json.loads(run(str(sales), *COLUMNS, "--json"))["models"]
    skipped, reason, returns = result.stderr.splitlines()
    assert skipped == "Skipped 1 bad row:"
    assert reason.startswith("  no item: 1 row, the first in ")
    assert "1 row with 0, 0 returns taken out of the baskets they were in, 1 return of what was not bought" in returns


def test_bad_input_is_one_line(sales: Path) -> None:
    assert "nowhere.csv: neither a file nor one of the datasets tafeng" in error("nowhere.csv")
    assert "one of paper, all-users, hu, reality-check, uva, not 'mine'" in error(
        str(sales), *COLUMNS, "--protocol", "mine"
    )
    assert "no parameter 'k'. There are group_size, " in error(str(sales), *COLUMNS, "--params", "k=3")
    assert "Did you mean 'neighbors'?" in error(str(sales), *COLUMNS, "--params", "neighbours=3")
    assert 'alpha must be "learned" or from 0 to 1, not 3' in error(str(sales), *COLUMNS, "--params", "alpha=3")


def test_params_default_to_the_paper_s(tmp_path: Path) -> None:
    """A file of this name is the paper's ValuedShopper; named parameters win, the others stay."""
    path = published(tmp_path).rename(tmp_path / "valuedshopper.parquet")
    answer = json.loads(run(str(path), "--params", "neighbors=2", "--json"))
    assert Params(**answer["params"]) == Params(group_size=7, basket_decay=1.0, group_decay=0.6, neighbors=2, alpha=0.7)


def test_as_a_program(sales: Path) -> None:
    """Standard output is JSON and nothing else; bars and errors go to standard error."""
    program = [sys.executable, "-c", "from unbasket.cli import app; app()", "evaluate"]
    good = subprocess.run(
        [*program, str(sales), *COLUMNS, "--json"], capture_output=True, text=True, check=False, env=os.environ
    )
    assert good.returncode == 0, good.stderr
    assert list(json.loads(good.stdout)["models"]) == [TIFUKNN, *BASELINES]
    bad = subprocess.run([*program, "nowhere.csv"], capture_output=True, text=True, check=False, env=os.environ)
    assert bad.returncode == 2
    assert bad.stdout == ""
    assert bad.stderr.strip().startswith("Error: nowhere.csv")
    assert "Traceback" not in bad.stderr


def test_forgetting(tmp_path: Path) -> None:
    """The benchmark with the categories of a file: ours is the retrained model, and unknown words are named."""
    shop = generate(users=50, seed=2, baskets_per_user=8, basket_size=5, items=60)
    assert shop.items is not None
    sales, categories = tmp_path / "sales.csv", tmp_path / "categories.json"
    shop.history.write_csv(sales)
    kinds = shop.items.group_by("category").agg("item")
    categories.write_text(json.dumps(dict(kinds.iter_rows())))
    options = [str(sales), "--categories", str(categories), "--forget", "--params", PARAMS_TEXT]
    answer = json.loads(run(*options, "--category", "dairy", "--json"))
    assert {row["divergence"] for row in answer["rows"] if row["method"] == "ours"} == {0.0}
    assert {row["seed"] for row in answer["rows"]} == {2, 3, 5, 7, 11}
    table = run(*options, "--category", "dairy", "--category", "moon")
    assert "No category has 'moon' in its name" in table
    assert "retraining" in table
    assert "Means over 5 seeds" in table
    assert "no category has 'moon'" in error(*options, "--category", "moon")
    assert "--forget needs the categories" in error(str(sales), "--forget")
    assert "--category 'dairy' is for --forget" in error(str(sales), "--category", "dairy")
