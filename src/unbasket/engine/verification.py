"""The proof of promise 1: the live model against one that only ever saw what remains."""

from unbasket.core import FoldSpace, questions
from unbasket.engine.digest import Digest
from unbasket.engine.memory import Memory
from unbasket.exchange.events import Forget
from unbasket.exchange.ids import Id, in_order
from unbasket.exchange.results import Verification

_MOST = 20  # mismatches that a report lists

_OUTSIDE: dict[str, object] = {"the vector": {}, "the entries under items": {}, "the norm": 0, "the pool": False}
"""What the index holds of a user who is not in the pool."""


class Witness:
    """Notes what is held about a user before a forget, and says after it whether that is gone, and only that.

    It looks, place by place, at the history, the vector, the users of every item that the user had, the norm, the
    counts of users of its magnitude before and now, the crowd's members and the sum of their vectors, the marks, the
    counts of the user's items, the pool, the ids, and the user's part of the digest. Each must hold what a fold of the
    remaining history gives, and nothing of a user who is gone. What was asked to be forgotten must not be in the
    history, and everybody else's part of the counts and of the digest must be what it was.

    It costs about as much as a recommendation for that user. Other users' records are left to `compare`.
    """

    def __init__(self, memory: Memory, digest: Digest, event: Forget) -> None:
        self._memory, self._digest, self._event = memory, digest, event
        self._trace = memory.trace(event.user)
        self._rest = digest.rest(self._owner)

    @property
    def _owner(self) -> int | None:
        return None if self._trace is None else self._trace.owner

    def confirms(self, space: FoldSpace) -> bool:
        """Whether it was forgotten. Ask before the code of a user who is gone is given to another."""
        memory, digest = self._memory, self._digest
        if memory.holds(*self._event) or digest.rest(self._owner) != self._rest:
            return False
        if self._trace is None:
            return not memory.users.knows(self._event.user)
        return digest.is_exact(self._trace.owner) and not memory.faults(self._trace, space)


def compare(live: Memory, digest: Digest, user: Id | None) -> Verification:
    """Train a fresh memory on the remaining baskets, of one user or of all, and compare all that is derived.

    In both cases, the records that users share are compared with everybody's vectors and histories, and none may belong
    to somebody who is not there.
    """
    digest.value()  # users that changed since the last look are hashed
    if user is None:
        return _compare_all(live, digest)
    trace, wrong = live.trace(user), []
    if trace is not None:
        expected = _derived(_retrained(live, [user]), user) | ({} if live.in_pool(user) else _OUTSIDE)
        wrong = _differences(_derived(live, user), expected) + live.faults(trace, FoldSpace())
        if not digest.is_exact(trace.owner):
            wrong.append("the digest")
    elif live.users.knows(user):
        wrong.append("the id")
    mismatches = [f"{what} of user {user!r}" for what in dict.fromkeys(wrong)]
    return _report(int(trace is not None), mismatches + _shared(live, digest))


def _compare_all(live: Memory, digest: Digest) -> Verification:
    users, space = in_order(list(live.users.codes)), FoldSpace()
    fresh = _retrained(live, users[::-1])  # in another order, so under other codes
    mismatches = []
    for user in users:
        wrong = _differences(_derived(live, user), _derived(fresh, user)) + live.private_faults(user, space)
        if not digest.is_exact(live.users.codes[user]):
            wrong.append("the digest")
        mismatches += [f"{what} of user {user!r}" for what in dict.fromkeys(wrong)]
    mismatches += _counts(live, fresh) + _shared(live, digest)
    if not (live.users.is_consistent() and live.items.is_consistent() and live.texts.uses() == fresh.texts.uses()):
        mismatches.append("the ids")
    return _report(len(users), mismatches)


def _report(users: int, mismatches: list[str]) -> Verification:
    return Verification(not mismatches, users, tuple(mismatches[:_MOST]))


def _retrained(live: Memory, users: list[Id]) -> Memory:
    fresh = Memory(live.params)
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


def _counts(live: Memory, fresh: Memory) -> list[str]:
    """Items whose number of baskets, or of users, differs between the two."""
    if live.items.sorted() != fresh.items.sorted():
        return ["the set of items"]
    return [
        f"the counts of item {name!r}"
        for name in live.items.sorted()
        if questions.item_counts(live.histories, live.index, live.items.codes[name])
        != questions.item_counts(fresh.histories, fresh.index, fresh.items.codes[name])
    ]
