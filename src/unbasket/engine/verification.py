"""The proof of promise 1: the live model against one that only ever saw what remains."""

from collections import Counter
from dataclasses import replace
from itertools import chain, islice

from unbasket.core import FoldSpace, questions
from unbasket.engine.digest import Digest
from unbasket.engine.memory import Memory, Trace
from unbasket.exchange.events import Forget
from unbasket.exchange.ids import FREE, Id, sort_key
from unbasket.exchange.results import Verification

_MOST = 20  # mismatches that a report lists
_PIECE = 32  # users that are compared at a time, in some milliseconds

_OUTSIDE: dict[str, object] = {"the vector": {}, "the entries under items": {}, "the norm": 0, "the pool": False}
"""What the index holds of a user who is not in the pool."""


class Witness:
    """Notes what is held about a user before a forget, and says after it whether that is gone, and only that.

    It looks, place by place, at the history, the vector, the users of every item that the user had, the norm, the
    counts of users of its magnitude before and now, the crowd's members and the sum of their vectors, the marks, the
    counts of the user's items, the pool, the ids, and the user's part of the digest. Each must hold what a fold of the
    remaining history gives, and nothing of a user who is gone. What was asked to be forgotten must not be in the
    history, and everybody else's part of the counts and of the digest must be what it was.

    If an `heir` is to get what is forgotten of the user, the same places are looked at for them.

    It costs about as much as a recommendation for that user. Other users' records are left to `Everybody`.
    """

    def __init__(self, memory: Memory, digest: Digest, event: Forget, heir: Id | None = None) -> None:
        self._memory, self._digest, self._event, self._heir = memory, digest, event, heir
        self._traces = {user: memory.trace(user) for user in (event.user, heir) if user is not None}
        self._rest = self._rest_of_the_digest()
        if heir is not None:
            self._expect_in_baskets_of(heir)

    def _expect_in_baskets_of(self, heir: Id) -> None:
        """Expect every item in as many baskets as before, those of the user being the heir's."""
        left, right = self._traces[self._event.user], self._traces[heir]
        if left is None:
            return
        for item, count in Counter(chain.from_iterable(r.items for r in self._memory.records(left.user))).items():
            if right is not None:
                right.elsewhere[item] = right.elsewhere.get(item, left.elsewhere[item] + count) - count
            left.elsewhere[item] += count

    def _rest_of_the_digest(self) -> int:
        traces = {trace.owner for trace in self._traces.values() if trace is not None}
        return self._digest.rest(*traces)

    def confirms(self, space: FoldSpace) -> bool:
        """Whether it was forgotten. Ask before the code of a user who is gone is given to another."""
        memory = self._memory
        if self._heir is not None and self._traces[self._heir] is None:  # who is new
            self._traces[self._heir] = memory.trace(self._heir)
        if memory.holds(*self._event) or self._rest_of_the_digest() != self._rest:
            return False
        return all(self._is_right(user, trace, space) for user, trace in self._traces.items())

    def _is_right(self, user: Id, trace: Trace | None, space: FoldSpace) -> bool:
        if trace is None:
            return not self._memory.users.knows(user)
        return self._digest.is_exact(trace.owner) and not self._memory.faults(trace, space)


def compare(live: Memory, digest: Digest, user: Id) -> Verification:
    """Train a fresh memory on a user's remaining baskets, and compare all that is derived from them.

    The records that users share are compared with everybody's vectors and histories, and none may belong to somebody
    who is not there.
    """
    digest.value()  # users that changed since the last look are hashed
    trace, wrong = live.trace(user), []
    if trace is not None:
        wrong = _wrong_of(live, digest, [user])[user] + live.faults(trace, FoldSpace())
    elif live.users.knows(user):
        wrong.append("the id")
    mismatches = [f"{what} of user {user!r}" for what in dict.fromkeys(wrong)]
    return _report(int(trace is not None), mismatches + _shared(live, digest))


class Everybody:
    """The same for all users, a few at a time: others may learn and forget between two steps.

    Whoever changes after they were looked at is looked at again, so that in the end everybody was compared since their
    last change. What users share is compared at one moment, the last.
    """

    def __init__(self, live: Memory, digest: Digest) -> None:
        self._live, self._digest = live, digest
        self._seen = 0
        self._changed = digest.watch()
        self._wrong: dict[int, list[str]] = {}

    def advance(self) -> bool:
        """Look at some users; returns whether there are more."""
        names = self._live.users.names
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
        return self._seen < len(names) or bool(self._changed)

    def report(self) -> Verification:
        """What was found, and what is wrong with the records of all users together. Ask when there are no more."""
        live, names = self._live, self._live.users.names
        owners = sorted(self._wrong, key=lambda owner: sort_key(names[owner]))
        wrong = [what for owner in owners for what in self._wrong[owner]]
        ids = [] if live.ids_are_consistent() else ["the ids"]
        return _report(len(live.users), wrong + _shared(live, self._digest) + ids)

    def stop(self) -> None:
        """Follow no changes any more."""
        self._digest.unwatch(self._changed)


def _wrong_of(live: Memory, digest: Digest, users: list[Id]) -> dict[Id, list[str]]:
    """What is wrong with what is held of some users alone."""
    fresh, space = _retrained(live, users[::-1]), FoldSpace()  # in another order, so under other codes
    wrong = {}
    for user in users:
        expected = _derived(fresh, user) | ({} if live.in_pool(user) else _OUTSIDE)
        found = _differences(_derived(live, user), expected) + live.private_faults(user, space)
        if not digest.is_exact(live.users.codes[user]):
            found.append("the digest")
        wrong[user] = [*dict.fromkeys(found)]
    return wrong


def _report(users: int, mismatches: list[str]) -> Verification:
    return Verification(not mismatches, users, tuple(mismatches[:_MOST]))


def _retrained(live: Memory, users: list[Id]) -> Memory:
    fresh = Memory(replace(live.params, pool=None, pool_seed=None))
    fresh.load(live.orders(users))
    return fresh


def _shared(live: Memory, digest: Digest) -> list[str]:
    """What is wrong with the records of all users together, whoever they are."""
    strays = [f"something that belongs to nobody in {place}" for place in live.strays()]
    return live.shared_faults() + strays + ([] if digest.is_whole() else ["the digest"])


def _differences(derived: dict[str, object], expected: dict[str, object]) -> list[str]:
    return [what for what in derived if derived[what] != expected[what]]


def _derived(memory: Memory, user: Id) -> dict[str, object]:
    """What the index holds of a user, by external ids."""
    owner = memory.users.codes[user]
    vector, listed, norm = questions.entries(memory.index, owner)
    names = memory.items.names
    return {
        "the history": memory.history(user),
        "the vector": {names[code]: weight for code, weight in vector.items()},
        "the entries under items": {names[code]: weight for code, weight in listed.items()},
        "the norm": norm,
        "the pool": memory.in_pool(user),
    }
