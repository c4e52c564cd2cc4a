"""The value of a cart: one item of the true next basket is hidden, and the other items are in the cart.

    python benchmarks/cart.py

Recall@10 of the hidden item, by the engine without and with the cart, and by co-occurrence of items. No method
recommends items in the cart. Co-occurrence uses the cart only: it sums, over the items in it, the share of their
baskets that hold an item, or the cosine of both. Parameters are the paper's, or else the defaults; the hidden item is
drawn at random.
"""

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from scipy import sparse

from unbasket import Recommender, datasets
from unbasket.domain.ids import Id
from unbasket.evaluation import bootstrap_mean, compare_paired, hide_last_basket

DATASETS = ("completejourney", "tafeng", "instacart", "valuedshopper")  # those that are not here are left out
MAX_USERS = 4_000  # of a dataset
N = 10

console = Console(width=120)


class Case(NamedTuple):
    """A user, the items in the cart, and the hidden item that was bought with them."""

    user: Id
    cart: list[Id]
    hidden: Id


class CoOccurrence:
    """Counts of items bought together: the best known method that needs only the cart."""

    def __init__(self, history: pl.DataFrame) -> None:
        baskets = history.select("user", "basket").unique(maintain_order=True).with_row_index("row")
        table = history.join(baskets, on=["user", "basket"])
        self.items, columns = np.unique(table["item"].to_numpy(), return_inverse=True)
        self.codes = {item: code for code, item in enumerate(self.items.tolist())}
        shape = (len(baskets), len(self.items))
        held = sparse.coo_array((np.ones(len(table)), (table["row"].to_numpy(), columns)), shape).tocsr()
        held.data[:] = 1  # a basket is a set
        self.pairs = (held.T @ held).tocsr()
        self.counts = self.pairs.diagonal()

    def best(self, cart: list[Id], weight: Callable[[NDArray[np.float64], float], NDArray[np.float64]]) -> list[Id]:
        """Return the best N items outside the cart."""
        codes = [self.codes[item] for item in cart if item in self.codes]
        scores = np.zeros(len(self.items))
        for code in codes:
            row = self.pairs[[code], :]
            scores[row.indices] += row.data / weight(self.counts[row.indices], self.counts[code])
        scores[codes] = 0
        best = np.argsort(-scores, kind="stable")[:N]
        return [item for item in self.items[best].tolist() if scores[self.codes[item]] > 0]


def cases(future: pl.DataFrame, known: set[Id], chance: random.Random) -> list[Case]:
    """Draw users whose next basket has at least two items, and hide one of these."""
    baskets = future.group_by("user").agg(pl.col("item").unique().sort()).sort("user")
    users = [(user, items) for user, items in baskets.iter_rows() if len(items) > 1 and user in known]
    found = []
    for user, items in sorted(chance.sample(users, min(MAX_USERS, len(users)))):
        hidden = chance.choice(items)
        found.append(Case(user, [item for item in items if item != hidden], hidden))
    return found


def rows(name: str) -> tuple[list[Case], dict[str, NDArray[np.float64]]]:
    """Return the cases of a dataset and, for each method, whether it found the hidden items."""
    dataset = datasets.load(name)
    history, future = dataset.history, dataset.future
    if future is None:
        history, future = hide_last_basket(history)
    rec, pairs = Recommender(dataset.params).fit(history), CoOccurrence(history)
    asked = cases(future, set(rec.users()), random.Random(0))
    methods: dict[str, Callable[[Case], list[Id]]] = {
        "without the cart": lambda case: [item for item, _ in rec.recommend(case.user, N, exclude=case.cart)],
        "with the cart": lambda case: [item for item, _ in rec.recommend(case.user, N, cart=case.cart)],
        "together: share": lambda case: pairs.best(case.cart, lambda _, own: np.full(1, own)),
        "together: cosine": lambda case: pairs.best(case.cart, lambda others, own: np.sqrt(others * own)),
    }
    return asked, {
        method: np.array(
            [float(case.hidden in best(case)) for case in track(asked, f"{name}, {method}", transient=True)]
        )
        for method, best in methods.items()
    }


def main() -> None:
    """Evaluate, and print one row per dataset."""
    table = Table(title="Recall@10 of one hidden item of the next basket; ± half the width of the 95 % interval")
    for column in ("dataset", "users", "without the cart", "with the cart", "together: share", "together: cosine"):
        table.add_column(column, justify="left" if column == "dataset" else "right")
    table.add_column("gain of the cart", justify="right")
    here = {name for name, place, _ in datasets.locate() if place}
    for name in (name for name in DATASETS if name in here):
        asked, found = rows(name)
        means = [bootstrap_mean(hits) for hits in found.values()]
        gain = compare_paired(found["with the cart"], found["without the cart"]).difference
        figures = [f"{each.mean:.4f} ±{(each.high - each.low) / 2:.4f}" for each in (*means, gain)]
        table.add_row(name, f"{len(asked):,}", *figures)
    console.print(table)


if __name__ == "__main__":
    main()
