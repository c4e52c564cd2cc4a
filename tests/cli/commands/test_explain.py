"""`unbasket explain`."""

import json
from pathlib import Path

import pytest
from tests.cli.running import run


def test_explain(db: Path) -> None:
    answer = json.loads(run("explain", "ann", 10, "--db", db, "--json"))
    assert (answer["name"], [basket["basket"] for basket in answer["baskets"]]) == ("Milk [fresh]", [1, 2])
    own = sum(basket["share"] for basket in answer["baskets"])
    assert own + answer["neighbors_share"] == pytest.approx(answer["score"])
    assert f"Milk [fresh] (10) scores {answer['score']:.4f} for user ann" in run("explain", "ann", 10, "--db", db)
    assert "in none of the user's baskets" in run("explain", "ann", 12, "--db", db)
