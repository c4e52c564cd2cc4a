"""Proofs of random shops under the verifier: every user who is there is proven, and the absence of everyone else."""

import json
import random
from pathlib import Path
from secrets import token_bytes

import pytest

import unbasket as ub
from unbasket import verifier

USERS = [f"user {number}" for number in range(8)]


def random_events(rec: ub.DurableRecommender, chance: random.Random) -> None:
    """Apply a few random events."""
    for number in range(chance.randrange(1, 9)):
        user, item = chance.choice(USERS), chance.randrange(5)
        action = chance.random()
        if action < 0.6:
            rec.learn(user, [item, 9], basket=number)
        elif action < 0.8:
            rec.forget(user)
        elif action < 0.9:
            rec.forget(user, item=item)
        elif user in rec:
            rec.suppress(user, item)


def fresh(rec: ub.DurableRecommender, chance: random.Random) -> ub.Recommender:
    """Return an engine in memory that only ever saw what remains, in another order."""
    engine = ub.Recommender(rec.params, salt=rec.salt)
    for user in chance.sample(rec.users(), len(rec)):
        for basket in rec.history(user):
            engine.learn(user, basket.items, basket=basket.basket, time=basket.time)
        for item in rec.suppressed(user):
            engine.suppress(user, item)
    return engine


def check_sequences(folder: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    with ub.open(folder / "shop.db", ub.Params(alpha=0.8)) as rec:
        for _ in range(count):
            random_events(rec, chance)
            assert rec.digest() == fresh(rec, chance).digest()
            for user in USERS:
                proof = rec.prove(user) if user in rec else rec.prove_absence(user)
                verifier.check_user(proof, verifier.read_checkpoint(proof["checkpoint"]))
                assert (proof["kind"] == "access") == (user in rec)
        assert ub.store.audit(rec.receipts(), every_signature=False).ok


def test_random_sequences(tmp_path: Path) -> None:
    check_sequences(tmp_path, 200, 0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_many_random_sequences(tmp_path: Path, seed: int) -> None:
    check_sequences(tmp_path, 1_000, seed)


def test_ids_and_times_of_all_sizes(tmp_path: Path) -> None:
    """The verifier's MessagePack is that of the engine, at the limits of every length."""
    sizes = [0, 1, 31, 32, 127, 128, 255, 256, 65_535, 65_536, 2**31, 2**32, 2**63 - 1]
    numbers = [*sizes, *(-size for size in sizes), -33, -129, -(2**63)]
    with ub.open(tmp_path / "shop.db", ub.Params(alpha=0.8)) as rec:
        for number in numbers:
            rec.learn("ann", numbers[:20], basket=number, time=max(number, -(2**63) + 1))
        for length in (1, 31, 32, 255, 256, 70_000):
            rec.learn("é" * length, [1], basket=1)
        rec.learn("bob", list(range(300)), basket=1)
        for user in rec.users():
            assert verifier.verify(json.dumps(rec.prove(user)))


def test_a_reader_proves_the_state_that_it_has_read(tmp_path: Path) -> None:
    with ub.open(tmp_path / "shop.db") as rec:
        rec.learn("ann", ["milk"], basket=1)
        rec.forget("eve")
        with ub.open(tmp_path / "shop.db", read_only=True) as reader:
            rec.forget("ann")
            proof = reader.prove("ann")
            assert "with 1 receipt," in verifier.verify(json.dumps(proof))
            later = json.dumps(rec.prove_consistency(proof["checkpoint"]))
            assert "begins with the 1 receipt of" in verifier.verify(later)


def test_siblings_tell_nothing_without_the_salt(tmp_path: Path) -> None:
    """Of two shops with the same data, no hash beside a path is the same."""
    found = []
    for name in ("one", "two"):
        with ub.open(tmp_path / f"{name}.db", salt=token_bytes(32)) as rec:
            for user in USERS:
                rec.learn(user, ["milk"], basket=1)
            found.append({each for each in rec.prove(USERS[0])["siblings"] if each})
    assert all(found)
    assert not found[0] & found[1]
