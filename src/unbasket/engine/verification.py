"""The proof of promise 1: the model equals one that was trained on the remaining data only."""

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from itertools import chain, islice
from typing import NamedTuple

from unbasket.core.check import invariants
from unbasket.core.index import LiveIndex
from unbasket.core.model import FoldWorkspace, LearnedSums, queries
from unbasket.domain.events import Forget
from unbasket.domain.ids import FREE, Id
from unbasket.domain.results import Verification
from unbasket.engine.digest import Digest
from unbasket.engine.state import EngineState

_MAX_MISMATCHES = 20  # in a report
_STEP = 8  # users that a step compares, in some milliseconds

_OUTSIDE: dict[str, object] = {"the vector": ({}, 0), "the postings": {}, "the norm": 0, "the pool": False}
"""Expected in the index for a user outside the pool."""

_STRUCTURES = invariants.STRUCTURES


def _orphaned(structure: str) -> str:
    return structure if structure == _STRUCTURES[-1] else f"an orphaned record in {structure}"


_ORDER = [*_STRUCTURES, *map(_orphaned, [*_STRUCTURES[:-1], "the suppressions"]), "the digest", "the ids"]


class Trace(NamedTuple):
    """The locations of a user's data, to check them after a forget; see `invariants.trace`."""

    user: Id
    code: int
    elsewhere: dict[int, int]
    norm_bin: int
    slot: int


class InvariantChecker:
    """Invariants of an engine's state: those of the core, and those that need ids. Locking is up to the caller."""

    def __init__(self, state: EngineState) -> None:
        self._state = state

    def trace(self, user: Id) -> Trace | None:
        """Return where the user's data is; None for an unknown user."""
        code = self._state.users.codes.get(user)
        return None if code is None else Trace(user, code, *invariants.trace(self._state.live, code))

    def faults(self, trace: Trace, space: FoldWorkspace) -> list[str]:
        """Return the structures that contradict the user's history; without a history, nothing may be left.

        The code of a user who is gone must not have been reused since the trace was taken.
        """
        core = _names(invariants.user_faults(self._state.live, space, *trace[1:]))
        return core + self._id_faults(trace.user, trace.code)

    def private_faults(self, user: Id, space: FoldWorkspace) -> list[str]:
        """Return the same for those structures that users don't share."""
        code = self._state.users.codes[user]
        checkpoints = invariants.checkpoint_faults(self._state.live, space, code)
        return ["the checkpoints"] * bool(checkpoints) + self._id_faults(user, code)

    def _id_faults(self, user: Id, code: int) -> list[str]:
        ids, priority = self._has_right_ids(user, code), self._has_right_priority(user, code)
        return ["the ids"] * (not ids) + ["the pool"] * (not priority)

    def _has_right_priority(self, user: Id, code: int) -> bool:
        state = self._state
        priority = state.priorities.of(user) if state.histories.count(code) else 0
        return state.pool is None or state.pool.priority_of(code) == priority

    def _has_right_ids(self, user: Id, code: int) -> bool:
        """Return whether the user, and the basket ids of a long history, are known if and only if there are baskets."""
        state = self._state
        users, ids = state.users, state.long_histories.get(code)
        if state.histories.count(code) == 0:
            is_gone = users.names[code] == FREE and not users.knows(user)
            return is_gone and ids is None and user not in state.suppressed
        is_known = users.codes.get(user) == code and users.names[code] == user
        return is_known and (ids is None or ids == state.basket_ids(code))

    def orphans(self) -> Iterator[list[str]]:
        """Yield, step by step, the structures with residue or with records of unknown users or items."""
        state = self._state
        yield from self._in_steps(invariants.posting_orphans)
        yield from self._in_steps(lambda live, first: invariants.user_orphans(live, state.users.names, first))
        yield _names(invariants.orphans(state.live, len(state.users), state.items.names))
        belong = all(items and user in state.users for user, items in state.suppressed.items())
        yield [] if belong else ["the suppressions"]

    def shared_faults(self) -> Iterator[list[str]]:
        """Yield, step by step, the structures that contradict the vectors and histories of all users."""
        yield from self._in_steps(invariants.slot_faults)
        yield from self._in_steps(invariants.shard_faults)
        yield _names(invariants.total_faults(self._state.live))
        yield _names(invariants.item_count_faults(self._state.live))

    def recount(self) -> Generator[list[str], None, None]:
        """Recount the learned sums from all histories, step by step, and compare them.

        The recount follows events that come between two steps. It starts over when the parameters change.
        """
        state, sums = self._state, self._state.sums
        if sums is None:
            return
        recounted, space, first = LearnedSums(state.histories, 0.0), FoldWorkspace(), 0
        sums.attach(recounted)
        try:
            while first >= 0 and state.sums is sums:
                first = invariants.recount(state.live, recounted, space, first)
                yield []
            if state.sums is sums:
                yield _names(invariants.sums_faults(state.live, recounted))
        finally:
            sums.detach(recounted)
        if state.sums is not sums:
            yield from self.recount()

    def _in_steps(self, check: Callable[[LiveIndex, int], tuple[list[int], int]]) -> Iterator[list[str]]:
        first = 0
        while first >= 0:
            found, first = check(self._state.live, first)
            yield _names(found)

    def id_faults(self) -> Iterator[list[str]]:
        """Check, step by step, that ids and codes agree, that every item is in a basket, and the uses of basket ids."""
        state = self._state
        for is_right in chain(state.users.looks(), state.items.looks()):
            yield [] if is_right else ["the ids"]
        is_right = bool(queries.popularity(state.histories)[[*state.items.codes.values()]].all())
        texts = state.baskets.names
        uses = [] if texts is None else queries.key_uses(state.histories, len(texts)).tolist()
        is_right &= state.baskets.is_consistent(uses)
        yield [] if is_right else ["the ids"]


def _names(faults: list[int]) -> list[str]:
    return [structure for structure, count in zip(_STRUCTURES, faults, strict=True) if count]


class ErasureProof:
    """A proof that a forget removed exactly the requested data: made before the forget, checked after it.

    It checks the history, the vector, the postings of every item that the user had, the norm, its old and its new bin
    in the norm histogram, the hubs and their sums, the checkpoints, the counts of the user's items, the pool, the ids,
    and the user's shares of the learned sums and of the digest. Each must equal what a fold of the remaining history
    gives, and hold nothing of a user who is gone. The history must not contain the forgotten data, and the other users'
    shares of the counts, of the learned sums and of the digest must not have changed. With an `heir`, who gets the
    user's data, both users are checked.

    The cost is about that of a recommendation for that user. `FullVerification` checks the records of other users.
    """

    def __init__(
        self, state: EngineState, digest: Digest, event: Forget, space: FoldWorkspace, heir: Id | None = None
    ) -> None:
        self._state, self._digest, self._event, self._heir = state, digest, event, heir
        self._checker = InvariantChecker(state)
        self._traces = {user: self._checker.trace(user) for user in (event.user, heir) if user is not None}
        self._items = {item for trace in self._traces.values() if trace is not None for item in trace.elsewhere}
        self._rest = self._digest_of_others(), self._sums_of_others(space)
        if heir is not None:
            self._expect_baskets_of(heir)

    def _expect_baskets_of(self, heir: Id) -> None:
        """Expect each item in as many baskets as before: the user's baskets become the heir's."""
        left, right = self._traces[self._event.user], self._traces[heir]
        if left is None:
            return
        for item, count in Counter(chain.from_iterable(r.items for r in self._state.records(left.user))).items():
            if right is not None:
                right.elsewhere[item] = right.elsewhere.get(item, left.elsewhere[item] + count) - count
            left.elsewhere[item] += count

    def _digest_of_others(self) -> str:
        return self._digest.without(*self._codes())

    def _codes(self) -> set[int]:
        return {trace.code for trace in self._traces.values() if trace is not None}

    def _sums_of_others(self, space: FoldWorkspace) -> object:
        """Return the learned sums, of all items and of the user's, without the shares of the user and the heir."""
        state = self._state
        if state.sums is None:
            return None
        return state.sums.without(sorted(self._codes()), sorted(self._items), state.rule, space)

    def confirms(self, space: FoldWorkspace) -> bool:
        """Return whether the data is gone; call this before the code of a removed user is reused."""
        if self._heir is not None and self._traces[self._heir] is None:  # a new user
            self._traces[self._heir] = self._checker.trace(self._heir)
        if self._state.holds(*self._event) or (self._digest_of_others(), self._sums_of_others(space)) != self._rest:
            return False
        return all(self._is_right(user, trace, space) for user, trace in self._traces.items())

    def _is_right(self, user: Id, trace: Trace | None, space: FoldWorkspace) -> bool:
        if trace is None:
            return not self._state.users.knows(user)
        return self._digest.is_exact(trace.code) and not self._checker.faults(trace, space)


class SharedInvariants:
    """Checks of the structures that users share, step by step.

    Each check holds at any moment between two events, so other threads may learn and forget between two steps.
    """

    def __init__(self, checks: Iterator[list[str]]) -> None:
        self._checks = checks
        self._wrong: set[str] = set()

    def advance(self) -> bool:
        """Run a step; return whether there are more."""
        found = next(self._checks, None)
        self._wrong.update(found or ())
        return found is not None

    def report(self) -> list[str]:
        """Return the faults in the order of the structures."""
        return sorted(self._wrong, key=_ORDER.index)


class UserVerification:
    """A comparison of one user with a state trained on the user's remaining baskets, and `SharedInvariants`."""

    def __init__(self, state: EngineState, digest: Digest, user: Id) -> None:
        digest.value()  # hash users that have changed
        checker = InvariantChecker(state)
        trace, wrong = checker.trace(user), []
        if trace is not None:
            wrong = _faults_of(state, digest, [user])[user] + checker.faults(trace, FoldWorkspace())
        elif state.users.knows(user):
            wrong.append("the id")
        self._users = int(trace is not None)
        self._wrong = [f"{fault} of user {user!r}" for fault in dict.fromkeys(wrong)]
        self._recount = checker.recount()
        self._shared = SharedInvariants(chain(_shared_checks(checker, digest), self._recount))

    def advance(self) -> bool:
        """Run a step of the shared checks; return whether there are more."""
        return self._shared.advance()

    def report(self) -> Verification:
        """Return the result, once there are no more steps."""
        mismatches = self._wrong + self._shared.report()
        return Verification(not mismatches, self._users, tuple(mismatches[:_MAX_MISMATCHES]))

    def stop(self) -> None:
        """Stop following events."""
        self._recount.close()


class FullVerification:
    """The same for all users, a few per step: other threads may learn and forget between two steps.

    Users that change after their comparison are compared again: in the end, each was compared since their last change.
    """

    def __init__(self, state: EngineState, digest: Digest) -> None:
        self._state, self._digest = state, digest
        self._seen = 0
        self._changed = digest.watch()
        self._wrong: dict[int, list[str]] = {}
        checker = InvariantChecker(state)
        self._recount = checker.recount()
        self._shared = SharedInvariants(chain(_shared_checks(checker, digest), checker.id_faults(), self._recount))
        self._has_shared_steps = True

    def advance(self) -> bool:
        """Compare some users, or run a step of the shared checks; return whether there are more."""
        names = self._state.users.names
        if self._seen < len(names) or not self._has_shared_steps:
            self._compare_users(names)
        else:
            self._has_shared_steps = self._shared.advance()
        return self._has_shared_steps or self._seen < len(names) or bool(self._changed)

    def _compare_users(self, names: list[Id]) -> None:
        if self._seen < len(names):
            codes = [*range(self._seen, min(self._seen + _STEP, len(names)))]
            self._seen += len(codes)
        else:
            codes = [*islice(self._changed, _STEP)]
        self._changed.difference_update(codes)
        self._digest.value()  # hash users that have changed
        users = [names[code] for code in codes if names[code] != FREE]
        found = _faults_of(self._state, self._digest, users)
        for code in codes:
            self._wrong.pop(code, None)
            if wrong := found.get(names[code]):
                self._wrong[code] = [f"{fault} of user {names[code]!r}" for fault in wrong]

    def report(self) -> Verification:
        """Return the result, once there are no more steps."""
        codes = sorted(self._wrong, key=lambda code: int(self._state.users.labels[code]))
        mismatches = [fault for code in codes for fault in self._wrong[code]] + self._shared.report()
        return Verification(not mismatches, len(self._state.users), tuple(mismatches[:_MAX_MISMATCHES]))

    def stop(self) -> None:
        """Stop watching for changes."""
        self._digest.unwatch(self._changed)
        self._recount.close()


def _faults_of(state: EngineState, digest: Digest, users: list[Id]) -> dict[Id, list[str]]:
    """Return the structures of some users that differ from a state trained on their baskets."""
    trained = EngineState(replace(state.params, pool=None, pool_seed=None))
    trained.load(state.columns(users[::-1]))  # in another order, so with other codes
    checker, space, wrong = InvariantChecker(state), FoldWorkspace(), {}
    for user in users:
        derived = _derived(state, user)
        expected = _derived(trained, user) | ({} if state.in_pool(user) else _OUTSIDE)
        found = [structure for structure in derived if derived[structure] != expected[structure]]
        found += checker.private_faults(user, space)
        if not digest.is_exact(state.users.codes[user]):
            found.append("the digest")
        wrong[user] = [*dict.fromkeys(found)]
    return wrong


def _shared_checks(checker: InvariantChecker, digest: Digest) -> Iterator[list[str]]:
    yield from checker.shared_faults()
    for structures in checker.orphans():
        yield [*map(_orphaned, structures)]
    for is_right in digest.checks():
        yield [] if is_right else ["the digest"]


def _derived(state: EngineState, user: Id) -> dict[str, object]:
    """Return what a state holds about a user, by external ids."""
    code, names = state.users.codes[user], state.items.names
    vector, postings, norm, scale = state.index.entries(code)
    return {
        "the history": state.history(user),
        "the vector": ({names[item]: weight for item, weight in vector.items()}, scale),
        "the postings": {names[item]: weight for item, weight in postings.items()},
        "the norm": norm,
        "the pool": state.in_pool(user),
    }
