"""Named tuples like those of their constructor, with correct reference counts; plain ids and learns; distinct ids."""

import gc
import random
import sys
from enum import StrEnum

import numpy as np
import pytest

from unbasket.core.util import are_plain, distinct, named, plain_learn
from unbasket.domain.events import Learn
from unbasket.domain.results import ItemCount, Recommendation


def test_tuples_equal_those_of_the_constructor() -> None:
    names = ["milk", 17, "tea"]
    found = named(Recommendation, [(2, 0.5), (0, 0.25)], names)
    assert found == [Recommendation("tea", 0.5), Recommendation("milk", 0.25)]
    assert {type(pair) for pair in found} == {Recommendation}
    assert (found[0].item, found[0].score, found[0]._asdict()) == ("tea", 0.5, {"item": "tea", "score": 0.5})
    assert named(ItemCount, [(1, 3)], names) == [ItemCount(17, 3)]
    assert named(ItemCount, [], names) == []


def test_hashes_are_those_of_the_constructor() -> None:
    """Python 3.14 and later keep a tuple's hash in it."""
    assert {*named(Recommendation, [(0, 0.5)], ["milk"])} == {Recommendation("milk", 0.5)}


def test_reference_counts() -> None:
    name, number = object(), float("1.5")
    before = sys.getrefcount(name), sys.getrefcount(number)
    found = named(Recommendation, [(0, number)], [name])
    assert (sys.getrefcount(name), sys.getrefcount(number)) == (before[0] + 1, before[1] + 1)
    assert gc.is_tracked(found[0])
    del found
    assert (sys.getrefcount(name), sys.getrefcount(number)) == before


class Kind(StrEnum):
    """A subclass of str."""

    MILK = "milk"


def test_plain_ids() -> None:
    assert are_plain([])
    assert are_plain([-(2**63), 0, 17, 2**63 - 1, "milk", "17"])


@pytest.mark.parametrize(
    "name", [2**63, -(2**63) - 1, "", "Käse", True, 1.0, None, b"milk", Kind.MILK, np.int64(1)], ids=repr
)
def test_ids_that_are_not_plain(name: object) -> None:
    assert not are_plain([name])
    assert not are_plain(["milk", name, 17])


def test_distinct_ids_equal_the_keys_of_a_dict() -> None:
    chance = random.Random(1)
    numbers = [-2, -1, 0, 7, 256, 512, 7 + 2**61 - 1, *range(1000, 1100)]  # some share a hash, or its low bits
    texts = [str(number) for number in numbers]
    for size in (*range(12), 63, 64, 65, 200):
        for ids in (numbers, texts):
            names = chance.choices(ids[: max(9, size)], k=size)
            assert distinct(names) == list(dict.fromkeys(names))
            alone = chance.sample(ids, min(size, len(ids)))
            assert distinct(alone) == alone
            assert distinct(alone) is not alone


def test_plain_learns() -> None:
    learn = plain_learn(Learn, "ann", ["milk", 7, "milk"], -(2**63), 17, 3)
    assert learn == Learn("ann", ["milk", 7], -(2**63), 17)
    assert type(learn) is Learn
    assert plain_learn(Learn, 1, [2], 3, None, 1) == (1, [2], 3, None)
    assert plain_learn(Learn, 1, [2], 3, 1 - 2**63, 1) == (1, [2], 3, 1 - 2**63)
    items, time = ["milk"], int("17000")
    before = sys.getrefcount(time)
    learn = plain_learn(Learn, "ann", items, 1, time, 1)
    assert learn is not None
    assert learn.items is not items
    assert sys.getrefcount(time) == before + 1
    del learn
    assert sys.getrefcount(time) == before


UNUSUAL = [2**63, "", "Käse", True, 1.0, None, b"milk", Kind.MILK, np.int64(1)]


@pytest.mark.parametrize(
    "fields",
    [
        *((name, ["milk"], 1, None) for name in UNUSUAL),
        *(("ann", ["milk"], name, None) for name in UNUSUAL),
        *(("ann", ["milk", name], 1, None) for name in UNUSUAL),
        *(("ann", items, 1, None) for items in ([], ["a", "b", "c"], ("milk",), "milk", None, iter(["milk"]))),
        *(("ann", ["milk"], 1, time) for time in (-(2**63), 2**63, True, 1.0, "1", np.int64(1))),
    ],
)
def test_learns_that_are_not_plain(fields: tuple[object, object, object, object]) -> None:
    assert plain_learn(Learn, *fields, 2) is None
