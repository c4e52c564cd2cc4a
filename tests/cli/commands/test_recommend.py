"""`unbasket recommend` for one user, and `unbasket explain`."""

import json
import time
from pathlib import Path

import pytest
from tests.cli.running import error, recommended, run

import unbasket as ub


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
    assert all("score" in item for item in answer["items"])


def test_the_fallback(db: Path) -> None:
    assert recommended("zoe", "--db", db, "--fallback", "nothing") == []
    assert recommended("zoe", "--db", db, "--fallback-category", "Alcohol") == [12]
    assert recommended("zoe", "--db", db, "--fallback-category", "Alcohol", "--category", "Dairy") == [10]
    assert recommended("zoe", "--db", db, "--fallback-days", 7) == []
    run("learn", "ann", 14, "--basket", 9, "--time", int(time.time()), "--db", db)
    assert recommended("zoe", "--db", db, "--fallback-days", 7) == [14]
    assert "popular or nothing, not 'all'" in error("recommend", "zoe", "--db", db, "--fallback", "all")
    assert "one of s, ms, us, day, not 'h'" in error("recommend", "zoe", "--db", db, "--time-unit", "h")


def test_recommend_explains(db: Path) -> None:
    for item in json.loads(run("recommend", "ann", "--db", db, "--explain", "--json"))["items"]:
        assert item["own_share"] + item["neighbors_share"] == pytest.approx(item["score"])
    assert "1 of 2" in run("recommend", "ann", "--db", db, "--explain")


def test_an_unknown_user_gets_popular_items(db: Path) -> None:
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
