"""Places that contradict the histories, or hold something of nobody: those of the core, and those that know ids."""

from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from unbasket.core import STRUCTURES, FoldWorkspace, LiveIndex
from unbasket.core.check import invariants, survey
from unbasket.core.model import queries
from unbasket.domain.ids import FREE, Id
from unbasket.engine.state import EngineState


class Trace(NamedTuple):
    """Where something of a user is, to look there again once it is forgotten; see `invariants.trace`."""

    user: Id
    owner: int
    elsewhere: dict[int, int]
    level: int
    slot: int


class InvariantChecker:
    """Looks at a memory, and trusts nothing of what events keep up to date in it; locking is the caller's."""

    def __init__(self, memory: EngineState) -> None:
        self._state = memory

    def trace(self, user: Id) -> Trace | None:
        """Where something of the user is; None if the user is not there."""
        owner = self._state.users.codes.get(user)
        return None if owner is None else Trace(user, owner, *invariants.trace(self._state.live, owner))

    def faults(self, trace: Trace, space: FoldWorkspace) -> list[str]:
        """The places where something of a user is not as the history says; with no history, nothing may be anywhere.

        The code of a user who is gone must not have been given to another since the trace was taken.
        """
        places = _wrong_places(invariants.user_faults(self._state.live, space, *trace[1:]))
        return places + self._named_faults(trace.user, trace.owner)

    def private_faults(self, user: Id, space: FoldWorkspace) -> list[str]:
        """Those of these places that no other user's records have a part in."""
        owner = self._state.users.codes[user]
        checkpoints = invariants.mark_faults(self._state.live, space, owner)
        return ["the checkpoints"] * bool(checkpoints) + self._named_faults(user, owner)

    def _named_faults(self, user: Id, owner: int) -> list[str]:
        """Those of these places that know ids, or what depends on them."""
        ids, pool = self._ids_are_right(user, owner), self._lot_is_right(user, owner)
        return ["the ids"] * (not ids) + ["the pool"] * (not pool)

    def _lot_is_right(self, user: Id, owner: int) -> bool:
        memory = self._state
        lot = memory.priorities.of(user) if memory.histories.count(owner) else 0
        return memory.pool is None or memory.pool.priority_of(owner) == lot

    def _ids_are_right(self, user: Id, owner: int) -> bool:
        """Whether the user, and the ids of a long history, are known if and only if there are baskets."""
        memory = self._state
        users, ids = memory.users, memory.long_histories.get(owner)
        if memory.histories.count(owner) == 0:
            gone = users.names[owner] == FREE and not users.knows(user)
            return gone and ids is None and user not in memory.suppressed
        known = users.codes.get(user) == owner and users.names[owner] == user
        return known and (ids is None or ids == memory.basket_ids(owner))

    def strays(self) -> Iterator[list[str]]:
        """The places that hold something of a user or an item that is not there, or that was not wiped: by pieces."""
        memory = self._state
        yield from self._by_pieces(survey.entry_strays)
        yield from self._by_pieces(lambda live, place: survey.user_strays(live, memory.users.names, place))
        yield _wrong_places(survey.strays(memory.live, len(memory.users), memory.items.names))
        belong = all(items and user in memory.users for user, items in memory.suppressed.items())
        yield [] if belong else ["the suppressed items"]

    def shared_faults(self) -> Iterator[list[str]]:
        """The places shared by many users where something is wrong: by pieces, between which others may write."""
        yield from self._by_pieces(survey.slot_faults)
        yield from self._by_pieces(survey.shard_faults)
        yield _wrong_places(survey.total_faults(self._state.live))
        yield _wrong_places(survey.item_count_faults(self._state.live))

    def _by_pieces(self, look: Callable[[LiveIndex, int], tuple[list[int], int]]) -> Iterator[list[str]]:
        place = 0
        while place >= 0:
            found, place = look(self._state.live, place)
            yield _wrong_places(found)

    def id_faults(self) -> Iterator[list[str]]:
        """Whether ids and codes say the same, somebody has each item, and texts are counted right: by pieces."""
        for is_right in chain(self._state.users.looks(), self._state.items.looks(), self._use_looks()):
            yield [] if is_right else ["the ids"]

    def _use_looks(self) -> Iterator[bool]:
        histories, items, texts = self._state.histories, self._state.items, self._state.texts
        yield bool(queries.popularity(histories)[[*items.codes.values()]].all())
        if texts.names:
            yield texts.is_consistent(queries.text_uses(histories, len(texts.names)).tolist())


def _wrong_places(faults: list[int]) -> list[str]:
    return [place for place, count in zip(STRUCTURES, faults, strict=True) if count]
