"""Messages: the same events as everywhere, and reasons without a value of the message."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbasket.domain.events import Forget, Learn, parse_event
from unbasket.domain.rejection import Reason
from unbasket.errors import UnbasketError
from unbasket.kafka.messages import RejectedError, parse_message

KEY = b"ann"


def rejection(value: bytes, key: bytes | None = KEY) -> Reason:
    with pytest.raises(RejectedError) as caught:
        parse_message(key, value)
    assert caught.value.__cause__ is None
    return caught.value.reason


def encoded(**fields: object) -> bytes:
    return json.dumps(fields).encode()


LEARN: dict[str, Any] = {"event": "learn", "user": "ann", "basket": 1, "items": ["milk"]}


def test_events() -> None:
    assert parse_message(KEY, encoded(**LEARN, time=5)) == Learn("ann", ["milk"], 1, 5)
    assert parse_message(KEY, encoded(**LEARN | {"items": ["b", "a", "b"]})) == Learn("ann", ["b", "a"], 1, None)
    assert parse_message(b"", encoded(event="forget", user=7, item="milk")) == Forget(7, None, "milk")


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"", Reason.NOT_JSON),
        (b"{", Reason.NOT_JSON),
        (b"\xff\xfe", Reason.NOT_JSON),
        (b"[" * 100_000, Reason.NOT_JSON),
        (b"x" * 1_000_000, Reason.NOT_JSON),
        (b"[]", Reason.NO_EVENT),
        (b"17", Reason.NO_EVENT),
        (b"{}", Reason.NO_EVENT),
        (encoded(**LEARN | {"event": "unlearn"}), Reason.NO_EVENT),
        (encoded(**LEARN | {"event": None}), Reason.NO_EVENT),
        (encoded(**LEARN, colour="red"), Reason.NO_EVENT),
        (encoded(event="learn", user="ann", basket=1), Reason.NO_EVENT),
        (encoded(event="forget", item="milk"), Reason.INVALID_ID),
        (encoded(**LEARN | {"user": 1.5}), Reason.INVALID_ID),
        (encoded(**LEARN | {"user": ""}), Reason.INVALID_ID),
        (encoded(**LEARN | {"basket": True}), Reason.INVALID_ID),
        (encoded(**LEARN | {"basket": 2**63}), Reason.INVALID_ID),
        (encoded(**LEARN | {"items": [["milk"]]}), Reason.INVALID_ID),
        (encoded(**LEARN | {"items": []}), Reason.INVALID_BASKET),
        (encoded(**LEARN | {"items": "milk"}), Reason.INVALID_BASKET),
        (encoded(**LEARN, time="noon"), Reason.INVALID_BASKET),
        (encoded(**LEARN, time=2**63), Reason.INVALID_BASKET),
    ],
)
def test_reasons(value: bytes, reason: Reason) -> None:
    assert rejection(value) == reason


def test_a_message_without_a_key() -> None:
    assert rejection(encoded(**LEARN), key=None) == Reason.NO_KEY


IDS = st.integers(-3, 3) | st.text("a0-é", max_size=3) | st.none() | st.booleans() | st.just(2**64) | st.just(1.0)
FIELDS = st.fixed_dictionaries(
    {"event": st.sampled_from(["learn", "forget", "other", None])},
    optional={
        "user": IDS,
        "basket": IDS,
        "item": IDS,
        "items": st.lists(IDS, max_size=4) | IDS,
        "time": st.integers(-(2**64), 2**64) | st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "more": st.none(),
    },
)


@given(FIELDS)
def test_messages_have_the_rules_of_all_events(fields: dict[str, Any]) -> None:
    try:
        expected = parse_event(fields)
    except UnbasketError:
        rejection(encoded(**fields))
    else:
        assert parse_message(KEY, encoded(**fields)) == expected
