"""Times: units and dates."""

import pytest

from unbasket.domain.times import EPOCH, UNITS, as_dates, time_before


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
