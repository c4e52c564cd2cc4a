"""`unbasket spark`: a shop moves to Spark, is updated there, and moves back.

Beside the other tests of Spark, since it shares their session.
"""

import json
import os
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.running import error, run
from typer.testing import CliRunner

from unbasket import Params, Recommender, open  # noqa: A004
from unbasket.cli import app

MASTER = ("--master", "local[2]")


@pytest.mark.usefixtures("spark")
def test_a_shop_moves_to_spark_and_back(tmp_path: Path) -> None:
    params = Params(neighbors=3)
    with open(tmp_path / "old.db", params) as old:
        for number in range(30):
            old.learn(f"user {number % 6}", [f"item {number % 4}", "tea"], basket=number, time=number or None)
        old.suppress("user 2", "tea")
        expected = Recommender(params)
        for user in old.users():
            for basket, time, items in old.history(user):
                expected.learn(user, items, basket=basket, time=time)
    expected.suppress("user 2", "tea")
    run("spark", "from-db", "--db", tmp_path / "old.db", "--output", tmp_path / "history.parquet")
    (tmp_path / "events").mkdir()
    events = [
        {"event": "forget", "user": "user 1"},
        {"event": "learn", "user": "ann", "basket": 1, "items": ["tea"], "time": 7},
        {"event": "learn", "user": "bob"},
    ]
    (tmp_path / "events" / "a.json").write_text("\n".join(map(json.dumps, events)))
    expected.forget("user 1")
    expected.learn("ann", ["tea"], basket=1, time=7)
    held = ("--checkpoint", tmp_path / "checkpoint")
    options = ("--history", tmp_path / "history.parquet", "--baskets", "long", "--once", "--shards", 2, "--progress")
    command = ("spark", "run", tmp_path / "events", *held, *options, "--neighbors", 3, *MASTER)
    result = CliRunner().invoke(app, [str(argument) for argument in command])
    said = result.stdout
    assert said == f"{tmp_path}/checkpoint: 6 users after batch {said.split()[-4].strip(',')}, 1 event rejected\n"
    line = (
        r"^batch \d+: 3 events in .* s, .* per second; 2 users changed, 0.0 MB written; 3 events so far; seconds: read"
    )
    assert re.search(line, result.stderr, re.M)

    chosen = ("--exclude", "item 3", "--only-new")
    run("spark", "recommend", *held, "--output", tmp_path / "answers", "-n", 3, *chosen, *MASTER)
    rows = pq.read_table(tmp_path / "answers").to_pylist()
    assert {row["user"]: [tuple(pair.values()) for pair in row["recommendations"]] for row in rows} == (
        expected.recommend_many(n=3, exclude=["item 3"], only_new=True)
    )

    run("spark", "to-db", *held, "--db", tmp_path / "new.db", *MASTER)
    with open(tmp_path / "new.db") as new:
        assert new.digest() == expected.digest()

    searched = ("spark", "audit", tmp_path / "checkpoint", "--marker")
    assert run(*searched, "user 1").endswith("searched, 0 findings\n")
    found = json.loads(run(*searched, "user 2", "--json", code=1))
    assert {finding["marker"] for finding in found["findings"]} == {"user 2"}


def test_bad_input_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = ("--checkpoint", tmp_path / "checkpoint")
    assert "is not a folder" in error("spark", "audit", tmp_path / "nowhere", "--marker", "x")
    assert "the number 17 can't be searched for" in error("spark", "audit", tmp_path, "--marker", "17")
    assert "group_size must be" in error("spark", "run", tmp_path, *held, "--group-size", 0)
    monkeypatch.setattr(os, "environ", {**os.environ, "PATH": "", "JAVA_HOME": ""})
    assert "apt install openjdk-17-jre-headless" in error("spark", "run", tmp_path, *held)
