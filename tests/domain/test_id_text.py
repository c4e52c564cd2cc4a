"""Ids as text: parsing against an engine's ids, and the unambiguous format."""

import pytest

import unbasket as ub
from unbasket.domain.id_text import IdReader, LiveIdReader, format_id, matches_id, parse_id


def engine(*ids: str | int) -> ub.Recommender:
    """Return an engine with each id as a user, an item and a basket."""
    rec = ub.Recommender()
    for name in ids:
        rec.learn(name, [name], basket=name)
    return rec


@pytest.mark.parametrize(
    ("held", "text", "expected"),
    [
        ([17], "17", 17),
        ([17], "18", 18),
        ([17], "ann", "ann"),
        ([], "17", 17),
        (["ann"], "17", "17"),
        (["17"], "17", "17"),
        ([17, "17"], "17", 17),
        ([17, "17"], '"17"', "17"),
        ([17, "ann"], "18", "18"),
        ([17], '"17"', "17"),
        ([-5], "-5", -5),
        ([7], "007", "007"),
        ([7], "+7", "+7"),
        ([7], "7.0", "7.0"),
        ([7], "９", "９"),
        ([7], str(2**63), str(2**63)),
        ([7], '"open', '"open'),
        ([7], '"a\\"b"', 'a"b'),
        ([7], "null", "null"),
        ([7], "9" * 5000, "9" * 5000),
    ],
)
def test_the_rule(held: list[str | int], text: str, expected: str | int) -> None:
    ids, live = IdReader(engine(*held)), LiveIdReader(engine(*held))
    assert (ids.user(text), ids.item(text)) == (expected, expected)
    assert (live.user(text), live.item(text)) == (expected, expected)
    assert ids.basket("unknown", text) == expected


def test_a_user_s_own_baskets_come_first() -> None:
    rec = engine("ann")
    rec.learn("bob", ["x"], basket=17)
    ids = IdReader(rec)
    assert ids.basket("ann", "18") == "18"
    assert ids.basket("bob", "18") == 18
    assert ids.basket("new", "18") == "18"


def test_a_live_reader_follows_the_engine() -> None:
    rec = engine(17)
    ids = LiveIdReader(rec)
    assert (ids.user("18"), ids.item("18"), ids.basket("new", "18"), ids.basket(17, "18")) == (18, 18, 18, 18)
    rec.learn("ann", ["tea"], basket="x")
    assert (ids.user("18"), ids.item("18"), ids.basket("new", "18"), ids.basket(17, "18")) == ("18", "18", "18", 18)
    assert (ids.user("17"), ids.item("17"), ids.basket("ann", "17")) == (17, 17, "17")
    rec.forget("ann")
    assert (ids.user("18"), ids.item("18"), ids.basket("new", "18")) == (18, 18, 18)


def test_a_live_reader_copies_no_list_of_all_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on the event loop of a service: its cost must not grow with the engine."""
    ids = LiveIdReader(engine(17, "ann"))
    for name in ("users", "items", "history"):
        monkeypatch.delattr(ub.Recommender, name)
    for text, expected in (("17", 17), ("18", "18"), ("ann", "ann")):
        assert (ids.user(text), ids.item(text), ids.basket("new", text)) == (expected, expected, text)
    assert (ids.basket(17, "17"), ids.basket(17, "18"), ids.basket("ann", "18")) == (17, 18, "18")


@pytest.mark.parametrize("name", [17, -5, "17", "ann", '"ann"', "", " ", "007", "null", ' "a"', str(2**63), "\u00fc/"])
def test_a_formatted_id_is_parsed_back(name: str | int) -> None:
    assert parse_id(format_id(name)) == name
    assert matches_id(format_id(name), name)


def test_one_text_may_match_two_ids() -> None:
    assert matches_id("17", 17)
    assert matches_id("17", "17")
    assert not matches_id('"17"', 17)
    assert not matches_id("18", 17)
    assert not matches_id("Ann", "ann")


@pytest.mark.parametrize("text", [" " + "[" * 100_000, "\n" + '{"a":' * 100_000, "[" * 100_000, '"' + "[" * 100_000])
def test_a_text_that_looks_like_deep_json_is_a_text(text: str) -> None:
    assert parse_id(text) == text
