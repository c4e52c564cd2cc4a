"""`unbasket import`: all kinds of files, all or nothing."""

import gzip
import json
import re
import shlex
import signal
import subprocess
import time
from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import polars as pl
import pytest
from tests.cli.running import PROGRAM, error, interruptible, run, warnings

import unbasket as ub
from unbasket.datasets import generate

SALES = "user,basket,item,time\nann,1,milk,100\nann,1,bread,100\nbob,2,milk,150\nann,3,tea,50\n"


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "shop.db"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def histories(db: Path) -> dict[object, list[ub.Basket]]:
    with ub.open(db, read_only=True) as rec:
        return {user: rec.history(user) for user in rec.users()}


EXPECTED = {
    "ann": [ub.Basket(3, 50, ("tea",)), ub.Basket(1, 100, ("bread", "milk"))],
    "bob": [ub.Basket(2, 150, ("milk",))],
}


def test_csv_and_the_report(tmp_path: Path, db: Path) -> None:
    report = json.loads(run("import", write(tmp_path / "sales.csv", SALES), "--db", db, "--json"))
    assert report.pop("seconds") >= 0
    counts = {"users": 2, "baskets": 3, "rows": 4, "purchases": 4, "repeated": 0, "skipped": 0, "reasons": []}
    assert report == {"database": str(db), **counts}
    assert histories(db) == EXPECTED
    assert "imported 4 purchases in 3 baskets of 2 users" in run("import", tmp_path / "sales.csv", "--db", db)
    assert histories(db) == EXPECTED


@pytest.mark.parametrize("ending", ["csv.gz", "parquet", "ndjson"])
def test_other_files(tmp_path: Path, db: Path, ending: str) -> None:
    frame, path = pl.read_csv(SALES.encode()), tmp_path / f"sales.{ending}"
    if ending == "csv.gz":
        path.write_bytes(gzip.compress(SALES.encode()))
    else:
        getattr(frame, f"write_{ending}")(path)
    run("import", path, "--db", db)
    assert histories(db) == EXPECTED


@pytest.mark.parametrize("options", [[], ["--format", "csv"]])
def test_csv_from_standard_input(db: Path, options: list[str]) -> None:
    run("import", "-", "--db", db, *options, stdin=SALES)
    assert histories(db) == EXPECTED


def test_ndjson_from_standard_input_with_lists(db: Path) -> None:
    run("import", "-", "--db", db, "--item", "items", stdin='{"user": 1, "basket": "b", "items": [5, 6], "time": 2}\n')
    assert histories(db) == {1: [ub.Basket("b", 2, (5, 6))]}


def test_a_pool_is_kept_with_the_seed_that_was_drawn(tmp_path: Path, db: Path) -> None:
    sales = write(tmp_path / "sales.csv", SALES)
    run("import", sales, "--db", db, "--pool", 1)
    with ub.open(db, read_only=True) as rec:
        params = rec.params
        assert {near.user for user in rec.users() for near in rec.similar_users(user)} < {"ann", "bob"}
    assert params == ub.Params(pool=1, pool_seed=params.pool_seed)
    assert params.pool_seed is not None
    run("import", sales, "--db", db, "--pool", 1)
    assert "has --pool 1, not 2" in error("import", sales, "--db", db, "--pool", 2)
    run("import", sales, "--db", tmp_path / "same.db", "--pool", 1, "--pool-seed", params.pool_seed)
    with ub.open(db, read_only=True) as one, ub.open(tmp_path / "same.db", read_only=True) as other:
        assert one.params == other.params
        assert one.digest() == other.digest()


def test_a_pool_is_suggested_to_a_large_shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sales = write(tmp_path / "sales.csv", SALES)
    assert warnings("import", sales, "--db", tmp_path / "small.db") == ""
    monkeypatch.setattr("unbasket.cli.commands.import_.LARGE", 2)
    assert warnings("import", sales, "--db", tmp_path / "with.db", "--pool", 1) == ""
    advice = warnings("import", sales, "--db", tmp_path / "large.db")
    assert "In a new database with --pool 20000, it compares with 20,000" in advice
    with ub.open(tmp_path / "large.db", read_only=True) as rec:
        assert rec.params.pool is None


def test_a_folder_is_one_import_in_the_order_of_names(tmp_path: Path, db: Path) -> None:
    folder = tmp_path / "sales"
    folder.mkdir()
    write(folder / "b.csv", "user,basket,item\n1,7,tea\n1,8,milk\n")
    write(folder / "a.csv", "user,basket,item\n1,9,milk\n1,8,rum\n")
    pl.DataFrame({"user": [1], "basket": [2], "item": ["gin"]}).write_parquet(folder / "c.parquet")
    write(folder / "notes.txt", "not a table")
    assert "5 purchases in 4 baskets of 1 user\n" in run("import", folder, "--db", db)
    assert histories(db) == {
        1: [
            ub.Basket(9, None, ("milk",)),
            ub.Basket(8, None, ("milk", "rum")),
            ub.Basket(7, None, ("tea",)),
            ub.Basket(2, None, ("gin",)),
        ]
    }


def test_a_folder_is_imported_as_a_whole_or_not(tmp_path: Path, db: Path) -> None:
    write(tmp_path / "a.csv", SALES)
    write(tmp_path / "b.csv", "user,basket,item,time\nann,,milk,7\n")
    assert "b.csv, line 2: no usable basket" in error("import", tmp_path, "--db", db)
    assert not db.exists()
    write(tmp_path / "b.csv", "user,basket,item\nann,9,milk\n")
    assert "b.csv: no column time" in error("import", tmp_path, "--db", db)
    write(tmp_path / "b.csv", "")
    assert "b.csv: the file is empty" in error("import", tmp_path, "--db", db)
    (tmp_path / "empty").mkdir()
    assert "has one of the endings .csv" in error("import", tmp_path / "empty", "--db", db)


def test_baskets_without_a_time_stay_without_and_in_the_order_of_the_file(tmp_path: Path, db: Path) -> None:
    run("import", write(tmp_path / "s.csv", "user,basket,item\n1,9,a\n2,1,a\n1,3,b\n1,9,c\n1,5,a\n"), "--db", db)
    assert histories(db)[1] == [ub.Basket(9, None, ("a", "c")), ub.Basket(3, None, ("b",)), ub.Basket(5, None, ("a",))]


def test_mapped_columns_dates_and_separator(tmp_path: Path, db: Path) -> None:
    file = write(tmp_path / "s.csv", "kunde;bon;artikel;tag\n1;2;3;14.11.2023\n")
    columns = ["--user", "kunde", "--basket", "bon", "--item", "artikel", "--time", "tag"]
    run("import", file, "--db", db, *columns, "--time-format", "%d.%m.%Y", "--separator", ";")
    assert histories(db) == {1: [ub.Basket(2, 1699920000, (3,))]}


def test_bad_rows_are_named_or_skipped_and_counted(tmp_path: Path, db: Path) -> None:
    file = write(tmp_path / "s.csv", SALES + "ann,4,,160\nann,5,tea,later\n")
    message = error("import", file, "--db", db)
    assert f"{file}, line 6: no usable item" in message
    assert "--skip-bad leaves out such rows" in message
    assert not db.exists()
    printed = run("import", file, "--db", db, "--skip-bad")
    assert "Skipped 2 bad rows:\n" in printed
    assert f"  no item: 1 row, the first in {file}, line 6\n" in printed
    assert f"  unreadable time: 1 row, the first in {file}, line 7: 'later'\n" in printed
    assert "`unbasket import --preview FILE` detects how values are written" in printed
    assert histories(db) == EXPECTED
    assert "standard input, line 2: no usable item" in error(
        "import", "-", "--db", db, stdin="user,basket,item\n1,2,\n"
    )


def test_parameters_of_a_new_database_stay(tmp_path: Path, db: Path) -> None:
    file = write(tmp_path / "s.csv", SALES)
    options = ["--group-size", 3, "--basket-decay", 0.5, "--group-decay", 1, "--neighbors", 2, "--alpha", 0]
    assert 'alpha must be "learned" or from 0 to 1, not 7.0' in error("import", file, "--db", db, "--alpha", 7)
    assert not db.exists()
    run("import", file, "--db", db, *options, "--grouping", "varying")
    expected = ub.Params(group_size=3, basket_decay=0.5, group_decay=1.0, neighbors=2, alpha=0.0, grouping="varying")
    with ub.open(db, read_only=True) as rec:
        assert rec.params == expected
    run("import", file, "--db", db, "--neighbors", 2)
    assert f"{db} has --neighbors 2, not 9" in error("import", file, "--db", db, "--neighbors", 9)


EVENTS = (
    '{"event": "learn", "user": 1, "basket": 2, "items": [3, 4]}\n\n'
    '{"event": "learn", "user": 2, "basket": 1, "items": ["x"], "time": 7}\n'
    '{"event": "forget", "user": 1, "item": 4}\n'
)


def test_events_happen_in_their_order(tmp_path: Path, db: Path) -> None:
    report = json.loads(run("import", write(tmp_path / "e.ndjson", EVENTS), "--db", db, "--json"))
    counts = {key: report[key] for key in ("events", "users", "baskets", "forgets", "forgotten", "skipped")}
    assert counts == {"events": 3, "users": 2, "baskets": 2, "forgets": 1, "forgotten": 1, "skipped": 0}
    assert histories(db) == {1: [ub.Basket(2, None, ("3",))], 2: [ub.Basket(1, 7, ("x",))]}
    assert "3 events of 2 users" in run("import", "-", "--db", db, stdin=EVENTS)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('{"event": "learn", "user": 1}', "needs the field 'basket'"),
        ('{"event": "buy"}', "must be 'learn' or 'forget', not 'buy'"),
        ('{"event": "forget", "user": ""}', "user id must not be empty"),
        ("[]", "an event must be an object"),
        ("{", "this is not JSON"),
    ],
)
def test_bad_events_are_named_or_skipped(tmp_path: Path, db: Path, line: str, complaint: str) -> None:
    file = write(tmp_path / "e.jsonl", EVENTS + line + "\n")
    message = error("import", file, "--db", db)
    assert f"{file}, line 5: " in message
    assert complaint in message
    assert not db.exists()
    printed = run("import", file, "--db", db, "--skip-bad")
    assert f"Skipped 1 bad row:\n  not an event: 1 row, the first in {file}, line 5: " in printed
    assert "--preview is for tables" in error("import", "--preview", file)


def test_events_and_tables_do_not_mix(tmp_path: Path, db: Path) -> None:
    write(tmp_path / "a.ndjson", EVENTS)
    write(tmp_path / "b.csv", SALES)
    assert "b.csv holds no events" in error("import", tmp_path, "--db", db)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["absent.csv"], "absent.csv: no such file"),
        (["shop.xlsx"], "shop.xlsx: "),
        (["-"], "standard input: the file is empty"),
        (["sales.csv", "--format", "csv"], "--format is for standard input"),
    ],
)
def test_bad_input(db: Path, arguments: list[str], complaint: str) -> None:
    assert complaint in error("import", *arguments, "--db", db, stdin="")
    assert not db.exists()


def test_compressed_standard_input_is_refused(db: Path) -> None:
    assert "not a compressed or a Parquet file" in error("import", "-", "--db", db, stdin=gzip.compress(b"user"))


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    file = write(tmp_path / "s.csv", SALES)
    assert "it is not a database" in error("import", file, "--db", file)
    assert "cannot write beside" in error("import", file, "--db", tmp_path / "nowhere" / "shop.db")


def test_the_same_model_as_in_memory(tmp_path: Path, db: Path) -> None:
    shop = generate(users=50, seed=3, baskets_per_user=6)
    shop.history.sample(fraction=1, shuffle=True, seed=1).write_csv(tmp_path / "shop.csv")
    run("import", tmp_path / "shop.csv", "--db", db)
    with ub.open(db, read_only=True) as rec:
        assert rec.digest() == ub.Recommender(salt=rec.salt).fit(shop.history).digest()


def test_a_semicolon_is_suggested_as_the_separator(tmp_path: Path, db: Path) -> None:
    for separator, option in ((";", "';'"), ("\t", r"'\t'"), ("|", "'|'")):
        file = write(tmp_path / "s.csv", SALES.replace(",", separator))
        assert f"--separator {option} splits them" in error("import", file, "--db", db)
        assert f"--separator {option} splits them" in error("evaluate", file)
        run("import", file, "--db", db, "--separator", option.strip("'"))
        assert histories(db) == EXPECTED


@pytest.mark.parametrize(
    ("day", "advice"),
    [
        ("01/02/2026", "--time-format %d/%m/%Y reads this as 2026-02-01, and '%m/%d/%Y' as 2026-01-02"),
        ("31/12/2026", "--time-format %d/%m/%Y reads this as 2026-12-31\n"),
        ("12/31/2026 18:30", "--time-format '%m/%d/%Y %H:%M' reads this as 2026-12-31\n"),
        ("31.12.2026", "--time-format %d.%m.%Y reads this as 2026-12-31\n"),
        ("31 Dec 2026", "--time-format '%d %b %Y' reads this as 2026-12-31\n"),
        ("soon", "--skip-bad leaves out such rows and counts them\n"),
    ],
)
def test_a_time_format_is_suggested_and_works(tmp_path: Path, db: Path, day: str, advice: str) -> None:
    file = write(tmp_path / "s.csv", f"user,basket,item,time\nann,1,milk,{day}\n")
    message = error("import", file, "--db", db)
    assert advice in message
    assert advice in error("tune", file)
    if "time-format" in advice:
        option = message.split("--time-format ")[1].split(" reads")[0].strip("'")
        run("import", file, "--db", db, "--time-format", option)
        [basket] = histories(db)["ann"]
        assert basket.time is not None


def test_a_column_that_is_missing(tmp_path: Path, db: Path) -> None:
    file = write(tmp_path / "s.csv", "customer,receipt,sku2\n1,2,3\n")
    assert "--user customer names the one to use" in error("import", file, "--db", db)
    assert "--basket COLUMN names the one to use" in error("import", file, "--db", db, "--user", "customer")
    assert "Did you mean sku2?" in error(*["import", file, "--db", db, "--user", "customer", "--basket", "sku"])


def test_quantities(tmp_path: Path, db: Path) -> None:
    rows = "ann,1,milk,2\nann,1,tea,0\nann,1,gin,1\nann,2,gin,-1\nbob,3,rum,-1\nbob,4,milk,1\n"
    file = write(tmp_path / "s.csv", "user,basket,item,pieces\n" + rows)
    report = json.loads(run("import", file, "--db", db, "--quantity", "pieces", "--json"))
    assert report["returns"] == {"zero": 1, "taken_out": 1, "unmatched": 1, "undone": 1}
    assert (report["purchases"], report["baskets"]) == (2, 2)
    assert histories(db) == {"ann": [ub.Basket(1, None, ("milk",))], "bob": [ub.Basket(4, None, ("milk",))]}
    printed = run("import", file, "--db", db, "--quantity", "pieces")
    assert "1 row with 0, 1 return taken out of the baskets they were in, 1 return of what was not bought" in printed


def test_a_decimal_comma_is_suggested_and_works(tmp_path: Path, db: Path) -> None:
    file = write(tmp_path / "s.csv", 'user,basket,item,pieces\nann,1,milk,2\nann,1,rum,"0,5"\n')
    importing = ["import", file, "--db", db, "--quantity", "pieces"]
    assert "--decimal , reads this as 0.5" in error(*importing)
    run(*importing, "--decimal", ",")
    assert histories(db) == {"ann": [ub.Basket(1, None, ("milk", "rum"))]}
    assert "the decimal mark must be . or a comma, not ';'" in error(*importing, "--decimal", ";")


def preview(*arguments: object) -> tuple[dict[str, Any], list[str]]:
    """Return the report of a preview, and the arguments of the command that it proposes, without its database."""
    report = json.loads(run("import", "--preview", *arguments, "--json"))
    program, *command = shlex.split(report["command"])
    assert (program, command[0], command[-2:]) == ("unbasket", "import", ["--db", "shop.db"])
    return report, command[:-2]


COUNTS = ("users", "baskets", "rows", "purchases", "repeated", "skipped", "reasons", "returns")


def messy_sales() -> tuple[list[str], dict[str, Any]]:
    """Return 200,000 lines as a till might export them, and the counts that are due by construction."""
    random = Random(24)
    lines: list[str] = []
    faults = dict.fromkeys(("no customer", "no article", "bad date", "bad quantity"), 0)
    purchases = undone = repeated = zero = unmatched = 0
    baskets, receipt = set(), 0
    while len(lines) < 199_990:
        receipt += 1
        customer = f"K{receipt % 4_000:05}"
        day = f"{1 + receipt // 2_500 % 28:02}.{1 + receipt // 70_000:02}.2026 {8 + receipt % 12:02}:{receipt % 60:02}"
        for number in range(random.randint(2, 7)):
            article, quantity = f'"{random.choice("🥑🧀🍞🫒")} Nr; {number}"', random.choice(("1", "2", "0,5", "1,25"))
            row = f"{customer};{receipt};{article};{day};{quantity}"
            kind = random.random()
            if kind < 0.02:
                lines.append(f";{receipt};{article};{day};{quantity}")
                faults["no customer"] += 1
            elif kind < 0.03:
                lines.append(f"{customer};{receipt};;{day};{quantity}")
                faults["no article"] += 1
            elif kind < 0.04:
                lines.append(f"{customer};{receipt};{article};31.02.2026 10:00;{quantity}")
                faults["bad date"] += 1
            elif kind < 0.05:
                lines.append(f"{customer};{receipt};{article};{day};viele")
                faults["bad quantity"] += 1
            elif kind < 0.06:
                lines.append(f"{customer};{receipt};{article};{day};0")
                zero += 1
            elif kind < 0.07:  # bought, and returned later with the same receipt
                lines.extend((row, f"{customer};{receipt};{article};{day};-{quantity}"))
                undone += 1
            elif kind < 0.08:
                lines.append(f"{customer};{receipt};Pfand;{day};-1")
                unmatched += 1
            else:
                copies = 2 if kind < 0.13 else 1
                lines.extend([row] * copies)
                baskets.add((customer, receipt))
                purchases, repeated = purchases + 1, repeated + copies - 1
    due = {"users": len({customer for customer, _ in baskets}), "baskets": len(baskets), "purchases": purchases}
    returns = {"zero": zero, "taken_out": undone, "unmatched": unmatched, "undone": undone}
    return lines, {**due, "rows": len(lines), "repeated": repeated, "returns": returns, "faults": faults}


def test_a_messy_file_is_imported_as_the_preview_proposes_and_each_row_is_accounted_for(
    tmp_path: Path, db: Path
) -> None:
    lines, due = messy_sales()
    header = "Kunde;Bon;Artikel;Datum;Menge"
    file = write(tmp_path / "export.csv", "\n".join((header, *lines)) + "\n")
    assert 199_990 <= len(lines) < 200_010
    report, command = preview(file)
    faults = due.pop("faults")
    expected = dict(zip(("no user", "no item", "unreadable time", "unreadable quantity"), faults.values(), strict=True))
    assert {each["reason"]: each["rows"] for each in report["reasons"]} == expected
    assert report["skipped"] == sum(faults.values())
    assert {name: report[name] for name in due} == due
    assert report["rows"] == (
        report["purchases"] + report["repeated"] + report["skipped"] + sum(report["returns"].values())
    )
    for each in report["reasons"]:  # the example is where it says
        line = int(each["place"].rpartition(" ")[2])
        assert lines[line - 2].split(";").count(each["value"]) >= 1
    imported = json.loads(run(*command, "--db", db, "--json"))
    assert {name: imported[name] for name in COUNTS} == {name: report[name] for name in COUNTS}
    with ub.open(db, read_only=True) as rec:
        sizes = rec.sizes()
        assert (sizes.users, sizes.baskets, sizes.purchases) == (due["users"], due["baskets"], due["purchases"])
        assert rec.history("K00001")[0].time == 1767258060  # 01.01.2026 09:01, UTC


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (SALES, []),
        (SALES.replace(",", "\t"), ["--separator", "\\t"]),
        ("customer_id|order no|sku\n1|2|3\n", "--user customer_id --basket 'order no' --item sku --separator '|'"),
        ("user,basket,item,date\n1,2,3,2026-05-01\n", "--time date"),
        ("user,basket,item,time\n1,2,3,1/31/2026\n1,3,3,2/1/2026\n", "--time-format %m/%d/%Y"),
        ("user,basket,item,qty\n1,2,3,1.5\n", "--quantity qty"),
        ('user,basket,item,qty\n1,2,3,"1,5"\n1,2,4,1\n', "--quantity qty --decimal ,"),
        ("user,basket,item\n1,2,3\n,2,4\n", "--skip-bad"),
    ],
)
def test_a_preview_proposes_options_that_work(tmp_path: Path, db: Path, text: str, options: str | list[str]) -> None:
    file = write(tmp_path / "s.csv", text)
    report, command = preview(file)
    assert command == ["import", str(file), *(shlex.split(options) if isinstance(options, str) else options)]
    imported = json.loads(run(*command, "--db", db, "--json"))
    assert all(imported[name] == report.get(name) for name in imported.keys() & {*COUNTS})
    assert report["other_time_format"] is None


def test_a_preview_for_people(tmp_path: Path) -> None:
    file = write(tmp_path / "s.csv", "user;basket;item;date;qty\nann;1;tea;01/02/2026;1,5\n;2;gin;02/02/2026;1\n")
    printed = run("import", "--preview", file)
    assert "separated by ';'" in printed
    assert re.search(r"date +time +'01/02/2026' +2026-02-01", printed)
    assert re.search(r"qty +quantity +'1,5' +1.5", printed)
    assert "Dates are written as '%d/%m/%Y'. All of them could also be '%m/%d/%Y': please check" in printed
    assert "1 purchase in 1 basket of 1 user would be imported" in printed
    assert f"  no user: 1 row, the first in {file}, line 3\n" in printed
    assert printed.endswith("--decimal , --skip-bad --db shop.db\n")
    given = run("import", "--preview", file, "--time-format", "%m/%d/%Y")
    assert "2026-01-02" in given
    assert "could also be" not in given


def test_a_preview_of_other_files(tmp_path: Path) -> None:
    frame = pl.DataFrame({"user": [1], "basket": [2], "items": [["a", "b"]], "time": [date(2026, 5, 1)]})
    frame.write_parquet(tmp_path / "s.parquet")
    report, command = preview(tmp_path / "s.parquet", "--item", "items")
    assert (report["purchases"], command[2:]) == (2, ["--item", "items"])
    assert "no column user" in error("import", "--preview", write(tmp_path / "s.csv", "a,b,c\n1,2,3\n"))
    assert "--db FILE names the database" in error("import", tmp_path / "s.parquet")


@pytest.mark.parametrize(
    ("stdin", "options", "complaint"),
    [
        (SALES, ["--separator", ""], "the separator must be one character, such as ; or a tab, not ''"),
        (SALES, ["--separator", ";;"], "not ';;'"),
        (SALES, ["--separator", "§"], "not '§'"),
        (SALES, ["--separator", '"'], "not '\"'"),
        ("user,basket,item,__row\n1,2,3,4\n", [], "a column is called __row"),
        (f'user,basket,item\n1,2,"{"x" * 200_000}\n', [], "line 2 has a quote that is never closed"),
        (f"user,basket,item\n{'x' * 200_000},2,\n", [], "line 2: no usable item in {'user': 'xxx"),
        (f"user,basket,item\n1,2,{'x' * 200_000},4\n", [], "line 2 has 4 fields, the header has 3"),
        (
            '{"event": "forget", "user": 1}\n{"event": "learn", "user": ' + "[" * 100_000 + "\n",
            [],
            "it is nested too deeply",
        ),
        ('{"user": ' + "[" * 100_000 + "\n", [], "line 1 is not a JSON object"),
        (b'{"event": "forget", "user": "a"}\n{"event": "forget", "user": "\xff"}\n', [], "line 2: this is not JSON"),
        (b'{"user": 1, "basket": 1, "item": "\xff"}\n', [], "not UTF-8"),
        ("c," * 10**6, [], "more than 4,096 columns"),
        ("".join(f'{{"c{i}": 1}}\n' for i in range(10**5)), [], "more than 4,096 columns"),
        ("user,basket,item\n" + "".join(f"1,1,{i}\n" for i in range(9000)), [], "has 9000 items"),
    ],
)
def test_hostile_input_is_one_short_line_and_leaves_nothing(
    tmp_path: Path, db: Path, stdin: str | bytes, options: list[str], complaint: str
) -> None:
    message = error("import", "-", "--db", db, *options, stdin=stdin)
    assert complaint in message
    assert len(message) < 1000
    assert list(tmp_path.iterdir()) == []


def test_an_existing_database_stays(tmp_path: Path, db: Path) -> None:
    run("import", "-", "--db", db, stdin=SALES)
    before = sorted(tmp_path.iterdir())
    error("import", "-", "--db", db, stdin="user,basket,item\n" + "".join(f"1,1,{i}\n" for i in range(9000)))
    assert sorted(tmp_path.iterdir()) == before
    assert histories(db) == EXPECTED


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_no_new_database(tmp_path: Path, number: signal.Signals) -> None:
    """Neither an empty one nor the files beside it."""
    sales = tmp_path / "sales.csv"
    pl.DataFrame({"user": range(300_000), "basket": 1, "item": "milk"}).write_csv(sales)
    line = [*PROGRAM, "import", str(sales), "--db", str(tmp_path / "shop.db")]
    pipe = subprocess.PIPE
    process = subprocess.Popen(line, stdout=pipe, stderr=pipe, **interruptible())
    while not (tmp_path / "shop.db").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(number)
    assert process.communicate() == (b"", b"")
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == [sales]
