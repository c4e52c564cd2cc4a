"""JSON and TOML from outside: every fault raises a `msgspec.DecodeError` with a short message."""

import re
from typing import TypeVar

import msgspec

_DEEPEST_KEY = 100  # levels of a key such as a.a.a.a: the parser takes quadratic time in the depth
_ENDS_OF_KEYS = re.compile(r"[={,\n]")
_TOO_DEEP = "it is nested too deeply"

Value = TypeVar("Value")


def decode_json(data: bytes | str, kind: type[Value]) -> Value:
    """Parse JSON.

    >>> decode_json("[" * 100_000, list)
    Traceback (most recent call last):
    msgspec.DecodeError: it is nested too deeply
    """
    try:
        return msgspec.json.decode(data, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _explained(error) from None


def decode_toml(data: bytes | str, kind: type[Value]) -> Value:
    """Parse TOML.

    >>> decode_toml("a = " + "[" * 100_000, dict)
    Traceback (most recent call last):
    msgspec.DecodeError: it is nested too deeply
    """
    try:
        text = data.decode() if isinstance(data, bytes) else data
        if max(part.count(".") for part in _ENDS_OF_KEYS.split(text)) > _DEEPEST_KEY:
            raise msgspec.DecodeError(_TOO_DEEP)
        return msgspec.toml.decode(text, type=kind)
    except (RecursionError, UnicodeDecodeError) as error:
        raise _explained(error) from None


def _explained(error: RecursionError | UnicodeDecodeError) -> msgspec.DecodeError:
    if isinstance(error, RecursionError):
        return msgspec.DecodeError(_TOO_DEEP)
    return msgspec.DecodeError(f"byte {error.start + 1} is not UTF-8")
