"""Ids and their codes: valid ids, the order of ids, and that a removed id leaves no residue."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.domain.ids import FREE, Id, Ids, Texts, checked, sort_key
from unbasket.errors import InvalidIdError

ids = st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1), st.text("abé😀", min_size=1, max_size=3))
changes = st.lists(st.tuples(st.booleans(), ids), max_size=60)


# checked --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0, -1, 2**63 - 1, -(2**63), "a", "é", "日本", "\x00", " ", "\U0010ffff"])
def test_ints_and_texts_are_ids(value: Id) -> None:
    assert checked(value, "user") == value
    assert type(checked(value, "user")) is type(value)


@pytest.mark.parametrize(
    ("value", "plain"),
    [(np.int64(-7), -7), (np.uint8(7), 7), (np.uint64(2**63 - 1), 2**63 - 1), (np.str_("a"), "a"), (np.str_("é"), "é")],
)
def test_numpy_scalars_become_plain(value: object, plain: Id) -> None:
    assert checked(value, "item") == plain
    assert type(checked(value, "item")) is type(plain)


@pytest.mark.parametrize("value", [True, False, np.True_, 1.0, np.float64(1), None, b"a", ("a",), [1], object()])
def test_nothing_else_is_an_id(value: object) -> None:
    with pytest.raises(InvalidIdError) as caught:
        checked(value, "item")
    assert str(caught.value) == f"item id must be a str or an int, not {value!r} ({type(value).__name__})"


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**30, np.uint64(2**63)])
def test_ints_must_fit_into_64_bits(value: int) -> None:
    with pytest.raises(InvalidIdError, match=f"^basket id {int(value)} does not fit into 64 bits; use a str$"):
        checked(value, "basket")


@pytest.mark.parametrize("value", ["", np.str_("")])
def test_texts_must_not_be_empty(value: str) -> None:
    with pytest.raises(InvalidIdError, match=r"^user id must not be empty$"):
        checked(value, "user")


@pytest.mark.parametrize("value", ["\ud800", "a\udfffb"])
def test_lone_surrogates_are_no_text(value: str) -> None:
    with pytest.raises(InvalidIdError) as caught:
        checked(value, "user")
    assert str(caught.value).startswith(f"user id {value!r} is not valid Unicode: ")


# Ids ------------------------------------------------------------------------------------------------------------


def check(codes: Ids, present: set[Id]) -> None:
    """Check all invariants of the map, and that it holds exactly these ids."""
    ordered = sorted(present, key=sort_key)
    labels = [int(codes.labels[codes.codes[name]]) for name in ordered]
    assert codes.sorted() == ordered
    assert len(codes) == len(present)
    assert all(a < b for a, b in pairwise(labels))
    assert all(codes.names[codes.codes[name]] == name for name in present)
    used = set(codes.codes.values())
    assert len(used) == len(present)
    assert all(name == FREE for code, name in enumerate(codes.names) if code not in used)
    assert not codes.labels[[code for code in range(len(codes.labels)) if code not in used]].any()


def run(events: list[tuple[bool, Id]], codes: Ids) -> set[Id]:
    present: set[Id] = set()
    for adds, name in events:
        if adds:
            code = codes.add(name)
            assert codes.names[code] == name
            present.add(name)
        elif name in present:
            codes.remove(name)
            present.remove(name)
        assert (name in codes) == adds
    return present


@given(changes)
def test_labels_are_in_the_order_of_ids_after_any_changes(events: list[tuple[bool, Id]]) -> None:
    codes = Ids()
    check(codes, run(events, codes))


@given(changes, st.lists(ids))
def test_many_at_once_are_as_one_by_one(events: list[tuple[bool, Id]], names: list[Id]) -> None:
    codes = Ids()
    present = run(events, codes)
    assert codes.add_all(names) == [codes.codes[name] for name in names]
    check(codes, present | set(names))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 200), unique=True, max_size=200), st.randoms(use_true_random=False))
def test_the_code_of_an_id_does_not_change(names: list[int], random: Any) -> None:
    codes = Ids()
    first = {name: codes.add(name) for name in names}
    random.shuffle(names)
    assert all(codes.add(name) == first[name] for name in names)
    assert len(codes) == len(names)


ORDERS: dict[str, Callable[[int], Id]] = {
    "each first": lambda i: "a" * (300 - i),
    "each last": lambda i: "b" + "a" * i,
    "each before the last": lambda i: "z" if i == 0 else f"{i:05}",
    "each after the first": lambda i: "a" if i == 0 else f"b{9999 - i}",
    "each in the middle": lambda i: f"{i:05}" if i % 2 else f"{9999 - i}",
    "each smaller": lambda i: 2**63 - 1 - i,
    "each larger": lambda i: 2**62 + i,
}


@pytest.mark.parametrize("name", ORDERS.values(), ids=ORDERS)
def test_labels_are_in_order_wherever_new_ids_arrive(name: Callable[[int], Id]) -> None:
    codes, present = Ids(), set[Id]()
    for i in range(300):  # in the middle, the 61 bits of a gap are used up by as many ids
        codes.add(name(i))
        present.add(name(i))
        check(codes, present)


def relabeled(monkeypatch: pytest.MonkeyPatch, codes: Ids, names: Iterable[Id]) -> list[int]:
    """Return the number of ids in each relabeling while these ids are added."""
    sizes = []
    spread = Ids._spread

    def count(self: Ids, ids: Any, first: int, end: int, below: int, above: int) -> None:
        sizes.append(end - first)
        spread(self, ids, first, end, below, above)

    monkeypatch.setattr(Ids, "_spread", count)
    for name in names:
        codes.add(name)
    return sizes


def test_numbers_that_meet_a_text_cost_no_new_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Ids()
    codes.add("a text")
    assert relabeled(monkeypatch, codes, range(10_000)) == []
    assert all(codes.looks())


def test_texts_that_count_up_cost_no_new_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Ids()
    codes.add_all([f"user-{i}" for i in range(1, 10_000)])
    assert relabeled(monkeypatch, codes, [f"user-{i}" for i in range(10_000, 30_000)]) == []
    assert all(codes.looks())


@pytest.mark.parametrize(
    "name", [ORDERS["each in the middle"], lambda i: f"{'ba'[i % 2]}{i if i % 2 else 9999 - i:05}"]
)
def test_ids_are_relabeled_a_logarithmic_number_of_times(
    monkeypatch: pytest.MonkeyPatch, name: Callable[[int], Id]
) -> None:
    """Also if new ids always arrive between the same two neighbors."""
    codes = Ids()
    sizes = relabeled(monkeypatch, codes, [name(i) for i in range(9_000)])
    assert all(codes.looks())
    assert sum(sizes) < 9_000 * log2(9_000)
    assert sizes.count(max(sizes)) < 4


SPOILERS: dict[str, Callable[[Ids], object]] = {
    "a code without a name": lambda ids: ids.codes.__setitem__("gone", 1),
    "a code that was never given": lambda ids: ids.codes.__setitem__("gone", 10**6),
    "a name without a code": lambda ids: ids.names.append("gone"),
    "a name without its code": lambda ids: ids.codes.pop(7),
    "an id that is in order and has no code": lambda ids: ids._texts.add("gone"),
    "an id that is not in order": lambda ids: ids._ints.remove(7),
    "the label of a number": lambda ids: ids.labels.__setitem__(ids.codes[7], 8),
    "the label of a text": lambda ids: ids.labels.__setitem__(ids.codes["b"], ids.labels[ids.codes["a"]]),
    "a label of another kind": lambda ids: ids.labels.__setitem__(ids.codes["a"], 2**62),
    "two names of a code": lambda ids: ids.codes.__setitem__(7, ids.codes[8]),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_corruption_is_detected(spoil: Callable[[Ids], object]) -> None:
    ids = Ids()
    ids.add_all([*range(2000), 2**63 - 1, 2**63 - 2, "b", "a", "c"])
    ids.remove(1)
    assert all(ids.looks())
    spoil(ids)
    assert not all(ids.looks())


def test_ids_may_change_during_the_check() -> None:
    ids = Ids()
    ids.add_all([*range(2000), *map(str, range(2000))])
    for number, is_right in enumerate(ids.looks()):
        assert is_right
        ids.remove(number)
        ids.add(f"new {number}")
        ids.add(5000 + number)


def test_a_view_of_labels_stays_valid() -> None:
    codes = Ids()
    codes.add_all(range(100))
    seen = codes.labels[:100]
    codes.add_all(range(100, 10_000))
    assert seen.tolist() == list(range(100))
    assert all(codes.looks())


def test_codes_are_used_again() -> None:
    codes = Ids()
    for name in range(100):
        codes.add(name)
    for name in range(100):
        codes.remove(name)
    for name in range(100):
        codes.add(f"new {name}")
    assert sorted(codes.codes.values()) == list(range(100))
    assert len(codes.names) == 100


def test_no_attribute_keeps_a_removed_id() -> None:
    codes = Ids()
    for name in ("ann", 4_711, "zoe", 4_712, "carl"):
        codes.add(name)
    codes.remove("ann")
    codes.remove(4_711)
    state = repr(vars(codes)) + repr([vars(codes._ints), vars(codes._large_ints), vars(codes._texts)])
    assert "carl" in state
    assert "4712" in state
    assert "ann" not in state
    assert "4711" not in state


def test_all_removed_leaves_nothing() -> None:
    codes = Ids()
    codes.add_all(["a", 1, "b", 2])
    for name in ("b", 1, "a", 2):
        codes.remove(name)
    assert dict(codes.codes.items()) == {}
    assert codes.names == [FREE] * 4
    assert not codes.labels.any()
    assert codes.sorted() == []
    assert sorted(codes._free) == [0, 1, 2, 3]


def test_many_at_once_use_free_codes_again() -> None:
    codes = Ids()
    codes.add_all(["a", "b", "c"])
    codes.remove("a")
    codes.remove("b")
    codes.add_all(["d", 1, "e", 2])
    assert len(codes.names) == 5
    check(codes, {"c", "d", 1, "e", 2})


# Texts ----------------------------------------------------------------------------------------------------------


def test_a_text_stays_until_its_last_use_ends() -> None:
    texts = Texts()
    first = texts.claim("b1")
    assert texts.claim("b1") == first
    other = texts.claim("b2")
    assert other != first
    texts.release(first)
    assert texts.names[first] == "b1"
    assert dict(texts.codes.items()) == {"b1": first, "b2": other}
    texts.release(first)
    assert dict(texts.codes.items()) == {"b2": other}
    assert "b1" not in repr(vars(texts))


def test_codes_of_texts_are_used_again() -> None:
    texts = Texts()
    code = texts.claim("old")
    texts.release(code)
    assert texts.claim("new") == code
    assert texts.names == ["new"]
    texts.release(code)
    assert len(texts.codes) == 0


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b", "c", "d"])), max_size=40))
def test_uses_are_counted(events: list[tuple[bool, str]]) -> None:
    texts, uses = Texts(), dict.fromkeys("abcd", 0)
    for claims, text in events:
        if claims:
            texts.claim(text)
            uses[text] += 1
        elif uses[text]:
            texts.release(texts.codes[text])
            uses[text] -= 1
        present = {text for text, count in uses.items() if count}
        assert set(texts.codes) == present
        assert all(texts.names[texts.codes[text]] == text for text in present)
        assert sorted(name for name in texts.names if name != FREE) == sorted(present)


def test_wrong_counts_of_texts_are_detected() -> None:
    texts = Texts()
    codes = [texts.claim("a"), texts.claim("b", 2), texts.claim("c")]
    texts.release(codes[2])
    assert texts.is_consistent([1, 2, 0])
    assert not texts.is_consistent([1, 1, 0])
    assert not texts.is_consistent([1, 2])
    texts.names[2] = "c"
    assert not texts.is_consistent([1, 2, 0])
    texts.names[2] = FREE
    del texts.codes["a"]
    assert not texts.is_consistent([1, 2, 0])
