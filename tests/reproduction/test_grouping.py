"""Grouping: the two policies differ only after a forget."""

import polars as pl
import pytest

from unbasket.reproduction import grouping
from unbasket.reproduction.workloads import Settings


@pytest.mark.usefixtures("data")
def test_policies_differ_after_forgetting() -> None:
    settings = Settings(basket_shares=(0.25, 0.5))
    frame = pl.DataFrame(grouping.run("tafeng", settings, lambda *_: None))
    assert frame["forgotten_share"].unique(maintain_order=True).to_list() == [0.0, 0.25, 0.5]
    untouched = frame.filter(pl.col("forgotten_share") == 0)
    assert untouched["fixed"].to_list() == untouched["varying"].to_list()
    assert set(untouched["users_with_another_vector"]) == {0}
    halved = frame.filter(pl.col("forgotten_share") == 0.5)
    assert halved["users_with_another_vector"].min() > 0  # type: ignore[operator]
    assert halved["fixed"].to_list() != untouched["fixed"].to_list()
    gaps = (halved["varying"] - halved["fixed"]).to_list()
    assert halved["difference"].to_list() == pytest.approx(gaps)
    section = grouping.present(frame)
    assert [len(table.rows) for table in section.tables] == [12, 3]
    assert section.findings[0].text.startswith("tafeng, 50% of the baskets forgotten")
