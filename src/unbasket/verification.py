"""The proof of promise 1: the live model against one that only ever saw what remains."""

from unbasket import update
from unbasket.ids import Id
from unbasket.memory import Memory
from unbasket.neighbors.index import faults
from unbasket.results import Verification

_MOST = 20  # mismatches that a report lists


def compare(live: Memory, user: Id | None) -> Verification:
    """Train a fresh memory on the remaining baskets, of one user or of all, and compare all that is derived."""
    users = live.users.sorted() if user is None else [user] if user in live.users else []
    fresh = Memory(live.params)
    fresh.load(live.orders(users[::-1]))  # in another order, so under other codes
    mismatches = []
    for name in users:
        derived, expected = _derived(live, name), _derived(fresh, name)
        mismatches += [f"{what} of user {name!r}" for what in derived if derived[what] != expected[what]]
    if user is None:
        mismatches += _counts(live, fresh)
        if faults(live.index):
            mismatches.append("the chains or the crowd of the index")
    return Verification(not mismatches, len(users), tuple(mismatches[:_MOST]))


def _derived(memory: Memory, user: Id) -> dict[str, object]:
    """What the index holds of a user, by external ids."""
    owner = memory.users.codes[user]
    vector, listed, norm = update.entries(memory.index, owner)
    names = memory.items.names
    return {
        "the history": memory.history(user),
        "the vector": {names[code]: weight for code, weight in vector.tolist()},
        "the entries under items": {names[code]: weight for code, weight in listed.tolist()},
        "the norm": norm,
    }


def _counts(live: Memory, fresh: Memory) -> list[str]:
    """Items whose number of baskets, or of users, differs between the two."""
    if live.items.sorted() != fresh.items.sorted():
        return ["the set of items"]
    return [
        f"the counts of item {name!r}"
        for name in live.items.sorted()
        if update.item_counts(live.histories, live.index, live.items.codes[name])
        != update.item_counts(fresh.histories, fresh.index, fresh.items.codes[name])
    ]
