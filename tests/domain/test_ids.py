"""Ids and their codes: valid ids, the order of ids, and that a removed id leaves no residue."""

from collections.abc import Callable, Iterable
from itertools import pairwise
from math import log2
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.domain.ids import (
    FREE,
    BasketIds,
    Id,
    Ids,
    IdTypes,
    all_in_type,
    checked,
    in_order,
    in_type,
    text_types,
    type_of,
    whole_number,
)
from unbasket.errors import InvalidIdError

numbers = st.one_of(st.integers(-4, 4), st.integers(-(2**63), 2**63 - 1), st.integers(2**62, 2**62 + 4))
texts = st.text("abé😀", min_size=1, max_size=3)
changes = st.one_of([st.lists(st.tuples(st.booleans(), ids), max_size=60) for ids in (numbers, texts)])


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
    ordered = in_order(present)
    assert codes.type is type_of(present)
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
    codes = Ids("user")
    check(codes, run(events, codes))


@given(changes, st.data())
def test_many_at_once_are_as_one_by_one(events: list[tuple[bool, Id]], data: st.DataObject) -> None:
    names: list[Any] = data.draw(st.lists(texts if events and isinstance(events[0][1], str) else numbers))
    codes = Ids("user")
    present = run(events, codes)
    assert codes.add_all(names) == [codes.codes[name] for name in names]
    check(codes, present | set(names))


@settings(max_examples=20)
@given(st.lists(st.integers(0, 200), unique=True, max_size=200), st.randoms(use_true_random=False))
def test_the_code_of_an_id_does_not_change(names: list[int], random: Any) -> None:
    codes = Ids("user")
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
    codes, present = Ids("user"), set[Id]()
    for i in range(300):  # in the middle, the 61 bits of a gap are used up by as many ids
        codes.add(name(i))
        present.add(name(i))
        check(codes, present)


def relabeled(monkeypatch: pytest.MonkeyPatch, codes: Ids, names: Iterable[Id]) -> list[int]:
    """Return the number of ids in each relabeling while these ids are added."""
    sizes = []
    spread = Ids._spread

    def count(self: Ids, first: int, end: int, below: int, above: int) -> None:
        sizes.append(end - first)
        spread(self, first, end, below, above)

    monkeypatch.setattr(Ids, "_spread", count)
    for name in names:
        codes.add(name)
    return sizes


def test_numbers_that_meet_a_large_one_cost_no_new_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Ids("user")
    codes.add(2**62)
    assert relabeled(monkeypatch, codes, range(10_000)) == []
    assert all(codes.looks())


def test_texts_that_count_up_cost_no_new_labels(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = Ids("user")
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
    codes = Ids("user")
    sizes = relabeled(monkeypatch, codes, [name(i) for i in range(9_000)])
    assert all(codes.looks())
    assert sum(sizes) < 9_000 * log2(9_000)
    assert sizes.count(max(sizes)) < 4


LARGE = 2**63 - 9

SPOILERS: dict[str, Callable[[Ids], object]] = {
    "a code without a name": lambda ids: ids.codes.__setitem__(5000, 1),
    "a code that was never given": lambda ids: ids.codes.__setitem__(5000, 10**6),
    "a name without a code": lambda ids: ids.names.append(5000),
    "a name without its code": lambda ids: ids.codes.pop(7),
    "an id that is in order and has no code": lambda ids: ids._labeled.add(LARGE + 5),
    "a large number that is not in order": lambda ids: ids._labeled.remove(LARGE),
    "the label of a number": lambda ids: ids.labels.__setitem__(ids.codes[7], 8),
    "the label of a large number": lambda ids: ids.labels.__setitem__(
        ids.codes[LARGE + 1], ids.labels[ids.codes[LARGE]]
    ),
    "a label out of range": lambda ids: ids.labels.__setitem__(ids.codes[LARGE], 2**62 - 1),
    "two names of a code": lambda ids: ids.codes.__setitem__(7, ids.codes[8]),
    "an id of the other type": lambda ids: ids.codes.__setitem__("7", 7),
    "another type": lambda ids: setattr(ids, "type", str),
}


@pytest.mark.parametrize("spoil", SPOILERS.values(), ids=SPOILERS)
def test_corruption_is_detected(spoil: Callable[[Ids], object]) -> None:
    ids = Ids("user")
    ids.add_all([*range(2000), LARGE + 1, LARGE, LARGE + 3])
    ids.remove(1)
    assert all(ids.looks())
    spoil(ids)
    assert not all(ids.looks())


def test_ids_may_change_during_the_check() -> None:
    ids = Ids("user")
    ids.add_all([*range(2000), *range(2**62, 2**62 + 2000)])
    for number, is_right in enumerate(ids.looks()):
        assert is_right
        ids.remove(number)
        ids.add(2**62 + 9000 - number)
        ids.add(5000 + number)


def test_a_view_of_labels_stays_valid() -> None:
    codes = Ids("user")
    codes.add_all(range(100))
    seen = codes.labels[:100]
    codes.add_all(range(100, 10_000))
    assert seen.tolist() == list(range(100))
    assert all(codes.looks())


def test_codes_are_used_again() -> None:
    codes = Ids("user")
    for name in range(100):
        codes.add(name)
    for name in range(100):
        codes.remove(name)
    for name in range(100, 200):
        codes.add(name)
    assert sorted(codes.codes.values()) == list(range(100))
    assert len(codes.names) == 100


def test_no_attribute_keeps_a_removed_id() -> None:
    codes = Ids("user")
    large = 2**62 + 4_000_000_000
    for name in (large, 4_711, large + 1, 4_712, large + 2):
        codes.add(name)
    codes.remove(large)
    codes.remove(4_711)
    state = repr(vars(codes)) + repr(vars(codes._labeled))
    assert str(large + 2) in state
    assert "4712" in state
    assert str(large) not in state
    assert "4711" not in state


def test_all_removed_leaves_nothing() -> None:
    codes = Ids("user")
    codes.add_all(["a", "1", "b", "2"])
    for name in ("b", "1", "a", "2"):
        codes.remove(name)
    assert codes.type is None
    assert dict(codes.codes.items()) == {}
    assert codes.names == [FREE] * 4
    assert not codes.labels.any()
    assert codes.sorted() == []
    assert sorted(codes._free) == [0, 1, 2, 3]


def test_many_at_once_use_free_codes_again() -> None:
    codes = Ids("user")
    codes.add_all(["a", "b", "c"])
    codes.remove("a")
    codes.remove("b")
    codes.add_all(["d", "1", "e", "2"])
    assert len(codes.names) == 5
    check(codes, {"c", "d", "1", "e", "2"})


# Types of ids ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "spelled", "found"),
    [(17, "17", 17), (17, 17, 17), ("17", 17, "17"), ("a", "017", None), (-3, "-3", -3), (2**62, str(2**62), 2**62)],
)
def test_every_spelling_of_an_id_has_its_code(held: Id, spelled: Id, found: Id | None) -> None:
    codes = Ids("user")
    code = codes.add(held)
    assert codes.find(spelled) == (None if found is None else code)
    assert found is None or codes.canonical(spelled) == found


def test_a_value_that_spells_no_id_of_the_type_is_an_error() -> None:
    codes = Ids("user")
    codes.add(17)
    for value in ("", None, 1.0, True, "017"):
        with pytest.raises(InvalidIdError, match=r"^user id"):
            codes.find(value)
    codes.remove(17)
    assert codes.find("017") is None


@pytest.mark.parametrize("text", ["0", "-1", "17", str(2**63 - 1), str(-(2**63))])
def test_texts_that_are_whole_numbers(text: str) -> None:
    assert whole_number(text) == int(text)
    assert in_type(text, int, "user") == int(text)
    assert in_type(int(text), str, "user") == text


@pytest.mark.parametrize("text", ["", "-", "-0", "01", "+1", " 1", "1 ", "1.0", "1e3", "١", str(2**63), "9" * 5000])
def test_texts_that_are_not(text: str) -> None:
    assert whole_number(text) is None


def test_a_column_of_numbers_and_texts_is_one_of_texts() -> None:
    assert type_of([]) is None
    assert type_of([1, 2]) is int
    assert type_of([1, "a"]) is str
    assert all_in_type([1, "a"], None, "item") == ["1", "a"]
    assert all_in_type([1, "2"], int, "item") == [1, 2]
    assert IdTypes(None, int, None).or_of([1, "a"], ["b"], [3]) == (str, int, int)
    assert text_types(["item"]) == (None, None, str)


# BasketIds ---------------------------------------------------------------------------------------------------------


def test_a_number_is_its_own_key() -> None:
    ids = BasketIds()
    assert ids.claim(-5) == ids.key(-5) == ids.name(-5) == -5
    ids.release(-5)
    assert ids.names is None
    assert ids.is_consistent([])


def test_a_text_stays_until_its_last_use_ends() -> None:
    ids = BasketIds()
    first = ids.claim("b1")
    assert ids.claim("b1") == first == ids.key("b1")
    other = ids.claim("b2")
    assert other != first
    ids.release("b1")
    assert ids.name(first) == "b1"
    ids.release("b1")
    assert ids.key("b1") == -1
    assert ids.key("b2") == other
    assert "b1" not in repr(vars(ids))


def test_codes_of_texts_are_used_again() -> None:
    ids = BasketIds()
    code = ids.claim("old")
    ids.release("old")
    assert ids.claim("new") == code
    assert ids.names == ["new"]
    ids.release("new")
    assert ids.names is None


def test_many_texts_at_once() -> None:
    ids = BasketIds()
    ids.claim("b")
    keys = ids.claim_all(["a", "b", "never used"], np.array([1, 0, 1], np.int64))
    assert [ids.name(key) for key in keys.tolist()] == ["b", "a", "b"]
    assert ids.names == ["b", "a"]
    assert ids.is_consistent([3, 1])


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(["a", "b", "c", "d"])), max_size=40))
def test_uses_are_counted(events: list[tuple[bool, str]]) -> None:
    ids, uses = BasketIds(), dict.fromkeys("abcd", 0)
    for claims, text in events:
        if claims:
            ids.claim(text)
            uses[text] += 1
        elif uses[text]:
            ids.release(text)
            uses[text] -= 1
        present = {text for text, count in uses.items() if count}
        assert {text for text in "abcd" if ids.key(text) >= 0} == present
        assert all(ids.name(ids.key(text)) == text for text in present)
        assert sorted(name for name in ids.names or [] if name != FREE) == sorted(present)
        assert ids.is_consistent([uses.get(name, 0) for name in ids.names or []])


def test_wrong_counts_of_texts_are_detected() -> None:
    ids = BasketIds()
    for text in ("a", "b", "b", "c"):
        ids.claim(text)
    ids.release("c")
    assert ids.is_consistent([1, 2, 0])
    assert not ids.is_consistent([1, 1, 0])
    assert not ids.is_consistent([1, 2])
    assert not ids.is_consistent([])
    ids._names[2] = "c"
    assert not ids.is_consistent([1, 2, 0])
    ids._names[2] = FREE
    del ids._codes["a"]
    assert not ids.is_consistent([1, 2, 0])
