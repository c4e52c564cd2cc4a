"""JSON and TOML from outside: every fault is one kind of error with a short message."""

import msgspec
import pytest

from unbasket.domain.decoding import decode_json, decode_toml


def test_values() -> None:
    assert decode_json(b"[1, 2]", list[int]) == [1, 2]
    assert decode_toml("a.b = 1", dict) == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('["x"]', "Expected `int`"),
        ("[1", "truncated"),
    ],
)
def test_faults_of_json(text: str | bytes, match: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=match):
        decode_json(text, list[int])


def test_json_that_is_not_utf_8() -> None:
    with pytest.raises(msgspec.DecodeError, match=r"byte \d is not UTF-8"):
        decode_json(b'"\xff"', str)


def test_deep_json() -> None:
    with pytest.raises(msgspec.DecodeError, match="nested too deeply"):
        decode_json("[" * 100_000, list)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("a = " + "[" * 100_000, "nested too deeply"),
        (".".join("a" * 200) + " = 1", "nested too deeply"),
        (b"a = '\xff'", "byte 6 is not UTF-8"),
        ("a = ", "Invalid value"),
    ],
)
def test_faults_of_toml(text: str | bytes, match: str) -> None:
    with pytest.raises(msgspec.DecodeError, match=match):
        decode_toml(text, dict)
