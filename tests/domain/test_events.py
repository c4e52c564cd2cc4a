"""Events from JSON objects and from callers: valid ones, and an error that names the fault of any other."""

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import unbasket as ub
from unbasket.domain.events import Change, Event, decode_change, learns_first, parse_change, parse_event, rechecked


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


def test_learns_first_changes_nothing_but_the_order_of_users() -> None:
    """Users are spelled as numbers and as texts; an engine takes 7 and "7" for one."""
    chance = random.Random(1)
    for first in ("7", 7):
        for _ in range(50):
            events: list[Event] = []
            for number in range(chance.randrange(2, 30)):
                user = chance.choice([int, str])(chance.randrange(5, 9))
                if chance.random() < 0.6:
                    events.append(ub.Learn(user, [chance.choice("abc")], number % 9, chance.choice([None, 3, 5])))
                else:
                    events.append(ub.Forget(user, chance.choice([None, number % 9]), None))
            in_order, reordered = ub.Recommender(), ub.Recommender()
            for rec in (in_order, reordered):
                rec.learn(first, ["a"], basket=0)
            in_order.apply(events)
            reordered.apply(learns_first(events))
            assert reordered.digest() == in_order.digest()


@pytest.mark.parametrize(
    "event",
    [
        '{"event": "learn", "user": 1.0, "basket": 1, "items": [1]}',
        '{"event": "learn", "user": "ann", "basket": 9223372036854775808, "items": [1]}',
        '{"event": "learn", "user": "ann", "basket": 1, "items": [1, true]}',
        '{"event": "learn", "user": "ann", "basket": 1, "items": [1, 1, "1"], "time": null}',
        '{"event": "learn", "user": "ann", "basket": 1, "items": {"1": 2}}',
        '{"event": "learn", "user": "ann", "basket": 1, "items": [1], "time": 1.5}',
        '{"event": "learn", "user": "ann", "basket": 1, "items": [1], "item": 1}',
        '{"event": "forget", "user": null}',
        '{"event": "forget", "user": "", "basket": 1}',
        '{"user": "ann", "other": "bob", "event": "rename"}',
        '{"event": 1}',
        "[]",
    ],
)
def test_bytes_are_decoded_as_objects_are(event: str) -> None:
    def outcome(decode: Callable[[], Change]) -> str:
        try:
            return repr(decode())
        except ub.UnbasketError as error:
            return repr(error)

    assert outcome(lambda: decode_change(event.encode())) == outcome(lambda: parse_change(json.loads(event)))
