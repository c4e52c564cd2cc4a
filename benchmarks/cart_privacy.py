"""What a cart tells about other shoppers, and what the privacy threshold costs: `python -m benchmarks.cart_privacy`.

An attacker knows an item that one person alone bought, and asks for recommendations with it, and with an item that
does not exist in its place. Every item whose score is higher with it, or that is recommended only then, is a claim:
"this person bought that". The lists are read to their end. The attacks differ in where the item is put, and the last
one in what is known: two common items that one person alone has both of. In the attacker's own history, the item is
bought by an account of the attacker.

Some claims are right by chance: the table has the share that would be, if each were about a random customer.

Recall@10 is that of the true next baskets of all customers, by their tokens. With `--write`, the table in SECURITY.md
is updated.
"""

import random
import sys
from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import track

from benchmarks import pages
from unbasket import Params, PrivacyThreshold, Recommender, datasets
from unbasket.domain.ids import Id
from unbasket.evaluation import hide_last_basket

PAGE = Path(__file__).parent.parent / "SECURITY.md"
DATASET = "completejourney"
MAX_VICTIMS = 200
POPULAR = 20  # items in the baskets beside the known one
ATTACKER = UNKNOWN = 10**9  # ids that no customer and no item has

Scores = dict[Id, float]


class Victim(NamedTuple):
    """A person, and the items that the attacker knows them by."""

    user: Id
    known: list[Id]


class Claims(NamedTuple):
    """The claims about all victims: how many, how many of them are right, and how many would be by chance; and how many
    items there were to find.
    """

    made: int
    right: int
    by_chance: float
    items: int

    def row(self) -> str:
        """Return the share of claims that are right, that which would be by chance, and the share of items found."""
        if not self.made:
            return "no claims | "
        shares = f"{self.right / self.made:.1%} of {self.made:,} (by chance {self.by_chance / self.made:.1%})"
        return f"{shares} | {self.right / self.items:.1%}"


class Shop:
    """The engine of a shop, its items by user, and the number of buyers of each item."""

    def __init__(self, history: pl.DataFrame) -> None:
        self.rec = Recommender(Params()).fit(history)
        self.held = {user: set(items) for user, items in history.group_by("user").agg("item").iter_rows()}
        buyers = history.group_by("item").agg(pl.col("user").unique()).sort("item")
        self.buyers: dict[Id, list[Id]] = dict(buyers.iter_rows())
        self.popular = [item for item, _ in self.rec.popular(POPULAR)]

    def victims(self) -> list[Victim]:
        """Return people with an item that they alone bought."""
        unique = [Victim(users[0], [item]) for item, users in self.buyers.items() if len(users) == 1]
        return random.Random(0).sample(unique, min(MAX_VICTIMS, len(unique)))

    def of_two(self) -> list[Victim]:
        """Return people with an item that one other person bought."""
        shared = [Victim(users[0], [item]) for item, users in self.buyers.items() if len(users) == 2]
        return random.Random(0).sample(shared, min(MAX_VICTIMS, len(shared)))

    def pairs(self) -> list[Victim]:
        """Return people with two items of 10 to 40 buyers each that they alone bought both of."""
        chance, found = random.Random(1), list[Victim]()
        common = {item: set(users) for item, users in self.buyers.items() if 10 <= len(users) <= 40}
        for user in chance.sample(sorted(self.held), MAX_VICTIMS):
            items = sorted(common.keys() & self.held[user])
            pairs = list(combinations(items, 2))
            chance.shuffle(pairs)
            alone = (list(pair) for pair in pairs if common[pair[0]] & common[pair[1]] == {user})
            found += [Victim(user, pair) for pair in [next(alone, None)] if pair]
        return found

    def ask(self, baskets: list[list[Id]], privacy: PrivacyThreshold | None) -> Scores:
        """Return all recommendations to a visitor, by the pages that filters allow."""
        return dict(self.rec.recommend_for(baskets, len(self.buyers), only_new=True, privacy=privacy))


def risen(before: Scores, after: Scores) -> set[Id]:
    """Return the items whose score rose, or that are new."""
    return {item for item, score in after.items() if score > before.get(item, 0.0)}


def in_a_cart(shop: Shop, victim: Victim, privacy: PrivacyThreshold | None) -> set[Id]:
    """Compare with a cart of an item that does not exist."""
    return risen(shop.ask([[UNKNOWN]], privacy), shop.ask([victim.known], privacy))


def beside_popular_items(shop: Shop, victim: Victim, privacy: PrivacyThreshold | None) -> set[Id]:
    """Compare with the same baskets and an item that does not exist."""
    return risen(shop.ask([shop.popular, [UNKNOWN]], privacy), shop.ask([shop.popular, victim.known], privacy))


def in_the_own_history(shop: Shop, victim: Victim, privacy: PrivacyThreshold | None) -> set[Id]:
    """Buy the item, and compare with an account that bought another."""
    shop.rec.learn(ATTACKER, shop.popular, basket=1)
    shop.rec.learn(ATTACKER, victim.known, basket=2)
    n = len(shop.buyers)
    after = dict(shop.rec.recommend(ATTACKER, n, only_new=True, privacy=privacy))
    other: list[list[Id]] = [shop.popular, [UNKNOWN]]
    before = dict(shop.rec.recommend_for(other, n, user=ATTACKER, only_new=True, privacy=privacy))
    shop.rec.forget(ATTACKER)
    return risen(before, after)


def by_two_items(shop: Shop, victim: Victim, privacy: PrivacyThreshold | None) -> set[Id]:
    """Compare with each item alone: only the one person has both."""
    one, other = victim.known
    both = shop.ask([[one, other]], privacy)
    return risen(shop.ask([[one]], privacy), both) & risen(shop.ask([[other]], privacy), both)


class Attack(NamedTuple):
    """A way to ask, and the people to ask about."""

    name: str
    victims: Callable[[Shop], list[Victim]]
    ask: Callable[[Shop, Victim, PrivacyThreshold | None], set[Id]]


ATTACKS = (
    Attack("a unique item in a visitor's cart", Shop.victims, in_a_cart),
    Attack("a unique item beside popular ones", Shop.victims, beside_popular_items),
    Attack("a unique item in the attacker's own history", Shop.victims, in_the_own_history),
    Attack("an item of two people in a visitor's cart", Shop.of_two, in_a_cart),
    Attack("two common items that one person alone has both of", Shop.pairs, by_two_items),
)


def claims(shop: Shop, attack: Attack, privacy: PrivacyThreshold | None) -> Claims:
    """Attack all victims."""
    made, right, by_chance, items = 0, 0, 0.0, 0
    for victim in track(attack.victims(shop), attack.name, console=Console(stderr=True), transient=True):
        claimed = attack.ask(shop, victim, privacy) - set(victim.known)
        others = shop.held[victim.user] - set(victim.known)
        made, right, items = made + len(claimed), right + len(claimed & others), items + len(others)
        by_chance += sum(len(shop.buyers[item]) for item in claimed) / len(shop.held)
    return Claims(made, right, by_chance, items)


def recall(rec: Recommender, future: pl.DataFrame, privacy: PrivacyThreshold | None) -> float:
    """Return the mean recall@10 of the next baskets."""
    bought = {user: set(items) for user, items in future.group_by("user").agg("item").iter_rows() if user in rec}
    found = rec.recommend_many(sorted(bought), 10, privacy=privacy)
    hits = {user: len(bought[user] & {item for item, _ in best}) for user, best in found.items()}
    return float(np.mean([count / len(bought[user]) for user, count in hits.items()]))


def rows() -> Iterator[str]:
    """Return the lines of the table."""
    threshold, history = PrivacyThreshold(), datasets.load(DATASET).history
    shop = Shop(history)
    yield "| known, and where it is put | claims that are right | items found | with the threshold | items found |"
    yield "| --- | --- | --- | --- | --- |"
    for attack in ATTACKS:
        yield f"| {attack.name} | {claims(shop, attack, None).row()} | {claims(shop, attack, threshold).row()} |"
    past, future = hide_last_basket(history)
    rec = Recommender(Params()).fit(past)
    without, protected = recall(rec, future, None), recall(rec, future, threshold)
    yield f"| recall@10 of ordinary shoppers | {without:.4f} | | {protected:.4f} ({protected / without - 1:+.2%}) | |"


def main() -> None:
    """Attack, and print the table."""
    table = "\n".join(rows())
    Console(width=160).print(table)
    if "--write" in sys.argv:
        pages.write(PAGE, "benchmarks/cart_privacy.py", table)


if __name__ == "__main__":
    main()
