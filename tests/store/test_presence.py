"""Whether a user was forgotten since a moment, by receipts in memory and on disk."""

import random
from pathlib import Path

import pytest

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.store import presence as module
from unbasket.store.presence import Presence

USERS = ("ann", "bob", "7")


@pytest.mark.parametrize("seed", range(3))
def test_random_forgets(tmp_path: Path, seed: int) -> None:
    """Against a list of the forgets in order; the file is opened again at random, and then all count as forgotten."""
    chance, path = random.Random(seed), tmp_path / "shop.db"
    taken: list[tuple[Id, Presence, bool]] = []  # users, presences, and whether they were forgotten since
    rec, seen, ends = ub.open(path), set[bool](), [0]
    for number in range(150):
        user = chance.choice(USERS)
        action = chance.random()
        if action < 0.3:
            rec.learn(user, ["milk", "tea"], basket=number)
        elif action < 0.5:
            taken.append((user, rec.presence(user), False))
        elif action < 0.6:
            rec.close()
            rec = ub.open(path)
            taken = [(name, since, ended or since.receipts < ends[-1]) for name, since, ended in taken]
        else:
            was_known = user in rec
            basket = rec.history(user)[0].basket if was_known and action < 0.8 else None
            rec.forget(user, basket=basket)
            if basket is None or user not in rec:
                ends.append(rec.receipt_count)
                taken = [(name, since, ended or name == user) for name, since, ended in taken]
        chance.shuffle(taken)
        for name, since, ended in taken:
            seen.add(ended)
            assert rec.was_forgotten(name, since) == ended
            if name == "7":
                assert rec.was_forgotten(7, since) == ended
    assert seen == {True, False}
    rec.close()


def test_a_presence_that_is_not_of_this_user_or_chain(tmp_path: Path) -> None:
    with ub.open(tmp_path / "shop.db") as rec:
        rec.learn("ann", ["milk"], basket=1)
        since = rec.presence("ann")
        assert not rec.was_forgotten("ann", since)
        assert rec.was_forgotten("bob", since)
        assert rec.was_forgotten("ann", since._replace(receipts=1))


def test_little_is_held_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a limit, presences from before it count as ended, and newer ones do not."""
    monkeypatch.setattr(module, "MOST", 2)
    with ub.open(tmp_path / "shop.db") as rec:
        before = rec.presence("ann")
        for user in ("one", "two", "three"):
            assert not rec.was_forgotten("ann", before)
            rec.forget(user)
        assert rec.was_forgotten("ann", before)
        assert not rec.was_forgotten("ann", rec.presence("ann"))
