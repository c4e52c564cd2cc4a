"""`unbasket history` and `unbasket export`."""

import json
from pathlib import Path

from tests.cli.running import error, run


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
