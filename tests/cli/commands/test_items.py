"""`unbasket items`: names, and availability."""

import json
from pathlib import Path

import pytest
from tests.cli.running import error, recommended, run

import unbasket as ub


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


def test_items_have_the_type_of_the_shop(db: Path, tmp_path: Path) -> None:
    (tmp_path / "more.csv").write_text("item,name\n11,Bread\nx1,Ex\n")
    message = error("items", tmp_path / "more.csv", "--db", db)
    assert "item id 'x1' is not written as a whole number" in message
    assert "`unbasket ids to-text --kind item`" in message
    run("ids", "to-text", "--kind", "item", "--db", db)
    run("items", tmp_path / "more.csv", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert [rec.catalog[item].name for item in ("x1", 11, "11", 55)] == ["Ex", "Bread", "Bread", None]
    (tmp_path / "more.csv").write_text("item,name\n11,Brown bread\n")
    run("items", tmp_path / "more.csv", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.catalog["11"].name == "Brown bread"


def test_items_that_are_out_of_stock(db: Path) -> None:
    before = recommended("ann", "--db", db)
    hidden = run("items", "--hide", 10, "--hide", 77, "--db", db)
    assert "2 items hidden, 0 shown; 2 hidden now" in hidden
    assert recommended("ann", "--db", db) == [item for item in before if item != 10]
    answer = json.loads(run("items", "--show", 10, "--hide", 99, "--db", db, "--json"))
    assert answer == {"database": str(db), "hidden": 1, "shown": 1, "all_hidden": 2}
    assert f"{db}: 2 items are hidden: 77, Gin (99)" in run("items", "--db", db)
    assert json.loads(run("items", "--db", db, "--json")) == [
        {"item": 77, "name": None, "category": None},
        {"item": 99, "name": "Gin", "category": "Alcohol"},
    ]
    run("items", db.with_name("items.csv"), "--show", 99, "--show", '"77"', "--db", db)
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
