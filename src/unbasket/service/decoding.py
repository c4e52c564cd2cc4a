"""Decoding of query strings and bodies into the schemas of their route, and the limit on the size of ids."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain
from typing import Any, get_origin
from urllib.parse import parse_qs

import msgspec

from unbasket.service.errors import ApiError
from unbasket.service.handlers.users import too_many_events
from unbasket.service.routes import JSON, NDJSON, Route
from unbasket.service.schemas import allowed_fields
from unbasket.service.schemas.requests import MAX_EVENTS, ForgetEvent, LearnEvent

_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(?P<name>.*?)`(?: - at `\$(?P<path>.*)`)?", re.DOTALL)
_STEPS = re.compile(r"\[[^]]*\]|\w+")
_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_decoder = cache(msgspec.json.Decoder)
_line_decoder = msgspec.json.Decoder(LearnEvent | ForgetEvent)
_counter = msgspec.json.Decoder(list[msgspec.Raw])


def decode_query(text: str, schema: type[msgspec.Struct]) -> msgspec.Struct:
    """Decode a query string."""
    if not text:
        return schema()
    try:
        found = parse_qs(text.encode().decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=1000)
        lists = _lists(schema)
        for name in found.keys() - lists:
            if len(found[name]) > 1:
                raise ApiError("invalid_query", f"the query has {name!r} more than once")
        values = {name: each if name in lists else each[0] for name, each in found.items()}
        return msgspec.convert(values, schema, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError("invalid_query", f"the query is not as it should be: {_explain(error, schema)}") from None
    except ValueError as error:  # not UTF-8, or too many parameters
        raise ApiError("invalid_query", f"the query can't be read: {error}") from None


@cache
def _lists(schema: type[msgspec.Struct]) -> frozenset[str]:
    return frozenset(field.name for field in msgspec.structs.fields(schema) if get_origin(field.type) is list)


def check_sizes(names: Iterable[object], most: int, code: str) -> None:
    """Raise an error with this code if an id has more than `most` bytes."""
    few = most // 4  # a character has at most 4 bytes
    for name in names:
        if isinstance(name, str) and len(name) > few:
            size = len(name.encode("utf-8", "surrogatepass"))
            if size > most:
                raise ApiError(
                    code,
                    f"the id {name[:32]!r}... has {size:,} bytes in UTF-8, of at most {most:,} (max_id_bytes): "
                    "use a shorter one",
                )


def decode_body(body: bytearray, content_type: str, route: Route, max_id_bytes: int) -> Any:
    """Decode a request body as its route wants it."""
    if route.body is None or (route.body_is_optional and not body):
        return None
    media = content_type.partition(";")[0].strip().lower()
    if media != JSON and not (media == NDJSON and route.accepts_ndjson):
        wanted = f"{JSON} or {NDJSON}" if route.accepts_ndjson else JSON
        raise ApiError("unsupported_media_type", f"the Content-Type must be {wanted}, not {media or 'absent'!r}")
    if route.accepts_ndjson:
        _check_count(body, is_ndjson=media == NDJSON)
    with _explained("the body", route.body):
        decoded = _decode_lines(body) if media == NDJSON else _decoder(route.body).decode(body)
    if len(body) > max_id_bytes:
        parts = decoded if isinstance(decoded, list) else [decoded]
        check_sizes(chain.from_iterable(part.ids() for part in parts), max_id_bytes, "invalid_body")
    return decoded


def _check_count(body: bytearray, *, is_ndjson: bool) -> None:
    """Reject too many events before decoding, which would take memory and block other requests.

    Every other line may be blank; the handler checks the exact number.
    """
    count = body.count(b"\n") // 2 if is_ndjson else 0
    if not is_ndjson and body.count(b"{") > MAX_EVENTS:  # an upper bound, cheap to compute
        with suppress(*_MALFORMED):  # decoding will report the error
            count = len(_counter.decode(body))
    if count > MAX_EVENTS:
        raise too_many_events(f"{count:,} events")


def _decode_lines(body: bytearray) -> Any:
    with suppress(*_MALFORMED):
        return _line_decoder.decode_lines(body)
    events = []
    for number, line in enumerate(body.split(b"\n"), 1):  # decode again, to find the line with the error
        if line.strip():
            with _explained(f"line {number}", LearnEvent | ForgetEvent):
                events.append(_line_decoder.decode(line))
    return events


@contextmanager
def _explained(what: str, schema: Any) -> Iterator[None]:
    try:
        yield
    except msgspec.ValidationError as error:
        raise ApiError("invalid_body", f"{what} is not as it should be: {_explain(error, schema)}") from None
    except _MALFORMED as error:
        raise ApiError("malformed_json", f"{what} is not JSON in UTF-8: {error}") from None


def _explain(error: msgspec.ValidationError, schema: Any) -> str:
    """Return the message of an error, with the allowed fields if one is unknown."""
    text = str(error)
    found = _UNKNOWN_FIELD.fullmatch(text)
    if found is None:
        return text
    allowed = allowed_fields(schema, _STEPS.findall(found["path"] or ""))
    where = f" At `{found['path']}`." if found["path"] else ""
    return f"Unknown field `{found['name']}`. Allowed: {', '.join(allowed) or 'none'}.{where}"
