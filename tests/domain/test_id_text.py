"""Ids as text: parsing, and a text that is parsed back."""

import pytest

from unbasket.domain.id_text import format_id, parse_id


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("17", 17),
        ("-5", -5),
        ("ann", "ann"),
        ('"17"', "17"),
        ("007", "007"),
        ("+7", "+7"),
        ("7.0", "7.0"),
        ("９", "９"),
        (str(2**63), str(2**63)),
        ('"open', '"open'),
        ('"a\\"b"', 'a"b'),
        ("null", "null"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_parsing(text: str, expected: str | int) -> None:
    assert parse_id(text) == expected
    assert type(parse_id(text)) is type(expected)


@pytest.mark.parametrize("name", [17, -5, "17", "ann", '"ann"', "", " ", "007", "null", ' "a"', str(2**63), "\u00fc/"])
def test_a_formatted_id_spells_the_same_id(name: str | int) -> None:
    assert str(parse_id(format_id(name))) == str(name)


@pytest.mark.parametrize("text", [" " + "[" * 100_000, "\n" + '{"a":' * 100_000, "[" * 100_000, '"' + "[" * 100_000])
def test_a_text_that_looks_like_deep_json_is_a_text(text: str) -> None:
    assert parse_id(text) == text
