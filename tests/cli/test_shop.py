"""Commands on a shop's database: items, learn, recommend, explain, history, verify, export, backup."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.cli.running import PROGRAM, error, run
from typer.testing import CliRunner

import unbasket as ub
from unbasket.cli import app
from unbasket.domain.ids import Id

SALES = "user,basket,item,time\nann,1,10,100\nann,1,11,100\nann,2,10,200\nbob,1,10,150\nbob,1,12,150\n7,1,13,9\n"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Users are text, since ann is; items and baskets are numbers."""
    path = tmp_path / "shop.db"
    run("import", "-", "--db", path, "--neighbors", 2, stdin=SALES)
    (tmp_path / "items.csv").write_text("item,name,category\n10,Milk [fresh],Dairy\n12,Wine,Alcohol\n99,Gin,Alcohol\n")
    run("items", tmp_path / "items.csv", "--db", path)
    return path


def recommended(*arguments: object) -> list[object]:
    return [entry["item"] for entry in json.loads(run("recommend", *arguments, "--json"))["items"]]


def test_the_database_may_come_from_the_environment(db: Path) -> None:
    result = CliRunner().invoke(app, ["history", "7"], env={"UNBASKET_DB": str(db)})
    assert result.exit_code == 0
    assert "13" in result.stdout


def test_items_are_called_by_their_names(db: Path, tmp_path: Path) -> None:
    with ub.open(db, read_only=True) as rec:
        assert rec.catalog[10] == ub.Product(10, "Milk [fresh]", "Dairy")
        assert rec.catalog[99].name == "Gin"
    table = tmp_path / "table.csv"
    table.write_text("sku;title;kind;price\n11;Bread;Bakery;1.80\n")
    columns = ["--item", "sku", "--name", "title", "--category", "kind", "--separator", ";"]
    answer = json.loads(run("items", table, "--db", db, *columns, "--json"))
    assert answer == {"database": str(db), "items": 1, "never_bought": 0}
    with ub.open(db, read_only=True) as rec:
        assert rec.catalog[11] == ub.Product(11, "Bread", "Bakery", {"price": "1.80"})
    assert "Bread (11), Milk [fresh] (10)" not in run("history", "ann", "--db", db)
    assert "Milk [fresh] (10), Bread (11)" in run("history", "ann", "--db", db)


def test_items_of_a_shop_with_numbers_and_texts(db: Path, tmp_path: Path) -> None:
    run("learn", "ann", "x1", "--basket", 5, "--db", db)
    (tmp_path / "more.csv").write_text("item,name\nx1,Ex\n11,Bread\n55,Text\n")
    run("items", tmp_path / "more.csv", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert [rec.catalog[item].name for item in ("x1", 11, "55", 55)] == ["Ex", "Bread", "Text", None]


def test_items_that_are_out_of_stock(db: Path) -> None:
    before = recommended("ann", "--db", db)
    hidden = run("items", "--hide", 10, "--hide", "new", "--db", db)
    assert "2 items hidden, 0 shown; 2 hidden now" in hidden
    assert recommended("ann", "--db", db) == [item for item in before if item != 10]
    answer = json.loads(run("items", "--show", 10, "--hide", 99, "--db", db, "--json"))
    assert answer == {"database": str(db), "hidden": 1, "shown": 1, "all_hidden": 2}
    assert f"{db}: 2 items are hidden: Gin (99), new" in run("items", "--db", db)
    assert json.loads(run("items", "--db", db, "--json")) == [
        {"item": 99, "name": "Gin", "category": "Alcohol"},
        {"item": "new", "name": None, "category": None},
    ]
    with ub.open(db) as rec:
        rec.learn("ann", ["text"], basket=9)  # a number that nobody has bought would be a text from now on
    run("items", db.with_name("items.csv"), "--show", 99, "--show", "new", "--db", db)
    assert run("items", "--db", db) == f"{db}: no item is hidden\n"
    assert "item 10 can't be hidden and shown" in error("items", "--hide", 10, "--show", 10, "--db", db)


def test_bad_items(db: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("item,name\n10,Milk\n,Wine\n")
    assert "bad.csv, line 3: no item" in error("items", bad, "--db", db)
    assert "no column title" in error("items", bad, "--db", db, "--name", "title")
    assert "no such file" in error("items", tmp_path / "absent.csv", "--db", db)
    bad.write_text("item;name\n10;Milk\n")
    assert "--separator ';' splits them" in error("items", bad, "--db", db)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"item": 1.5, "name": "x"}', "column item holds Float64; ids are text or whole numbers"),
        ('{"item": [1, 2], "name": "x"}', "column item holds List(Int64)"),
        ('{"item": 1, "name": ["x"]}', "column name holds List(String), not text"),
        ('{"item": 1, "name": {"de": "x"}}', "column name holds Struct"),
        ('{"item": true, "name": "x"}', "column item holds Boolean"),
    ],
)
def test_items_that_are_not_ids_and_texts(db: Path, tmp_path: Path, line: str, complaint: str) -> None:
    bad = tmp_path / "bad.ndjson"
    bad.write_text(line + "\n")
    assert complaint in error("items", bad, "--db", db)


def test_a_name_may_be_a_number(db: Path, tmp_path: Path) -> None:
    (tmp_path / "names.ndjson").write_text('{"item": 11, "name": 4711}\n')
    run("items", tmp_path / "names.ndjson", "--db", db)
    assert "4711 (11)" in run("history", "ann", "--db", db)


def test_times_are_dates_where_they_are_dates(tmp_path: Path) -> None:
    for number, (moment, shown) in enumerate(
        [
            ("2026-05-01", "2026-05-01 "),
            ("2026-05-01T18:30", "2026-05-01 18:30:00"),
            ("20260501", "20260501 "),
            ("3", "3"),
        ]
    ):
        db = tmp_path / f"{number}.db"
        run("import", "-", "--db", db, stdin=f"user,basket,item,time\nann,1,milk,{moment}\n")
        assert f" {shown}" in run("history", "ann", "--db", db)
        assert f" {shown}" in run("explain", "ann", "milk", "--db", db)
        assert isinstance(json.loads(run("history", "ann", "--db", db, "--json"))[0]["time"], int)


def test_learn_adds_replaces_or_leaves(db: Path) -> None:
    assert "Added basket 3 of user ann: Wine (12), 14\n" in run("learn", "ann", 12, 14, "--basket", 3, "--db", db)
    assert "was known and is as it was" in run("learn", "ann", 14, 12, "--basket", 3, "--db", db)
    answer = json.loads(run("learn", "ann", 12, "--basket", 3, "--time", "1970-01-01T00:02", "--db", db, "--json"))
    assert answer == {"learned": "replaced", "user": "ann", "basket": 3, "time": 120, "items": [12]}
    run("learn", '"17"', "x", "--basket", 1, "--time", "-4", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.history("ann")[1] == ub.Basket(3, 120, (12,))
        assert rec.history("17") == [ub.Basket(1, -4, ("x",))]
    for moment in ("soon", "+-5", "--5", "-", "²", "1_0", ""):
        assert f"not {moment!r}" in error("learn", "ann", 1, "--basket", 3, f"--time={moment}", "--db", db)
    assert "does not fit into 64 bits" in error("learn", "ann", 1, "--basket", 3, f"--time={'1' * 5000}", "--db", db)
    assert json.loads(run("learn", "ann", 12, "--basket", 3, "--time=+5", "--db", db, "--json"))["time"] == 5
    assert "must not be empty" in error("learn", "ann", "", "--basket", 3, "--db", db)


def test_recommend(db: Path) -> None:
    with ub.open(db, read_only=True) as rec:
        assert recommended("ann", "--db", db) == [item for item, _ in rec.recommend("ann")]
    assert recommended("ann", "--db", db, "-n", 1) == [10]
    assert recommended("ann", "--db", db, "--only-new") == [12, 13]
    assert 10 not in recommended("ann", "--db", db, "--exclude", 10)
    assert "Milk [fresh] (10)" in run("recommend", "ann", "--db", db)
    nothing = ["--only-new", "--exclude", 12, "--exclude", 13]
    assert "Nothing to recommend to user ann" in run("recommend", "ann", "--db", db, *nothing)
    assert "n must be a whole number of at least 0, not -1" in error("recommend", "ann", "--db", db, "-n", -1)


def test_recommend_with_filters_and_a_cart(db: Path) -> None:
    assert recommended("ann", "--db", db, "--only", 12, "--only", 11, "-n", 1) == [11]
    assert recommended("ann", "--db", db, "--category", "Alcohol", "--category", "Dairy") == [10, 12]
    assert recommended("ann", "--db", db, "--category", "Dairy", "--only", 12) == []
    with ub.open(db, read_only=True) as rec:
        for user in ("ann", "zoe"):
            expected = [item for item, _ in rec.recommend(user, cart=[12, 99])]
            assert recommended(user, "--db", db, "--cart", 12, "--cart", 99) == expected
    answer = json.loads(run("recommend", "zoe", "--db", db, "--cart", 12, "--json"))
    assert answer["known"] is False
    assert all("score" in entry for entry in answer["items"])


def test_the_fallback(db: Path) -> None:
    assert recommended("zoe", "--db", db, "--fallback", "nothing") == []
    assert recommended("zoe", "--db", db, "--fallback-category", "Alcohol") == [12]
    assert recommended("zoe", "--db", db, "--fallback-category", "Alcohol", "--category", "Dairy") == [10]
    assert recommended("zoe", "--db", db, "--fallback-days", 7) == []
    run("learn", "ann", 14, "--basket", 9, "--time", int(time.time()), "--db", db)
    assert recommended("zoe", "--db", db, "--fallback-days", 7) == [14]
    assert "popular or nothing, not 'all'" in error("recommend", "zoe", "--db", db, "--fallback", "all")
    assert "one of s, ms, us, day, not 'h'" in error("recommend", "zoe", "--db", db, "--time-unit", "h")


def rows_of(file: Path) -> list[dict[str, Any]]:
    readers: dict[str, Callable[[Path], pl.DataFrame]] = {
        ".parquet": pl.read_parquet,
        ".csv": pl.read_csv,
        ".ndjson": pl.read_ndjson,
    }
    return readers[file.suffix](file).to_dicts()


@pytest.mark.parametrize("ending", [".parquet", ".csv", ".ndjson"])
def test_recommending_to_all(db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    monkeypatch.setattr("unbasket.cli._shared.batch._AT_A_TIME", 1)
    output = tmp_path / f"recs{ending}"
    with ub.open(db, read_only=True) as rec:
        users, expected = len(rec), rec.recommend_frame(n=3, columns=["name", "color"], only_new=True, exclude=[13])
    filters = ["--only-new", "--exclude", 13, "--column", "name", "--column", "color", "-n", 3]
    answer = json.loads(run("recommend", "--all", "--db", db, "--output", output, *filters, "--json"))
    assert answer == {"output": str(output), "users": users, "unknown": 0, "rows": len(expected)}
    assert rows_of(output) == expected.to_dicts()
    assert [file.name for file in tmp_path.iterdir() if file.name.startswith("recs")] == [output.name]


def test_a_batch_is_made_in_parts_and_is_there_completely_or_not_at_all(
    db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, real, parts = tmp_path / "recs.parquet", ub.DurableRecommender.recommend_many, []

    def recommend_some(rec: ub.DurableRecommender, users: list[Id], *arguments: Any, **filters: Any) -> Any:
        parts.append(len(users))
        if failing and len(parts) == 2:
            raise ub.ClosedError("on the way")
        return real(rec, users, *arguments, **filters)

    monkeypatch.setattr("unbasket.cli._shared.batch._AT_A_TIME", 2)
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


def test_recommending_to_some(db: Path, tmp_path: Path) -> None:
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


def test_ids_of_both_kinds_are_written_as_texts(tmp_path: Path) -> None:
    db, output = tmp_path / "shop.db", tmp_path / "recs.parquet"
    with ub.open(db) as rec:
        rec.learn(17, ["17"], basket=1)
        rec.learn("17", [17], basket=1)
    run("recommend", "--all", "--db", db, "--output", output, "-n", 1)
    assert [(row["user"], row["item"]) for row in rows_of(output)] == [("17", '"17"'), ('"17"', "17")]


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
def test_recommending_to_many_the_wrong_way(
    db: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], complaint: str
) -> None:
    monkeypatch.chdir(db.parent)
    assert complaint in error("recommend", *arguments, "--db", db)
    assert not list(db.parent.glob("**/recs*"))


def test_recommend_explains(db: Path) -> None:
    for entry in json.loads(run("recommend", "ann", "--db", db, "--explain", "--json"))["items"]:
        assert entry["own_share"] + entry["neighbors_share"] == pytest.approx(entry["score"])
    assert "1 of 2" in run("recommend", "ann", "--db", db, "--explain")


def test_an_unknown_user_gets_what_is_popular(db: Path) -> None:
    answer = json.loads(run("recommend", "zoe", "--db", db, "-n", 1, "--json"))
    milk = {"item": 10, "name": "Milk [fresh]", "category": "Dairy", "baskets": 3}
    assert answer == {"user": "zoe", "known": False, "items": [milk]}
    assert "Nothing is held about user zoe" in run("recommend", "zoe", "--db", db)
    assert recommended("zoe", "--db", db, "--exclude", 10, "-n", 1) == [11]
    assert "not -1" in error("recommend", "zoe", "--db", db, "-n", -1)


def test_explain(db: Path) -> None:
    answer = json.loads(run("explain", "ann", 10, "--db", db, "--json"))
    assert (answer["name"], [basket["basket"] for basket in answer["baskets"]]) == ("Milk [fresh]", [1, 2])
    own = sum(basket["share"] for basket in answer["baskets"])
    assert own + answer["neighbors_share"] == pytest.approx(answer["score"])
    assert f"Milk [fresh] (10) scores {answer['score']:.4f} for user ann" in run("explain", "ann", 10, "--db", db)
    assert "in none of the user's baskets" in run("explain", "ann", 12, "--db", db)


def test_a_guest_becomes_an_account(db: Path) -> None:
    assert "users 'ann' and 'bob' both have a basket 1" in error("rename", "ann", "bob", "--db", db)
    run("learn", "guest", 12, "--basket", 77, "--db", db)
    assert "1 basket of user guest moved to user ann. Receipt 1, request" in run("rename", "guest", "ann", "--db", db)
    assert [basket["basket"] for basket in json.loads(run("history", "ann", "--db", db, "--json"))] == [1, 2, 77]
    answer = json.loads(run("rename", "bob", "robert", "--db", db, "--json"))
    assert (answer["user"], answer["baskets"], answer["purchases"]) == ("robert", 1, 2)
    assert (answer["receipt"]["scope"], answer["receipt"]["users"]) == ("id", 1)
    assert "nothing is held about user 'bob'" in error("rename", "bob", "ann", "--db", db)
    assert "can't be renamed to the same id" in error("rename", "ann", "ann", "--db", db)


def test_what_a_user_never_wants_to_see(db: Path) -> None:
    assert 12 in recommended("ann", "--db", db)
    answer = json.loads(run("suppress", "ann", 12, "--db", db, "--json"))
    assert answer == {"user": "ann", "item": 12, "suppressed": True, "changed": True}
    assert 12 not in recommended("ann", "--db", db)
    assert "Wine (12) is never recommended to user ann, as before" in run("suppress", "ann", 12, "--db", db)
    assert "Wine (12) may be recommended to user ann again" in run("allow", "ann", 12, "--db", db)
    assert "Wine (12) may be recommended to user ann, as before" in run("allow", "ann", 12, "--db", db)
    assert 12 in recommended("ann", "--db", db)


def test_a_suppressed_item_that_nobody_has_bought_is_allowed_by_its_text(db: Path) -> None:
    run("learn", "bob", "gin", "--basket", 5, "--db", db)  # from now on, a number that nobody has bought means a text
    with ub.open(db) as rec:
        rec.suppress("ann", 4711)
    answer = json.loads(run("allow", "ann", 4711, "--db", db, "--json"))
    assert answer == {"user": "ann", "item": 4711, "suppressed": False, "changed": True}


def test_history_and_export(db: Path, tmp_path: Path) -> None:
    baskets = json.loads(run("history", "ann", "--db", db, "--json"))
    assert [(basket["basket"], basket["time"]) for basket in baskets] == [(1, 100), (2, 200)]
    assert baskets[1]["items"] == [{"item": 10, "name": "Milk [fresh]", "category": "Dairy"}]
    run("suppress", "ann", 12, "--db", db)
    assert "Never recommended to them: Wine (12)" in run("history", "ann", "--db", db)
    suppressed = [{"item": 12, "name": "Wine", "category": "Alcohol"}]
    expected = {"format": "unbasket user", "version": 1, "user": "ann", "baskets": baskets, "suppressed": suppressed}
    assert json.loads(run("export", "ann", "--db", db)) == expected
    run("export", "ann", "--db", db, "--output", tmp_path / "ann.json")
    assert json.loads((tmp_path / "ann.json").read_text(encoding="utf-8")) == expected
    assert "cannot write" in error("export", "ann", "--db", db, "--output", tmp_path / "no" / "ann.json")


@pytest.mark.parametrize(
    "command",
    [
        ["history", "zoe"],
        ["export", "zoe"],
        ["explain", "zoe", "10"],
        ["suppress", "zoe", "10"],
        ["allow", "zoe", "10"],
    ],
)
def test_an_unknown_user_is_named(db: Path, command: list[str]) -> None:
    assert "nothing is held about user 'zoe'" in error(*command, "--db", db)


def test_verify(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "the model of 3 users is, bit by bit, that of what remains" in run("verify", "--db", db)
    assert json.loads(run("verify", "ann", "--db", db, "--json")) == {"ok": True, "users": 1, "mismatches": []}
    assert "nothing is held about user 'zoe', and every record belongs to" in run("verify", "zoe", "--db", db)
    bad = ub.Verification(ok=False, users=1, mismatches=("vector of 'ann'",))
    monkeypatch.setattr(ub.Recommender, "verify", lambda *_: bad)
    result = CliRunner().invoke(app, ["verify", "--db", str(db)])
    assert (result.exit_code, result.stdout) == (1, "")
    assert "vector of 'ann'" in result.stderr
    assert json.loads(run("verify", "--db", db, "--json", code=1))["mismatches"] == ["vector of 'ann'"]


def test_backup(db: Path, tmp_path: Path) -> None:
    target = tmp_path / "backup.db"
    assert json.loads(run("backup", target, "--db", db, "--json"))["bytes"] > 0
    with ub.open(target, read_only=True) as copy, ub.open(db, read_only=True) as rec:
        assert copy.digest() == rec.digest()
    assert "backup.db exists" in error("backup", target, "--db", db)
    assert "Error: " in error("backup", tmp_path / "no" / "backup.db", "--db", db)


READING = [
    ["recommend", "ann"],
    ["explain", "ann", "10"],
    ["history", "ann"],
    ["export", "ann"],
    ["verify"],
    ["receipts", "list"],
    ["receipts", "export"],
    ["receipts", "key"],
]
WRITING = [
    ["rename", "ann", "zoe"],
    ["suppress", "ann", "10"],
    ["allow", "ann", "10"],
    ["learn", "ann", "10", "--basket", "9"],
    ["forget", "ann"],
    ["receipts", "anonymize", "--yes"],
]


@pytest.mark.parametrize("command", [*READING, *WRITING, ["backup", "b.db"]])
def test_a_mistyped_name_makes_no_database(tmp_path: Path, command: list[str]) -> None:
    assert "does not exist" in error(*command, "--db", tmp_path / "shpo.db")
    assert list(tmp_path.iterdir()) == []


def test_beside_a_service_one_can_read_but_not_write(db: Path, tmp_path: Path) -> None:
    service = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, unbasket as ub\n"
            "with ub.open(sys.argv[1]) as rec:\n"
            "    rec.learn('eve', [10], basket=1)\n"
            "    print('open', flush=True)\n"
            "    sys.stdin.read()",
            str(db),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ,
    )
    try:
        assert service.stdout is not None
        assert service.stdout.readline() == b"open\n"
        for command in READING:
            run(*command, "--db", db)
        run("backup", tmp_path / "b.db", "--db", db)
        assert "10" in run("history", "eve", "--db", db)
        for command in [*WRITING, ["import", "-"], ["items", str(tmp_path / "items.csv")]]:
            assert f"(process {service.pid})" in error(*command, "--db", db, stdin=SALES)
    finally:
        service.communicate(b"")


def test_as_a_program(db: Path) -> None:
    """Standard output is data and nothing else; errors go to standard error."""
    good = subprocess.run(
        [*PROGRAM, "recommend", "ann", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "UNBASKET_DB": str(db)},
    )
    assert (good.returncode, good.stderr) == (0, "")
    assert json.loads(good.stdout)["known"] is True
    bad = subprocess.run(
        [*PROGRAM, "history", "zoe", "--db", str(db)], capture_output=True, text=True, check=False, env=os.environ
    )
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr == "Error: nothing is held about user 'zoe'\n"
