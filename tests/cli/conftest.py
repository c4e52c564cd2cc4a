"""The shop that commands on a database are tested with."""

from pathlib import Path

import pytest
from tests.cli.running import SALES, run


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Users are text, since ann is; items and baskets are numbers."""
    path = tmp_path / "shop.db"
    run("import", "-", "--db", path, "--neighbors", 2, stdin=SALES)
    (tmp_path / "items.csv").write_text("item,name,category\n10,Milk [fresh],Dairy\n12,Wine,Alcohol\n99,Gin,Alcohol\n")
    run("items", tmp_path / "items.csv", "--db", path)
    return path
