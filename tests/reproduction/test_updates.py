"""Figures (a) and (b): every update method has a complete curve."""

import polars as pl
import pytest

from unbasket.reproduction import updates
from unbasket.reproduction.workloads import SINGLE_ITEM, Settings


def test_orders_of_deletion() -> None:
    assert updates.deletion_positions("end", 4, seed=0) == [3, 2, 1]
    assert updates.deletion_positions("start", 4, seed=0) == [0, 0, 0]
    drawn = updates.deletion_positions("random", 100, seed=0)
    assert all(0 <= position < length for position, length in zip(drawn, range(100, 1, -1), strict=True))
    assert drawn == updates.deletion_positions("random", 100, seed=0)
    assert drawn != updates.deletion_positions("random", 100, seed=1)


@pytest.mark.parametrize("dataset", [SINGLE_ITEM, "coop100"])
@pytest.mark.usefixtures("data")
def test_every_method_has_a_curve(dataset: str) -> None:
    settings = Settings(stream_baskets=15)
    additions = pl.DataFrame(updates.run_additions(dataset, settings, lambda *_: None))
    deletions = pl.DataFrame(updates.run_deletions(dataset, settings, lambda *_: None))
    assert additions.group_by("method").agg(pl.col("events").max())["events"].to_list() == [15] * 4
    ends = deletions.group_by("method", "order").agg(pl.col("events").max())
    assert ends.height == 12
    assert set(ends["events"]) == {14}
    assert additions["ms"].min() > 0  # type: ignore[operator]
    assert len(updates.present_additions(additions).figure.axes) == 1
    assert len(updates.present_deletions(deletions).figure.axes) == 3


def test_a_point_is_the_mean_of_its_events_medians() -> None:
    quiet, disturbed = [0.001, 0.003] * 40, [5.0] * 80
    assert updates.curve([disturbed, quiet, quiet])[:2] == [{"events": 2, "ms": 2.0}, {"events": 4, "ms": 2.0}]


def test_finding_checks_our_curve() -> None:
    points = [{"stream": SINGLE_ITEM, "method": name, "events": 1, "ms": 0.1} for name in updates.METHODS]
    frame = pl.DataFrame(points)
    assert updates.present_additions(frame).findings == (
        ("Our median point is 0.100 ms per addition, and 1 of 1 points lie below the paper's 0.2 ms.", True),
    )
    slow = frame.with_columns(ms=pl.when(pl.col("method") == "ours").then(0.3).otherwise(pl.col("ms")))
    assert updates.present_additions(slow).findings[0].holds is False
