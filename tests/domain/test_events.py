"""Events from JSON objects and from callers: valid ones, and an error that names the fault of any other."""

from typing import Any

import pytest

import unbasket as ub
from unbasket.domain.events import parse_change, parse_event, rechecked


def test_valid_events() -> None:
    learn = {"event": "learn", "user": "ann", "basket": 1, "items": ["tea", "tea"], "time": 5}
    assert parse_event(learn) == ub.Learn("ann", ["tea"], 1, 5)
    assert parse_event({"event": "forget", "user": 3}) == ub.Forget(3, None, None)


@pytest.mark.parametrize(
    ("fields", "error", "match"),
    [
        ([1], ub.InvalidEventError, r"must be an object with the field 'event', not \[1\]"),
        ({"event": ["buy"]}, ub.InvalidEventError, r"must be 'learn' or 'forget', not \['buy'\]"),
        ({"event": "buy"}, ub.InvalidEventError, "must be 'learn' or 'forget', not 'buy'"),
        ({"event": "forget", "user": 1, "items": []}, ub.InvalidEventError, "has no field 'items'"),
        ({"event": "learn", "user": 1, "items": ["tea"]}, ub.InvalidEventError, "needs the field 'basket'"),
        ({"event": "learn", "user": 1, "basket": 1, "items": []}, ub.InvalidBasketError, "has 0 items"),
        ({"event": "learn", "user": 1, "basket": 1, "items": {"tea": 2}}, ub.InvalidBasketError, "must be a list"),
        ({"event": "forget", "user": 1.5}, ub.InvalidIdError, "1.5"),
        ({"event": "forget"}, ub.InvalidIdError, "None"),
    ],
)
def test_invalid_events(fields: Any, error: type[Exception], match: str) -> None:
    for parse in (parse_event, parse_change):
        with pytest.raises(error, match=match):
            parse(fields)


def test_events_of_a_caller_are_validated() -> None:
    events: list[ub.Event] = [ub.Learn("ann", ["tea", "tea"], 1, None), ub.Forget("bob", None, None)]
    assert rechecked(events) == [ub.Learn("ann", ["tea"], 1, None), ub.Forget("bob", None, None)]
    with pytest.raises(ub.InvalidEventError, match="event 2 must be a Learn or a Forget, not 'tea'"):
        rechecked([events[0], "tea"])  # type: ignore[list-item]
    with pytest.raises(ub.InvalidIdError):
        rechecked([ub.Forget("", None, None)])
