"""Times of baskets for people: as dates, where they are dates."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = (int((datetime(year, 1, 1, tzinfo=UTC) - _EPOCH).total_seconds()) for year in (1990, 2100))
_UNITS = (1, 1_000, 1_000_000)  # of a second: a number that is such a date in one unit is not one in another


def as_dates(times: Sequence[int | None]) -> list[int | str]:
    """Times as UTC dates if all of them, as seconds, milliseconds or microseconds since 1970, lie in 1990 to 2099.

    A database does not know what its times count. Without a time of day if all are midnight.

    >>> as_dates([1777593600, 1777680000]), as_dates([1777593600000, 1777653000000]), as_dates([1, 2]), as_dates([None])
    (['2026-05-01', '2026-05-02'], ['2026-05-01 00:00:00', '2026-05-01 16:30:00'], [1, 2], [''])
    """
    known = [time for time in times if time is not None]
    for unit in _UNITS:
        if known and all(_FIRST * unit <= time < _LAST * unit for time in known):
            form = "%Y-%m-%d" if all(time % (86_400 * unit) == 0 for time in known) else "%Y-%m-%d %H:%M:%S"
            return ["" if time is None else f"{_EPOCH + timedelta(seconds=time // unit):{form}}" for time in times]
    return ["" if time is None else time for time in times]
