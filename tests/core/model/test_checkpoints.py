"""Checkpoints: few, near enough to every change, and a fold resumed from one is the fold from the start, bit for bit.

With s groups per checkpoint, a history of G groups and a change in group P (from 0), G - P = d groups from the end, the
newest checkpoint before the change is less than max(2 d, s) groups before P: take the smallest power of two
2^e >= d / s and the last multiple q of 2^e with q s <= P. Then G - q s < d + 2^e s <= 2 * 2^e s, so checkpoint q is
worth keeping, and P - q s < 2^e s <= max(2 d, s). That holds as long as the history only grows or is edited. Deletions
can make a checkpoint worth keeping that was dropped before: their cost is bounded in sum only.
"""

import random
from math import log2
from typing import Any

import numpy as np
import pytest

from unbasket.core.check import testing
from unbasket.core.index import LiveIndex
from unbasket.core.model import FoldWorkspace, queries, worth_keeping
from unbasket.engine.state import EngineState
from unbasket.params import Grouping, Params

EVERY, SIZE = 8, 2  # baskets per checkpoint, baskets per group
STRIDE = EVERY // SIZE

GROUPINGS: list[Grouping] = ["fixed", "varying"]


def chain(live: LiveIndex, user: int) -> list[int]:
    """Return the numbers of a user's checkpoints, newest first."""
    table, checkpoint = testing.checkpoints(live.checkpoints), int(testing.newest_checkpoints(live.checkpoints)[user])
    numbers = []
    while checkpoint:
        numbers.append(checkpoint)
        checkpoint = int(table["older"][checkpoint])
    return numbers


def orphaned_checkpoints(live: LiveIndex, user: int) -> int:
    """Count the checkpoints outside of the only user's chain that are not zeroed."""
    table = testing.checkpoints(live.checkpoints)
    unused = np.ones(len(table), np.bool_)
    unused[chain(live, user)] = False
    return int(np.count_nonzero(table["baskets"][unused] | table["items"][unused] | table["groups"][unused]))


class Shopper:
    """The only user of an engine, with baskets named 0, 1, 2, ... in the order they were learned."""

    def __init__(self, grouping: Grouping, seed: int = 0) -> None:
        self.state = EngineState(Params(group_size=SIZE, grouping=grouping, alpha=0.8))
        self.random = random.Random(seed)
        self.baskets: list[int] = []
        self._names = 0

    @property
    def live(self) -> LiveIndex:
        return self.state.live

    def items(self) -> list[Any]:
        return self.random.sample(range(12), self.random.randint(1, 4))

    def learn(self, position: int | None = None) -> None:
        """Learn a new basket at a position; positions are kept by times far enough apart."""
        position = len(self.baskets) if position is None else position
        times = [basket.time or 0 for basket in self.state.history("u")] if position < len(self.baskets) else []
        time = (
            (times[position] + (times[position - 1] if position else -(2**40))) // 2 if times else self._names * 2**20
        )
        self.state.learn("u", self.items(), self._names, time)
        self.baskets.insert(position, self._names)
        self._names += 1

    def forget(self, position: int) -> None:
        self.state.forget("u", self.baskets.pop(position), None)

    def edit(self, position: int) -> None:
        self.state.learn("u", self.items(), self.baskets[position], None)

    def checkpoints(self) -> list[tuple[int, int]]:
        """Return the baskets and groups before each checkpoint, newest first."""
        table = testing.checkpoints(self.live.checkpoints)[chain(self.live, 0)]
        return list(zip(table["baskets"].tolist(), table["groups"].tolist(), strict=True))

    def starts(self) -> list[int]:
        """Return where the groups start."""
        if self.state.params.grouping == "fixed":
            return list(range(0, len(self.baskets), SIZE))
        return [i for i, record in enumerate(self.state.records("u")) if record.opens]

    def rewind(self, position: int) -> int:
        """Count the baskets before a change at this position that are replayed with it."""
        return position - max((baskets for baskets, _ in self.checkpoints() if baskets < position), default=0)

    def groups_to_rewind(self, position: int) -> tuple[int, int]:
        """Count the same in groups before the one that the change can reach, and that group's distance from the end."""
        starts = self.starts()
        reached = sum(start < position for start in starts) - 1  # the basket may join the group before it
        checkpoint = max((groups for baskets, groups in self.checkpoints() if baskets < position), default=0)
        return reached - checkpoint, len(starts) - reached


@pytest.fixture(autouse=True)
def _frequent_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbasket.engine.histories.CHECKPOINT_EVERY", EVERY)


def shopper_with(count: int, grouping: Grouping) -> Shopper:
    shopper = Shopper(grouping)
    for _ in range(count):
        shopper.learn()
    return shopper


def same_bits(shopper: Shopper) -> bool:
    """Return whether the fold from the newest checkpoint equals the fold from the start."""
    codes, values = queries.vector(shopper.state.histories, FoldWorkspace(), shopper.state.rule, 0)
    return dict(zip(codes.tolist(), values.tolist(), strict=True)) == testing.refold(shopper.live, 0)


def test_checkpoints_are_kept_by_the_ruler_function() -> None:
    kept = [group for group in range(100) if worth_keeping(group, 100, 4)]
    assert kept == [64, 80, 88, 96]  # 16, 20, 22 and 24 times 4: rounder numbers are kept longer
    assert not worth_keeping(0, 1, 4)
    assert not worth_keeping(5, 6, 4)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_growing_history_keeps_few_checkpoints_and_all_that_it_should(grouping: Grouping) -> None:
    shopper = Shopper(grouping)
    for count in range(1, 600):
        shopper.learn()
        groups = len(shopper.starts())
        checkpoints = [number for _, number in shopper.checkpoints()]
        assert checkpoints == [g for g in range(groups - 1, 0, -1) if worth_keeping(g, groups, STRIDE)]
        assert len(checkpoints) <= log2(max(1, groups / STRIDE)) + 1
        assert all(baskets == number * SIZE < count for baskets, number in shopper.checkpoints())


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_every_position_has_a_checkpoint_near_enough(grouping: Grouping) -> None:
    shopper = shopper_with(700, grouping)
    assert shopper.checkpoints()
    for position in range(1, 701):
        replayed, to_end = shopper.groups_to_rewind(position)
        assert replayed < max(2 * to_end, STRIDE)
        assert shopper.rewind(position) <= 2 * (700 - position) + EVERY + 4 * SIZE


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_late_baskets_and_edits_keep_the_checkpoints_near_enough(grouping: Grouping) -> None:
    shopper = shopper_with(300, grouping)
    for _ in range(150):
        position = shopper.random.randint(1, len(shopper.baskets) - 1)
        replayed, to_end = shopper.groups_to_rewind(position)
        assert replayed < max(2 * to_end, STRIDE)
        shopper.random.choice([shopper.learn, shopper.edit])(position)
        assert same_bits(shopper)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_learning_and_forgetting_at_the_end_replays_a_constant_number(grouping: Grouping) -> None:
    for count in (100, 1000):
        shopper = shopper_with(count, grouping)
        for _ in range(20):
            assert shopper.rewind(len(shopper.baskets)) <= EVERY + SIZE
            shopper.learn()
            assert shopper.rewind(len(shopper.baskets) - 1) <= EVERY + 4 * SIZE
            shopper.forget(len(shopper.baskets) - 1)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_deleting_from_the_end_is_cheap_in_sum(grouping: Grouping) -> None:
    count = 1000
    shopper = shopper_with(count, grouping)
    replayed = 0
    while shopper.baskets:
        replayed += shopper.rewind(len(shopper.baskets) - 1)
        shopper.forget(len(shopper.baskets) - 1)
        assert not shopper.baskets or same_bits(shopper)
    assert replayed <= count * (EVERY + log2(count))  # from the start each time, it would be count * count / 2


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_resumed_fold_is_the_fold_from_the_start(grouping: Grouping, seed: int) -> None:
    shopper = Shopper(grouping, seed)
    resumed_folds = 0
    for step in range(400):
        length = len(shopper.baskets)
        # Grow, then shrink, mostly near the end, sometimes anywhere.
        reach = length if shopper.random.random() < 0.2 else min(length, 12)
        position = length - shopper.random.randint(0, reach)
        change = shopper.random.random()
        if length < 3 or change < (0.75 if step < 250 else 0.25):
            shopper.learn(position)
        elif change < 0.85:
            shopper.forget(min(position, length - 1))
        else:
            shopper.edit(min(position, length - 1))
        resumed_folds += bool(shopper.checkpoints())
        assert same_bits(shopper)
        assert shopper.live.checkpoints.levels.residue() == 0
        assert orphaned_checkpoints(shopper.live, 0) == 0
    assert resumed_folds > 200


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_the_index_has_the_resumed_vector(grouping: Grouping) -> None:
    shopper = shopper_with(200, grouping)
    shopper.edit(197)
    vector, *_ = shopper.state.index.entries(0)
    codes, values = queries.vector(shopper.state.histories, FoldWorkspace(), shopper.state.rule, 0)
    expected = {code: round(value * 2**24) for code, value in zip(codes.tolist(), values.tolist(), strict=True)}
    assert vector == {code: value for code, value in expected.items() if value}


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_a_change_at_a_checkpoint_drops_it(grouping: Grouping) -> None:
    """Under varying groups a basket inserted there may join the group before it, which the checkpoint has folded."""
    shopper = shopper_with(40, grouping)
    newest = shopper.checkpoints()[0][0]
    shopper.forget(newest - 1)
    shopper.learn(newest - 1)
    assert same_bits(shopper)


@pytest.mark.parametrize("grouping", GROUPINGS)
def test_nothing_is_left_of_a_forgotten_user(grouping: Grouping) -> None:
    shopper = shopper_with(200, grouping)
    assert shopper.checkpoints()
    shopper.state.forget("u", None, None)
    assert shopper.checkpoints() == []
    assert shopper.live.checkpoints.levels.residue() == 0
    assert orphaned_checkpoints(shopper.live, 0) == 0


def test_an_item_forgotten_everywhere_is_forgotten_in_the_checkpoints() -> None:
    shopper = shopper_with(300, "fixed")
    name = shopper.state.history("u")[0].items[0]
    shopper.state.forget("u", None, name)
    assert same_bits(shopper)
    assert name not in shopper.state.items
