"""A million users with 260 million purchases, the size at which Caboose (SIGIR'23) reports "sub-second" unlearning.

`make bench-scale` runs it after `benchmarks/scale.py`, and it writes the row of size in README.md. It needs 12 GB of
memory and some ten minutes; `python -m benchmarks.large --parts 1` is a tenth of it, and writes nothing.

The shop is generated in ten parts, cached in build/scale, since the generator would need more memory than the engine.
Items change places in all parts but the first, so that the most popular item of one part is that of every other.
"""

import argparse
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from benchmarks.scale import FOLDER, ITEMS, QUERIES, Figure, Times, cell, fitted, in_a_process
from rich.console import Console

import unbasket as ub
from benchmarks import pages
from unbasket.datasets import generate

PARTS = 10
USERS = 100_000  # of a part
BASKETS = 32.5  # per user, on average
BASKET_EVENTS, USER_EVENTS = 20_000, 5_000
PAGE = Path(__file__).parents[1] / "README.md"

console = Console(stderr=True)


def shop(parts: int) -> list[Path]:
    """Return the files of the parts, and generate those that are missing."""
    folder = FOLDER / "large"
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"part-{number}.parquet" for number in range(parts)]
    for number, path in enumerate(paths):
        if not path.exists():
            with console.status(f"generating part {number + 1} of {parts}"):
                in_a_process(_make, number, path, paths[0])
    return paths


def _make(number: int, path: Path, first: Path, _: Callable[[object], None]) -> None:
    history = generate(USERS, seed=number, items=ITEMS, baskets_per_user=BASKETS, basket_size=9).history
    if number:
        places = pl.DataFrame({"item": _by_popularity(history), "place": _by_popularity(pl.read_parquet(first))})
        history = history.join(places, on="item", maintain_order="left").drop("item").rename({"place": "item"})
    shifted = history.select(pl.col("user") + number * USERS, pl.col("basket") + number * 10**8, "item", "time")
    partial = path.with_suffix(".partial")
    shifted.cast(pl.UInt32).write_parquet(partial)
    partial.rename(path)


def _by_popularity(history: pl.DataFrame) -> pl.Series:
    counts = np.bincount(history["item"].to_numpy(), minlength=ITEMS + 1)[1:]
    return pl.Series(1 + np.argsort(-counts, kind="stable"))


def measured(paths: list[Path], report: Callable[[str], None]) -> tuple[dict[str, float], list[Figure]]:
    """Fit, recommend and forget; return the sizes of the shop, and the figures."""
    report("fit")
    rec, figures = fitted(paths, ub.Params(), (6, 4.5))
    sizes = {"users": float(len(rec)), "purchases": float(rec.sizes().purchases)}
    users = random.Random(0).sample(rec.users(), QUERIES + 1 + BASKET_EVENTS + USER_EVENTS)
    asked, leaving, loyal = users[: QUERIES + 1], users[QUERIES + 1 :][:USER_EVENTS], users[-BASKET_EVENTS:]
    recommending, baskets, people = Times(), Times(), Times()
    report("recommend")
    rec.recommend(asked[0])
    for user in asked[1:]:
        recommending.add(rec.recommend, user)
    report("forget baskets")
    for user in loyal:
        basket = random.Random(int(user)).choice(rec.history(user)).basket
        baskets.add(lambda user=user, basket=basket: rec.forget(user, basket=basket))
    report("forget users")
    for user in leaving:
        people.add(rec.forget, user)
    return sizes, [
        *figures,
        Figure("recommend: median", recommending.median(), "ms", 20, 12),
        Figure("recommend: 99 of 100 within", recommending.p99(), "ms", 80, 50),
        Figure("forget a basket: median", baskets.median(), "ms", 0.1, 0.05),
        Figure("forget a basket: longest", baskets.longest()[0], "ms", 10, 3),
        Figure("forget a user: median", people.median(), "ms", 0.5, 0.2),
        Figure("forget a user: longest", people.longest()[0], "ms", 10, 6),
    ]


COLUMNS: dict[str, tuple[str, ...]] = {
    "fit": ("fit",),
    "memory: fitted / at the peak of fit, the frame included": ("memory, fitted", "memory, at the peak of fit"),
    "forget a basket: median / longest": ("forget a basket: median", "forget a basket: longest"),
    "forget a user: median / longest": ("forget a user: median", "forget a user: longest"),
    "recommend, exact: median / 99 of 100 within": ("recommend: median", "recommend: 99 of 100 within"),
}


def written(sizes: dict[str, float], figures: list[Figure]) -> str:
    """Render the table of the page."""
    by_name = {figure.name: figure for figure in figures}
    size = f"{sizes['users']:,.0f} users, {sizes['purchases'] / 1e6:.0f} million purchases"
    cells = [size, *(cell([by_name[name] for name in names]) for names in COLUMNS.values())]
    header = ["", *COLUMNS]
    return "\n".join(f"| {' | '.join(line)} |" for line in (header, ["---"] * len(header), cells))


def main() -> None:
    """Measure, print the table, and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=int, default=PARTS, help="parts of the shop, each a tenth of it")
    parts: int = parser.parse_args().parts
    os.environ["_RJEM_MALLOC_CONF"] = "dirty_decay_ms:0,muzzy_decay_ms:0"  # makes Polars return freed memory
    paths = shop(parts)
    with console.status("") as status:
        sizes, figures = in_a_process(measured, paths, each=status.update)
    table = written(sizes, figures)
    sys.stdout.write(table + "\n")
    if parts == PARTS:
        pages.write(PAGE, "benchmarks/large.py", table)


if __name__ == "__main__":
    main()
