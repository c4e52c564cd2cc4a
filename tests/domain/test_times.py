"""Times: units and dates."""

import time
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pandas as pd
import polars as pl
import pytest

import unbasket as ub
from unbasket.domain.times import EPOCH, UNITS, as_dates, as_number, time_before

BERLIN = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "moment",
    [
        7,
        date(2026, 11, 3),
        datetime(2026, 11, 3, 14, 5),
        datetime(2026, 11, 3, 14, 5, 30, 999_999),
        datetime(2026, 11, 3, 0, 30, tzinfo=BERLIN),
        datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC),
        pd.Timestamp("2026-11-03 14:05:30.5"),
        pd.Timestamp("2026-11-03 14:05", tz="Europe/Berlin"),
        "2026-11-03",
        "2026-11-03 14:05",
        "2026-11-03T14:05:30.75",
        "2026-11-03T14:05:30Z",
        "2026-11-03T14:05:30+01:00",
    ],
)
def test_a_time_means_the_same_to_learn_as_to_fit(moment: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")  # a time without a zone is UTC here, not local
    time.tzset()
    try:
        fitted = ub.Recommender().fit(pl.DataFrame({"user": ["u"], "basket": [1], "item": ["a"], "time": [moment]}))
        learned = ub.Recommender()
        learned.learn("u", ["a"], basket=1, time=moment)
        assert learned.history("u") == fitted.history("u")
        assert learned.popular(since=moment) == [("a", 1)]
        assert learned.popular(since=learned.history("u")[0].time + 1) == []  # type: ignore[operator]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "moment", ["", "soon", "20261103", "2026-13-01", "2026-11-03T25:00", pd.NaT, 1.5, b"2026-11-03", True]
)
def test_other_values_are_no_times(moment: Any) -> None:
    rec = ub.Recommender()
    with pytest.raises(ub.UnbasketError, match="time must be"):
        rec.learn("u", ["a"], basket=1, time=moment)
    with pytest.raises(ub.UnbasketError, match="time must be"):
        rec.popular(since=moment)
    assert "u" not in rec


def test_numbers_stay_what_they_are() -> None:
    assert [as_number(7), as_number(-(2**62)), as_number(None)] == [7, -(2**62), None]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_dates_of_every_unit(unit: str) -> None:
    day = UNITS["day"] // UNITS[unit]
    assert as_dates([20_000 * day, None, 20_001 * day]) == ["2024-10-04", "", "2024-10-05"]
    assert as_dates([20_000 * day, 20_000 * day + day // 2]) == ["2024-10-04 00:00:00", "2024-10-04 12:00:00"]


@pytest.mark.parametrize("times", [[1, 2], [20_000 * 86_400, 5], [-(2**62)], [2**62], []])
def test_other_numbers_are_no_dates(times: list[int | None]) -> None:
    assert as_dates(times) == times


def test_a_time_before_now_is_rounded_up() -> None:
    now = EPOCH + 10 * UNITS["day"] + 1 * UNITS["ms"]
    assert [time_before(now, 1, UNITS[unit]) for unit in ("day", "s", "ms")] == [10, 777_601, 777_600_001]
