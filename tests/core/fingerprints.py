"""Fingerprints of the engine on real shops: its state and answers with the first compiled core, to the bit.

    python -m tests.core.fingerprints [shop ...]

writes those of the present engine into fingerprints.json, which `test_fingerprints` compares with. Rewrite that file
only for a change that is meant to change bits (of vectors, neighbors, scores or the digest).
"""

import json
import random
import struct
import sys
from collections.abc import Iterable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import polars as pl

import unbasket as ub
from unbasket.domain.ids import Id
from unbasket.params import Grouping

KEPT = Path(__file__).with_name("fingerprints.json")
GROUPINGS: tuple[Grouping, ...] = ("fixed", "varying")
EVENTS, QUERIES = 3000, 2000

# the paper's parameters; those of Ta-Feng for shops that are not in the paper
SHOPS: dict[str, ub.Params] = {
    "tafeng": ub.Params.paper("tafeng"),
    "coop100": ub.Params.paper("tafeng"),
    "completejourney": ub.Params.paper("tafeng"),
    "instacart": ub.Params.paper("instacart"),
    "valuedshopper": ub.Params.paper("valuedshopper"),
}

Fingerprint = dict[str, str]


def purchases(shop: str) -> pl.DataFrame:
    """Return the history of a shop, in the columns that `fit` reads."""
    return ub.datasets.load(shop).history.select("user", "basket", "item", "time")


def fitted(shop: str, grouping: Grouping) -> ub.Recommender:
    """Return an engine that has learned a shop."""
    return ub.Recommender(replace(SHOPS[shop], grouping=grouping)).fit(purchases(shop))


def apply_events(rec: ub.Recommender, count: int) -> None:
    """Apply random events, always the same: next baskets, late ones, edits, and every way of forgetting."""
    chance = random.Random(13)
    users, items = rec.users(), rec.items()
    for number in range(count):
        user = chance.choice(users)
        history = rec.history(user) if user in rec else []
        bought = chance.sample(items, chance.randint(1, 20))
        if not history or chance.random() < 0.4:
            time = history[-1].time if history else 0
            rec.learn(user, bought, basket=10**12 + number, time=None if time is None else time + chance.randint(0, 2))
            continue
        basket = chance.choice(history)
        match chance.randrange(6):
            case 0:
                rec.learn(user, bought, basket=10**13 + number % 7, time=basket.time)
            case 1:
                rec.learn(user, bought, basket=basket.basket)
            case 2:
                rec.forget(user, basket=basket.basket)
            case 3:
                rec.forget(user, basket=basket.basket, item=chance.choice(basket.items))
            case 4:
                rec.forget(user, item=chance.choice(basket.items))
            case 5:
                rec.forget(user)


def fingerprint(rec: ub.Recommender) -> Fingerprint:
    """Return the digest, and hashes over the answers for some thousand users; floats by their bits."""
    users = rec.users()
    asked = users[:: max(1, len(users) // QUERIES)]
    answers = rec.recommend_many(asked, n=20)
    return {
        "digest": rec.digest(),
        "vectors": _hash((item, weight) for user in asked for item, weight in rec.vector(user).items()),
        "neighbors": _hash(
            (near.user, near.distance) for user in asked[::10] for near in rec.similar_users(user, n=50)
        ),
        "recommendations": _hash(pair for user in asked for pair in answers[user]),
    }


def _hash(pairs: Iterable[tuple[Id, float]]) -> str:
    total = blake2b(digest_size=16)
    for name, number in pairs:
        total.update(f"{name!r} ".encode() + struct.pack("<d", number))
    return total.hexdigest()


def fingerprints(shop: str, grouping: Grouping) -> dict[str, Fingerprint]:
    """Return a shop's fingerprints after `fit`, and after many events."""
    rec = fitted(shop, grouping)
    after_fit = fingerprint(rec)
    apply_events(rec, EVENTS)
    return {"after fit": after_fit, "after events": fingerprint(rec)}


def main(shops: list[str]) -> None:
    """Write the fingerprints of these shops, or of all, to the file."""
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    for shop in shops or SHOPS:
        for grouping in GROUPINGS:
            kept[f"{shop} {grouping}"] = fingerprints(shop, grouping)
            KEPT.write_text(json.dumps(kept, indent=1) + "\n")
            sys.stderr.write(f"{shop} {grouping}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
