"""Named tuples like those of their constructor, with correct reference counts; the check of plain ids; distinct ids."""

import gc
import random
import sys
from enum import StrEnum

import numpy as np
import pytest

from unbasket.core.util import are_plain, distinct, named
from unbasket.domain.results import ItemCount, Recommendation


def test_tuples_equal_those_of_the_constructor() -> None:
    names = ["milk", 17, "tea"]
    found = named(Recommendation, [(2, 0.5), (0, 0.25)], names)
    assert found == [Recommendation("tea", 0.5), Recommendation("milk", 0.25)]
    assert {type(pair) for pair in found} == {Recommendation}
    assert (found[0].item, found[0].score, found[0]._asdict()) == ("tea", 0.5, {"item": "tea", "score": 0.5})
    assert named(ItemCount, [(1, 3)], names) == [ItemCount(17, 3)]
    assert named(ItemCount, [], names) == []


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
