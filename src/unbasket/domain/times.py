"""Times of baskets are whole numbers since 1970, in a unit that each shop chooses."""

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
