"""`unbasket recommend` for many users, into a file."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.running import error, run
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli import app
from unbasket.domain.ids import Id


def rows_of(file: Path) -> list[dict[str, Any]]:
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".parquet": pl.read_parquet,
        ".csv": pl.read_csv,
        ".ndjson": pl.read_ndjson,
    }
    return readers[file.suffix](file).to_dicts()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".ndjson"])
def test_all_users(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("unbasket.cli._shared.recommendation_file._CHUNK", 1)
    output = tmp_path / f"recs{ending}"
    with ub.open(db, read_only=True) as rec:
        users, expected = len(rec), rec.recommend_frame(n=3, columns=["name", "color"], only_new=True, exclude=[13])
    filters = ["--only-new", "--exclude", 13, "--column", "name", "--column", "color", "-n", 3]
    answer = json.loads(run("recommend", "--all", "--db", db, "--output", output, *filters, "--json"))
    assert answer == {"output": str(output), "users": users, "unknown": 0, "rows": len(expected)}
    assert rows_of(output) == expected.to_dicts()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("recs")] == [output.name]


def test_a_file_is_written_in_chunks_and_completely_or_not_at_all(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, real, parts = tmp_path / "recs.parquet", ub.DurableRecommender.recommend_many, []

    def recommend_some(rec: ub.DurableRecommender, users: list[Id], *arguments: Any, **filters: Any) -> Any:
        parts.append(len(users))
        if failing and len(parts) == 2:
            raise ub.ClosedError("on the way")
        return real(rec, users, *arguments, **filters)

    monkeypatch.setattr("unbasket.cli._shared.recommendation_file._CHUNK", 2)
    monkeypatch.setattr(ub.DurableRecommender, "recommend_many", recommend_some)
    failing = False
    run("recommend", "--all", "--db", db, "--output", output)
    assert parts == [2, 1]
    before = output.read_bytes()
    failing = True
    parts.clear()
    assert "on the way" in error("recommend", "--all", "--db", db, "--output", output, "-n", 1)
    assert output.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("recs")] == [output.name]


def test_users_of_a_file(db: Path, tmp_path: Path) -> None:
    chosen, output = tmp_path / "chosen.txt", tmp_path / "recs.csv"
    chosen.write_text("ann\n\n  zoe \nann\n")
    result = CliRunner().invoke(
        app, ["recommend", "--users", str(chosen), "--db", str(db), "--output", str(output), "-n", "1"]
    )
    assert result.stdout == f"{output}: 1 recommendation for 1 user\n"
    assert f"Nothing is held about 1 user of {chosen}" in result.stderr
    assert [(row["user"], row["item"], row["rank"]) for row in rows_of(output)] == [("ann", 10, 1)]
    chosen.write_text("")
    run("recommend", "--users", chosen, "--db", db, "--output", output)
    assert output.read_text() == "user,item,score,rank\n"


def test_ids_have_the_types_of_the_shop(tmp_path: Path) -> None:
    db, output = tmp_path / "shop.db", tmp_path / "recs.parquet"
    with ub.open(db) as rec:
        rec.learn(17, ["18"], basket=1)
    run("recommend", "--all", "--db", db, "--output", output, "-n", 1)
    assert [(row["user"], row["item"]) for row in rows_of(output)] == [(17, "18")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ([], "name one USER"),
        (["ann", "--all", "--output", "recs.csv"], "name one USER"),
        (["--all", "--users", "ids.txt", "--output", "recs.csv"], "name one USER"),
        (["--all"], "say where to write"),
        (["ann", "--output", "recs.csv"], "not with one USER"),
        (["ann", "--column", "name"], "not with one USER"),
        (["--all", "--output", "recs.csv", "--cart", "10"], "go with one USER"),
        (["ann", "--explain", "--cart", "10"], "leave out --cart"),
        (["--all", "--output", "recs.xlsx"], "recs.xlsx must end in .parquet, .csv, .ndjson"),
        (["--all", "--output", "absent/recs.csv"], "cannot write absent/recs.csv: No such file"),
        (["--users", "absent.txt", "--output", "recs.csv"], "cannot read absent.txt: No such file"),
        (["--all", "--output", "recs.csv", "--column", "score"], "'score' can't be a further column"),
    ],
)
def test_bad_options_for_many_users(
    db: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(db.parent)
    assert complaint in error("recommend", *arguments, "--db", db)
    assert not list(db.parent.glob("**/recs*"))


FORMULAS = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1)",
    "\t=1+1",
    "\r=1+1",
    "\n=1+1",
    " =1+1",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff201",
]
HARMLESS = ["tea", "1-1", "a=b", "'quoted", "7"]


def test_a_spreadsheet_runs_no_formula(tmp_path: Path) -> None:
    """Ids, names and headings that would be formulas begin with an apostrophe; all others, and numbers, stay."""
    db, output, texts = tmp_path / "shop.db", tmp_path / "recs.csv", FORMULAS + HARMLESS
    with ub.open(db) as rec:
        for number, text in enumerate(texts):
            rec.learn(text, texts, basket=text)
            rec.describe({"item": [text], "name": [text], "=column": [text], "profit": [-number]}, category=None)
    columns = ["--column", "name", "--column", "=column", "--column", "profit"]
    run("recommend", "--all", "--db", db, "--output", output, "-n", 50, *columns, "--spreadsheet")
    table = pl.read_csv(output)
    assert table.columns == ["user", "item", "score", "rank", "name", "'=column", "profit"]
    expected = {f"'{text}" for text in FORMULAS} | set(HARMLESS)
    for column in ("user", "item", "name", "'=column"):
        assert set(table[column]) == expected
    assert set(table["profit"]) == {-number for number in range(len(texts))}
    run("recommend", "--all", "--db", db, "--output", output, "-n", 50, *columns)
    assert set(pl.read_csv(output)["item"]) == set(texts)  # for programs, as they are


def test_only_csv_files_are_for_spreadsheets(db: Path, tmp_path: Path) -> None:
    line = ["recommend", "--all", "--db", db, "--spreadsheet", "--output"]
    assert "--spreadsheet is for CSV files" in error(*line, tmp_path / "recs.parquet")
    assert "go with --users or --all" in error("recommend", "ann", "--db", db, "--spreadsheet")
