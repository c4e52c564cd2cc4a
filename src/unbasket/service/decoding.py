"""Queries and bodies, decoded into the shapes of their call, or an error that says what is wrong."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, get_origin
from urllib.parse import parse_qsl

import msgspec

from unbasket.service.errors import ApiError
from unbasket.service.handlers.users import too_many_events
from unbasket.service.routes import JSON, NDJSON, Call
from unbasket.service.schemas.requests import MAX_EVENTS, ForgetEvent, LearnEvent

_WRONG = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_line_decoder = msgspec.json.Decoder(LearnEvent | ForgetEvent)
_counter = msgspec.json.Decoder(list[msgspec.Raw])


def read_query(text: bytes, kind: type[msgspec.Struct]) -> msgspec.Struct:
    """The query parameters."""
    if not text:
        return _default(kind)
    try:
        pairs = parse_qsl(text.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=1000)
        return msgspec.convert(_gathered(pairs, kind), kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError("invalid_query", f"the query is not as it should be: {error}") from None
    except ValueError as error:  # not UTF-8, or too many
        raise ApiError("invalid_query", f"the query can't be read: {error}") from None


def _gathered(pairs: list[tuple[str, str]], kind: type[msgspec.Struct]) -> dict[str, Any]:
    lists = _lists(kind)
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise ApiError("invalid_query", f"the query has {name!r} more than once")
        else:
            values[name] = value
    return values


@cache
def _lists(kind: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(kind) if get_origin(field.type) is list)


@cache
def _default(kind: type[msgspec.Struct]) -> msgspec.Struct:
    return kind()


def read_body(body: bytes, content_type: str, call: Call) -> Any:
    """The body of a request."""
    if call.body is None or (call.body_is_optional and not body):
        return None
    media = content_type.partition(";")[0].strip().lower()
    if media != JSON and not (media == NDJSON and call.takes_lines):
        wanted = f"{JSON} or {NDJSON}" if call.takes_lines else JSON
        raise ApiError("unsupported_media_type", f"the Content-Type must be {wanted}, not {media or 'absent'!r}")
    if call.takes_lines:
        _check_count(body, has_lines=media == NDJSON)
    if media == NDJSON:
        return _read_lines(body)
    with _explained("the body"):
        return _decoder(call).decode(body)


def _check_count(body: bytes, *, has_lines: bool) -> None:
    """Refuse events that are too many before they are decoded, which would take memory and keep others waiting. Every
    other line may be blank; the exact number is checked later.
    """
    count = 0
    if has_lines:
        count = body.count(b"\n") // 2
    elif body.count(b"{") > MAX_EVENTS:  # else there are not so many
        with suppress(*_WRONG):  # what is wrong is said when it is decoded
            count = len(_counter.decode(body))
    if count > MAX_EVENTS:
        raise too_many_events(f"{count:,} events")


def _read_lines(body: bytes) -> Any:
    """Events, one per line."""
    with suppress(*_WRONG):
        return _line_decoder.decode_lines(body)
    events = []
    for number, line in enumerate(body.split(b"\n"), 1):  # once more, to say which line it is
        if line.strip():
            with _explained(f"line {number}"):
                events.append(_line_decoder.decode(line))
    return events


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        raise ApiError("invalid_body", f"{what} is not as it should be: {error}") from None
    except _WRONG as error:
        raise ApiError("malformed_json", f"{what} is not JSON in UTF-8: {error}") from None


@cache
def _decoder(call: Call) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(call.body)
