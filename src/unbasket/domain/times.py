"""Times of baskets are whole numbers since 1970, in a unit that each shop chooses."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
    "day": timedelta(days=1),
}


def time_before(now: datetime, days: int, unit: timedelta) -> int:
    """The first time that is no longer ago than so many days.

    >>> now = EPOCH + timedelta(days=10, hours=12)
    >>> time_before(now, 1, UNITS["s"]) == (9 * 24 + 12) * 3600, time_before(now, 1, UNITS["day"])
    (True, 10)
    """
    return -((timedelta(days=days) - (now - EPOCH)) // unit)  # rounded up: a time stands for the beginning of its unit


_FIRST_DATE, _LAST_DATE = datetime(1990, 1, 1, tzinfo=UTC), datetime(2100, 1, 1, tzinfo=UTC)


def as_dates(times: Sequence[int | None]) -> list[int | str]:
    """Format times as UTC dates if all of them, as seconds, milliseconds or microseconds, lie in 1990 to 2099.

    A database does not know the unit of its times; a number that is such a date in one unit is not one in another.
    Dates have no time of day if all are midnight.

    >>> as_dates([1777593600, 1777680000]), as_dates([1777593600000, 1777653000000]), as_dates([1, 2]), as_dates([None])
    (['2026-05-01', '2026-05-02'], ['2026-05-01 00:00:00', '2026-05-01 16:30:00'], [1, 2], [''])
    """
    known = [time for time in times if time is not None]
    for unit in (UNITS["s"], UNITS["ms"], UNITS["us"]):
        first, last, day = (_FIRST_DATE - EPOCH) // unit, (_LAST_DATE - EPOCH) // unit, UNITS["day"] // unit
        if known and all(first <= time < last for time in known):
            form = "%Y-%m-%d" if all(time % day == 0 for time in known) else "%Y-%m-%d %H:%M:%S"
            return ["" if time is None else f"{EPOCH + time * unit:{form}}" for time in times]
    return ["" if time is None else time for time in times]
