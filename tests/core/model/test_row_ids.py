"""Row ids follow every change of a history: no basket has the id of another, or keeps its id when it changes."""

from random import Random
from typing import Literal

import numpy as np
import pytest

from unbasket.core.model import RowIds
from unbasket.domain.ids import Id
from unbasket.engine.histories import HistoryState, Record
from unbasket.params import Params


class Shop:
    """Histories, row ids that follow them, and the basket that each id was given to."""

    def __init__(self, grouping: Literal["fixed", "varying"]) -> None:
        self.state = HistoryState(Params(group_size=3, grouping=grouping, alpha=0.8))
        self.state.histories.notes_changes = True
        self.row_ids = RowIds()
        self.given: dict[int, Record] = {}
        self.changed: dict[int, int] = {}  # by the last events: the first changed position of each user
        self._next = 1

    def follow(self) -> None:
        """Follow the changes; check that ids are dropped with baskets that are removed or changed."""
        outdated, self.changed = self.row_ids.follow(self.state.histories.take_changes())
        dropped = set(outdated)
        held = {row_id for owner in self.state.users.codes.values() for row_id in self.row_ids.of(owner, 0)} - {0}
        assert self.given.keys() == held | dropped
        assert not held & dropped
        for row_id in dropped:
            del self.given[row_id]

    def check(self) -> None:
        """Check that each id is that of the basket it was given to; give ids to the others."""
        for user, owner in self.state.users.codes.items():
            records = self.state.records(user)
            row_ids = self.row_ids.of(owner, 0)
            missing = [position for position, row_id in enumerate(row_ids) if row_id == 0]
            assert self.row_ids.missing(owner, 0) == (missing, len(records))
            self._check_missing_last(owner, missing, len(records))
            for position, (record, row_id) in enumerate(zip(records, row_ids, strict=True)):
                if row_id:
                    assert self.given[row_id] == record
                else:
                    self.row_ids.put([(owner, position, 0)], self._next)
                    self.given[self._next] = record
                    self._next += 1

    def _check_missing_last(self, owner: int, missing: list[int], count: int) -> None:
        """Check that baskets without an id are found by the changes: at once if they are last, or else by user."""
        changed = {owner: self.changed[owner]} if owner in self.changed else {}
        places, others = self.row_ids.missing_last(changed)
        if missing == [*range(count - len(missing), count)]:
            assert (places, others) == ([(owner, position, 0) for position in missing], {})
        else:
            assert (places, others) == ([], changed)


def random_event(state: HistoryState, chance: Random) -> None:
    user, basket, item = chance.choice("abc"), chance.randrange(12), chance.randrange(4)
    if chance.random() < 0.6:
        items: list[Id] = [*chance.sample(range(4), chance.randint(1, 3))]
        state.learn(user, items, basket, chance.choice([None, chance.randrange(5)]))
    else:
        state.forget(user, *chance.choice([(None, None), (basket, None), (basket, item), (None, item), (None, item)]))


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
@pytest.mark.parametrize("seed", range(20))
def test_row_ids_follow_every_event(grouping: Literal["fixed", "varying"], seed: int) -> None:
    shop, chance = Shop(grouping), Random(seed)
    for _ in range(300):
        random_event(shop.state, chance)
        shop.follow()
        shop.check()


def test_row_ids_follow_several_events_at_once() -> None:
    shop, chance = Shop("varying"), Random(1)
    for _ in range(100):
        for _ in range(chance.randint(1, 8)):
            random_event(shop.state, chance)
        shop.follow()
        shop.check()


def test_ids_of_users_without_a_history_are_dropped() -> None:
    row_ids, state = RowIds(), HistoryState(Params())
    for user in ("ann", "bob"):
        state.learn(user, ["milk"], 1, None)
    row_ids.load(np.array([0, 1, 2]), np.array([2, 3, 5]), np.array([7, 8, 9, 10, 11]))
    assert [row_ids.of(user, 0) for user in range(3)] == [[7, 8], [9], [10, 11]]
    state.forget("ann", None, None)
    assert row_ids.drop_orphans(state.histories) == [7, 8, 10, 11]
    assert row_ids.of(0, 0) == row_ids.of(2, 0) == []
    assert row_ids.of(1, 0) == [9]
    assert row_ids.follow([(1, 0, 1, 0)]) == ([9], {1: 0})
    assert (row_ids.rows.residue(), row_ids.rows.blocks.used) == (0, 0)
