"""Figure (c): the paper's rule drifts as published, the engine not at all."""

import polars as pl
import pytest

from unbasket.reproduction import drift
from unbasket.reproduction.workloads import SINGLE_ITEM, Settings


@pytest.fixture(scope="module")
def frame() -> pl.DataFrame:
    return pl.DataFrame(drift.run(SINGLE_ITEM, Settings(drift_baskets=400), lambda *_: None))


def test_ours_is_exactly_zero(frame: pl.DataFrame) -> None:
    ours = frame.filter(pl.col("rule") == "ours")
    assert ours.group_by("order").len()["len"].to_list() == [399] * 3
    assert set(ours["relative_error"]) == {0.0}


@pytest.mark.parametrize(("order", "low", "high"), [("end", 170, 190), ("start", 170, 190), ("random", 250, 290)])
def test_papers_rule_passes_one_percent(frame: pl.DataFrame, order: str, low: int, high: int) -> None:
    curve = frame.filter(pl.col("rule") == "paper's rule", pl.col("order") == order)
    first = curve.filter(pl.col("relative_error") > 0.01)["deletions"][0]
    assert low <= first <= high
    assert curve["relative_error"][0] < 1e-12


def test_table_has_the_deletions_until_one_percent(frame: pl.DataFrame) -> None:
    (table,) = drift.present(frame).tables
    cells = {(row[0], row[1]): row[2:] for row in table.rows}
    assert cells["end", "ours"] == ("never", "0 (exactly)")
    assert 170 <= int(cells["end", "paper's rule"][0]) <= 190


def test_an_error_of_ours_is_detected(frame: pl.DataFrame) -> None:
    exact = "Ours: no deletion leaves an error, in 1,197 comparisons with a retrain."
    assert drift.present(frame).findings[0] == (exact, True)
    tiny = pl.when(pl.col("rule") == "ours", pl.col("deletions") == 7).then(1e-16).otherwise(pl.col("relative_error"))
    finding = drift.present(frame.with_columns(relative_error=tiny)).findings[0]
    assert finding == ("Ours: the error reaches 1.0e-16, in 1,197 comparisons with a retrain.", False)
