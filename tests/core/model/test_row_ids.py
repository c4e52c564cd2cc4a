"""Numbers beside baskets follow every change of a history: none is of another basket, or of one that has changed."""

from random import Random
from typing import Literal

import numpy as np
import pytest

from unbasket.core import RowIds
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState, Record
from unbasket.params import Params


class Shop:
    """A memory, numbers that follow it, and what the basket of each number was when it got it."""

    def __init__(self, grouping: Literal["fixed", "varying"]) -> None:
        self.state = EngineState(Params(group_size=3, grouping=grouping))
        self.state.histories.notes_changes = True
        self.numbers = RowIds()
        self.given: dict[int, Record] = {}
        self._next = 1

    def follow(self) -> None:
        """Follow the changes; check that the numbers that go are of baskets that went or have changed."""
        gone = set[int]()
        for splice in self.state.histories.take_changes():
            gone.update(self.numbers.splice(*splice))
        held = {number for owner in self.state.users.codes.values() for number in self.numbers.of(owner, 0)} - {0}
        assert self.given.keys() == held | gone
        assert not held & gone
        for number in gone:
            del self.given[number]

    def check(self) -> None:
        """Check that each number is of the basket that it was given to; number the others."""
        for user, owner in self.state.users.codes.items():
            records = self.state.records(user)
            numbers = self.numbers.of(owner, 0)
            missing = [position for position, number in enumerate(numbers) if number == 0]
            assert self.numbers.unnumbered(owner, 0) == (missing, len(records))
            for position, (record, number) in enumerate(zip(records, numbers, strict=True)):
                if number:
                    assert self.given[number] == record
                else:
                    self.numbers.put(owner, position, self._next)
                    self.given[self._next] = record
                    self._next += 1


def random_event(memory: EngineState, chance: Random) -> None:
    user, basket, item = chance.choice("abc"), chance.randrange(12), chance.randrange(4)
    if chance.random() < 0.6:
        items: list[Id] = [*chance.sample(range(4), chance.randint(1, 3))]
        memory.learn(user, items, basket, chance.choice([None, chance.randrange(5)]))
    else:
        memory.forget(user, *chance.choice([(None, None), (basket, None), (basket, item), (None, item), (None, item)]))


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
@pytest.mark.parametrize("seed", range(20))
def test_they_follow(grouping: Literal["fixed", "varying"], seed: int) -> None:
    shop, chance = Shop(grouping), Random(seed)
    for _ in range(300):
        random_event(shop.state, chance)
        shop.follow()
        shop.check()


def test_several_events_at_once() -> None:
    shop, chance = Shop("varying"), Random(1)
    for _ in range(100):
        for _ in range(chance.randint(1, 8)):
            random_event(shop.state, chance)
        shop.follow()
        shop.check()


def test_nothing_is_left_of_those_who_are_gone() -> None:
    numbers, memory = RowIds(), EngineState(Params())
    for user in ("ann", "bob"):
        memory.learn(user, ["milk"], 1, None)
    numbers.load(np.array([0, 1, 2]), np.array([2, 3, 5]), np.array([7, 8, 9, 10, 11]))
    assert [numbers.of(user, 0) for user in range(3)] == [[7, 8], [9], [10, 11]]
    memory.forget("ann", None, None)
    assert numbers.drop_ownerless(memory.histories) == [7, 8, 10, 11]
    assert numbers.of(0, 0) == numbers.of(2, 0) == []
    assert numbers.of(1, 0) == [9]
    assert numbers.splice(1, 0, 1, 0) == [9]
    assert (numbers.rows.residue(), numbers.rows.blocks.used) == (0, 0)
