"""Times of baskets: whole numbers since 1970, in a unit that each shop chooses."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta

from unbasket.errors import InvalidBasketError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
UNITS = {
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
    "day": timedelta(days=1),
}
_FIRST, _LAST = (datetime(year, 1, 1, tzinfo=UTC) - EPOCH for year in (1990, 2100))


Time = int | date | datetime | str  # a text is a date or time in ISO 8601


def as_number(moment: Time | None) -> int | None:
    """Return a date, a datetime or ISO text as `fit` reads it: whole seconds since 1970, UTC without a zone.

    Numbers and None are returned as they are.

    >>> as_number("2026-05-01T18:30+02:00"), as_number(date(2026, 5, 1)), as_number(7)
    (1777653000, 1777593600, 7)
    """
    if isinstance(moment, str):
        moment = _parsed(moment)
    elif isinstance(moment, date) and not isinstance(moment, datetime):
        moment = datetime.combine(moment, time())
    if not isinstance(moment, datetime):
        return moment
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return (aware - EPOCH) // UNITS["s"]
    except (TypeError, ValueError) as error:  # NaT of pandas is a datetime
        raise InvalidBasketError(f"time must be a time, not {moment!r}") from error


def _parsed(text: str) -> datetime:
    try:
        if "-" in text:  # 20260501 could be a number
            return datetime.fromisoformat(text)
    except ValueError:
        pass
    raise InvalidBasketError(f"time must be a date such as 2026-05-31 or 2026-05-31T18:30, not {text!r}")


def time_before(now: datetime, days: int, unit: timedelta) -> int:
    """Return the earliest time that is at most this many days before `now`.

    >>> now = EPOCH + timedelta(days=10, hours=12)
    >>> time_before(now, 1, UNITS["s"]) == (9 * 24 + 12) * 3600, time_before(now, 1, UNITS["day"])
    (True, 10)
    """
    return -((timedelta(days=days) - (now - EPOCH)) // unit)  # rounded up: a time is the beginning of its unit


def as_dates(times: Sequence[int | None]) -> list[int | str]:
    """Return times as UTC dates if all lie in 1990 to 2099 as seconds, milliseconds or microseconds since 1970.

    A database does not know the unit of its times, but a date of this range in one unit is outside it in the others.
    The time of day is left out if all times are midnight.

    >>> as_dates([1777593600, 1777680000]), as_dates([1777593600000, 1777653000000]), as_dates([1, 2]), as_dates([None])
    (['2026-05-01', '2026-05-02'], ['2026-05-01 00:00:00', '2026-05-01 16:30:00'], [1, 2], [''])
    """
    known = [time for time in times if time is not None]
    for unit in (UNITS["s"], UNITS["ms"], UNITS["us"]):
        if known and all(_FIRST // unit <= time < _LAST // unit for time in known):
            at_midnight = all(time * unit % UNITS["day"] == timedelta(0) for time in known)
            form = "%Y-%m-%d" if at_midnight else "%Y-%m-%d %H:%M:%S"
            return ["" if time is None else f"{EPOCH + time * unit:{form}}" for time in times]
    return ["" if time is None else time for time in times]
