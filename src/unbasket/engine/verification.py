"""The proof of promise 1: the live model against one that only ever saw what remains."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

from unbasket.core import STRUCTURES, FoldWorkspace
from unbasket.domain.events import Forget
from unbasket.domain.ids import FREE, Id, sort_key
from unbasket.domain.results import Verification
from unbasket.engine.digest import Digest
from unbasket.engine.inspector import InvariantChecker, Trace
from unbasket.engine.state import EngineState

_MOST = 20  # mismatches that a report lists
_PIECE = 8  # users that are compared at a time, in some milliseconds

_STRAY = "something that belongs to nobody in "
_ORDER = [*STRUCTURES, *(_STRAY + place for place in (*STRUCTURES, "the suppressed items")), "the digest", "the ids"]

_OUTSIDE: dict[str, object] = {"the vector": {}, "the entries under items": {}, "the norm": 0, "the pool": False}
"""What the index holds of a user who is not in the pool."""


class ErasureProof:
    """Notes what is held about a user before a forget, and says after it whether that is gone, and only that.

    It looks, place by place, at the history, the vector, the users of every item that the user had, the norm, the
    counts of users of its magnitude before and now, the hubs and the sum of their vectors, the checkpoints, the
    counts of the user's items, the pool, the ids, and the user's part of the digest. Each must hold what a fold of the
    remaining history gives, and nothing of a user who is gone. What was asked to be forgotten must not be in the
    history, and everybody else's part of the counts and of the digest must be what it was.

    If an `heir` is to get what is forgotten of the user, the same places are looked at for them.

    It costs about as much as a recommendation for that user. Other users' records are left to `FullVerification`.
    """

    def __init__(self, memory: EngineState, digest: Digest, event: Forget, heir: Id | None = None) -> None:
        self._state, self._digest, self._event, self._heir = memory, digest, event, heir
        self._inspector = InvariantChecker(memory)
        self._traces = {user: self._inspector.trace(user) for user in (event.user, heir) if user is not None}
        self._rest = self._rest_of_the_digest()
        if heir is not None:
            self._expect_in_baskets_of(heir)

    def _expect_in_baskets_of(self, heir: Id) -> None:
        """Expect every item in as many baskets as before, those of the user being the heir's."""
        left, right = self._traces[self._event.user], self._traces[heir]
        if left is None:
            return
        for item, count in Counter(chain.from_iterable(r.items for r in self._state.records(left.user))).items():
            if right is not None:
                right.elsewhere[item] = right.elsewhere.get(item, left.elsewhere[item] + count) - count
            left.elsewhere[item] += count

    def _rest_of_the_digest(self) -> int:
        traces = {trace.owner for trace in self._traces.values() if trace is not None}
        return self._digest.rest(*traces)

    def confirms(self, space: FoldWorkspace) -> bool:
        """Whether it was forgotten. Ask before the code of a user who is gone is given to another."""
        memory = self._state
        if self._heir is not None and self._traces[self._heir] is None:  # who is new
            self._traces[self._heir] = self._inspector.trace(self._heir)
        if memory.holds(*self._event) or self._rest_of_the_digest() != self._rest:
            return False
        return all(self._is_right(user, trace, space) for user, trace in self._traces.items())

    def _is_right(self, user: Id, trace: Trace | None, space: FoldWorkspace) -> bool:
        if trace is None:
            return not self._state.users.knows(user)
        return self._digest.is_exact(trace.owner) and not self._inspector.faults(trace, space)


class Shared:
    """The records that users share, against everybody's vectors and histories; none may belong to nobody.

    They are looked at by pieces. What a piece says holds at any moment between two events, so others may learn and
    forget between two pieces.
    """

    def __init__(self, looks: Iterator[list[str]]) -> None:
        self._looks = looks
        self._wrong: set[str] = set()

    def advance(self) -> bool:
        """Look at a piece; returns whether there are more."""
        found = next(self._looks, None)
        self._wrong.update(found or ())
        return found is not None

    def report(self) -> list[str]:
        """What is wrong, place by place."""
        return sorted(self._wrong, key=_ORDER.index)


class UserVerification:
    """Trains a fresh memory on a user's remaining baskets, and compares all that is derived from them; and `Shared`."""

    def __init__(self, live: EngineState, digest: Digest, user: Id) -> None:
        digest.value()  # users that changed since the last look are hashed
        inspector = InvariantChecker(live)
        trace, wrong = inspector.trace(user), []
        if trace is not None:
            wrong = _wrong_of(live, digest, [user])[user] + inspector.faults(trace, FoldWorkspace())
        elif live.users.knows(user):
            wrong.append("the id")
        self._users = int(trace is not None)
        self._wrong = [f"{what} of user {user!r}" for what in dict.fromkeys(wrong)]
        self._shared = Shared(_looks_at_shared(inspector, digest))

    def advance(self) -> bool:
        """Look at a piece of what users share; returns whether there are more."""
        return self._shared.advance()

    def report(self) -> Verification:
        """What was found. Ask when there are no more pieces."""
        return _report(self._users, self._wrong + self._shared.report())

    def stop(self) -> None:
        """Nothing is to be done."""


class FullVerification:
    """The same for all users, a few at a time: others may learn and forget between two steps.

    Whoever changes after they were looked at is looked at again, so that in the end everybody was compared since their
    last change.
    """

    def __init__(self, live: EngineState, digest: Digest) -> None:
        self._live, self._digest = live, digest
        self._seen = 0
        self._changed = digest.watch()
        self._wrong: dict[int, list[str]] = {}
        inspector = InvariantChecker(live)
        self._shared = Shared(chain(_looks_at_shared(inspector, digest), inspector.id_faults()))
        self._shares = True  # there is more to see of what users share

    def advance(self) -> bool:
        """Look at some users, or at a piece of what they share; returns whether there are more."""
        names = self._live.users.names
        if self._seen < len(names) or not self._shares:
            self._look_at_users(names)
        else:
            self._shares = self._shared.advance()
        return self._shares or self._seen < len(names) or bool(self._changed)

    def _look_at_users(self, names: list[Id]) -> None:
        if self._seen < len(names):
            owners = [*range(self._seen, min(self._seen + _PIECE, len(names)))]
            self._seen += len(owners)
        else:
            owners = [*islice(self._changed, _PIECE)]
        self._changed.difference_update(owners)
        self._digest.value()  # users that changed since the last look are hashed
        users = [names[owner] for owner in owners if names[owner] != FREE]
        found = _wrong_of(self._live, self._digest, users)
        for owner in owners:
            self._wrong.pop(owner, None)
            if wrong := found.get(names[owner]):
                self._wrong[owner] = [f"{what} of user {names[owner]!r}" for what in wrong]

    def report(self) -> Verification:
        """What was found. Ask when there are no more."""
        names = self._live.users.names
        owners = sorted(self._wrong, key=lambda owner: sort_key(names[owner]))
        wrong = [what for owner in owners for what in self._wrong[owner]]
        return _report(len(self._live.users), wrong + self._shared.report())

    def stop(self) -> None:
        """Follow no changes any more."""
        self._digest.unwatch(self._changed)


def _wrong_of(live: EngineState, digest: Digest, users: list[Id]) -> dict[Id, list[str]]:
    """What is wrong with what is held of some users alone."""
    fresh, space = _retrained(live, users[::-1]), FoldWorkspace()  # in another order, so under other codes
    inspector, wrong = InvariantChecker(live), {}
    for user in users:
        expected = _derived(fresh, user) | ({} if live.in_pool(user) else _OUTSIDE)
        found = _differences(_derived(live, user), expected) + inspector.private_faults(user, space)
        if not digest.is_exact(live.users.codes[user]):
            found.append("the digest")
        wrong[user] = [*dict.fromkeys(found)]
    return wrong


def _report(users: int, mismatches: list[str]) -> Verification:
    return Verification(not mismatches, users, tuple(mismatches[:_MOST]))


def _retrained(live: EngineState, users: list[Id]) -> EngineState:
    fresh = EngineState(replace(live.params, pool=None, pool_seed=None))
    fresh.load(live.columns(users))
    return fresh


def _looks_at_shared(inspector: InvariantChecker, digest: Digest) -> Iterator[list[str]]:
    """What is wrong with the records of all users together, whoever they are: a piece each time."""
    yield from inspector.shared_faults()
    for places in inspector.strays():
        yield [_STRAY + place for place in places]
    for is_right in digest.looks():
        yield [] if is_right else ["the digest"]


def _differences(derived: dict[str, object], expected: dict[str, object]) -> list[str]:
    return [what for what in derived if derived[what] != expected[what]]


def _derived(memory: EngineState, user: Id) -> dict[str, object]:
    """What the index holds of a user, by external ids."""
    owner = memory.users.codes[user]
    vector, listed, norm = memory.index.entries(owner)
    names = memory.items.names
    return {
        "the history": memory.history(user),
        "the vector": {names[code]: weight for code, weight in vector.items()},
        "the entries under items": {names[code]: weight for code, weight in listed.items()},
        "the norm": norm,
        "the pool": memory.in_pool(user),
    }
