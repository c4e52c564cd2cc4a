"""Table 1 on a shop that can be counted by hand."""

from pathlib import Path

import polars as pl
import pytest
from tests.reproduction.conftest import write

from unbasket.reproduction import table1
from unbasket.reproduction.workloads import Settings


@pytest.fixture
def by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two users, three baskets, items 1 to 4; item 2 twice in one basket."""
    rows = [(1, 10, 1, 1, 1), (1, 10, 2, 1, 2), (1, 11, 3, 2, 1), (2, 12, 1, 1, 1), (2, 12, 4, 1, 1)]
    history = pl.DataFrame(rows, schema=["user", "basket", "item", "time", "quantity"], orient="row")
    write(tmp_path, "valuedshopper", history=history)
    monkeypatch.setenv("UNBASKET_DATA", str(tmp_path))


@pytest.mark.usefixtures("by_hand")
def test_statistics_beside_the_papers() -> None:
    rows = table1.run("valuedshopper", Settings(), lambda *_: None)
    assert {row["statistic"]: (row["paper"], row["ours"]) for row in rows} == {
        "users": (10000, 2),
        "items": (7874, 4),
        "baskets": (568573, 3),
        "basket_size": (9.1, 6 / 3),  # with the repeat
        "baskets_per_user": (56.9, 3 / 2),
    }
    assert {row["distinct_basket_size"] for row in rows} == {5 / 3}
    assert {row["hyper_parameters"] for row in rows} == {"[7, 1.0, 0.6, 300, 0.7]"}


@pytest.mark.usefixtures("by_hand")
def test_table_shows_paper_then_ours() -> None:
    rows = table1.run("valuedshopper", Settings(), lambda *_: None)
    (table,) = table1.present(pl.DataFrame(rows)).tables
    (row,) = table.rows
    assert row[:4] == ("valuedshopper", "10,000 / 2", "7,874 / 4", "568,573 / 3")
    assert row[4:] == ("9.1 / 2.0", "56.9 / 1.5", "1.67", "[7, 1.0, 0.6, 300, 0.7]")


@pytest.mark.usefixtures("by_hand")
def test_finding_compares_what_is_shown() -> None:
    frame = pl.DataFrame(table1.run("valuedshopper", Settings(), lambda *_: None))
    assert table1.present(frame).findings[0].holds is False
    rounded = frame.with_columns(ours=pl.col("paper") + 0.04)
    text = "Users, items, baskets and averages equal the paper's on 1 of 1 datasets."
    assert table1.present(rounded).findings[0] == (text, True)
