"""The engine beside baselines, in one process and one run: `make bench`.

Every row is a ratio to a baseline measured in the same run, since absolute times depend on the machine. Times are
medians of many calls; slow baselines run once.
"""

import gc
import itertools
import os
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import polars as pl
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from scipy.sparse import csr_matrix
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from unbasket import Params, Recommender
from unbasket.datasets import load
from unbasket.evaluation import paper_rules as paper

Vector = npt.NDArray[np.float64]
PARAMS = Params.paper("tafeng")


class Row(NamedTuple):
    """A row of the table: the work, our figure, the baseline's, and the goal."""

    work: str
    ours: str
    baseline: str
    result: str
    goal: str
    reached: bool


def microseconds(function: Callable[..., object], calls: Iterable[tuple[Any, ...]]) -> float:
    """Return the median time of calls with these arguments."""
    times = []
    for arguments in calls:
        start = time.perf_counter()
        function(*arguments)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e6


def seconds(function: Callable[[], object], repeats: int) -> float:
    """Return the median time of repeated calls."""
    return microseconds(function, [()] * repeats) / 1e6


class Shop:
    """The Complete Journey in the engine, and its users' next baskets as events to come.

    Items are numbered from 1: dense baselines need a place for each number.
    """

    def __init__(self) -> None:
        data = load("completejourney")
        assert data.future is not None
        purchases = pl.concat([data.history.with_columns(future=False), data.future.with_columns(future=True)])
        purchases = purchases.with_columns(pl.col("item").rank("dense").cast(pl.Int64))
        self.history, self.params = purchases.filter(~pl.col("future")).drop("future"), PARAMS
        self.rec = Recommender(self.params).fit(self.history)
        next_baskets = purchases.filter("future").group_by("user", maintain_order=True)
        self.events = next_baskets.agg("item", pl.col("time").first()).rows()
        self.dimension = max(self.rec.items()) + 1  # type: ignore[operator]

    def multi_hot(self, items: Iterable[int]) -> Vector:
        return paper.multi_hot(items, self.dimension)


def learn(shop: Shop) -> Row:
    """Compare learning a basket by the API with the paper's Eqs. inc_group_vector_rule_2 and inc_user_vector_rule_2."""
    rec = shop.rec
    ours = microseconds(
        lambda user, items, time: rec.learn(user, items, basket=-1, time=time),
        [(user, items, time) for user, items, time in shop.events],
    )
    for user, _, _ in shop.events:
        rec.forget(user, basket=-1)
    group, user_vector, basket = (shop.multi_hot([1, 2, 3]) for _ in range(3))

    def papers_rule(size: int, groups: int) -> Vector:
        new = paper.add(group, size, basket, 0.9)
        return paper.update(user_vector, groups, groups - 1, group, new, 0.7)

    baseline = microseconds(papers_rule, [(3, 2)] * 2000)
    return Row(
        "learn a basket, The Complete Journey loaded, index live",
        f"{ours:.1f} us",
        f"{baseline:.1f} us, bare dense NumPy rule of the paper",
        f"{baseline / ours:.1f}x",
        "at least 2x",
        baseline >= 2 * ours,
    )


def learn_by_length() -> Row:
    """Compare the median cost of an append at 10..100 and at 10,000..100,000 baskets of one user."""
    rec = Recommender(PARAMS)
    chance = np.random.default_rng(0)
    items = [chance.choice(50, 6, replace=False).tolist() for _ in range(1000)]
    times = []
    for number in range(100_000):
        start = time.perf_counter()
        rec.learn("u", items[number % 1000], basket=number, time=number)
        times.append(time.perf_counter() - start)
    first, last = statistics.median(times[10:100]) * 1e6, statistics.median(times[10_000:]) * 1e6
    return Row(
        "learn, history of 10,000..100,000 baskets",
        f"{last:.1f} us",
        f"{first:.1f} us at 10..100 baskets",
        f"{last / first:.2f}x",
        "at most 1.5x",
        last / first <= 1.5,
    )


def forget(shop: Shop) -> Row:
    """Compare forgetting any basket with retraining its user from scratch on dense NumPy vectors."""
    rec, times, retrain_times = shop.rec, [], []
    baskets = shop.history.select("user", "basket").unique(maintain_order=True).sample(2000, seed=1)
    for user, basket in baskets.iter_rows():
        history = rec.history(user)
        if len(history) < 2:
            continue
        _, when, items = next(each for each in history if each.basket == basket)
        start = time.perf_counter()
        rec.forget(user, basket=basket)
        times.append(time.perf_counter() - start)
        remaining = [list(b.items) for b in history if b.basket != basket]
        start = time.perf_counter()
        retrain_dense(shop, remaining)  # type: ignore[arg-type]
        retrain_times.append(time.perf_counter() - start)
        rec.learn(user, items, basket=basket, time=when)
    ours, baseline = statistics.median(times) * 1e6, statistics.median(retrain_times) * 1e6
    return Row(
        "forget any basket, The Complete Journey loaded, index live",
        f"{ours:.1f} us",
        f"{baseline:.1f} us, dense NumPy retrain of that user",
        f"{baseline / ours:.1f}x",
        "at least 5x",
        baseline / ours >= 5,
    )


def retrain_dense(shop: Shop, baskets: list[list[int]]) -> Vector:
    """Compute the paper's baseline: Eqs. groupvector and uservector from the whole history."""
    m, r_b, r_g = shop.params.group_size, shop.params.basket_decay, shop.params.group_decay
    vectors = [shop.multi_hot(basket) for basket in baskets]
    groups = [paper.decaying_average(vectors[i : i + m], r_b) for i in range(0, len(vectors), m)]
    return paper.decaying_average(groups, r_g)


def forget_at_the_end() -> Row:
    """Compare forgetting the newest basket of a long and of a short history."""

    def cost(length: int) -> float:
        chance = np.random.default_rng(0)
        frame = pl.DataFrame({"user": 1, "basket": np.arange(length), "time": np.arange(length)}).with_columns(
            item=pl.Series([chance.choice(50, 6, replace=False).tolist() for _ in range(length)])
        )
        rec = Recommender(PARAMS).fit(frame)
        times = []
        for number in range(300):
            rec.learn(1, [1, 2, 3, 4, 5, 6], basket=length + number, time=length + number)
            start = time.perf_counter()
            rec.forget(1, basket=length + number)
            times.append(time.perf_counter() - start)
        return statistics.median(times) * 1e6

    short, long = cost(100), cost(100_000)
    return Row(
        "forget at the end of 100,000 baskets",
        f"{long:.1f} us",
        f"{short:.1f} us at the end of 100",
        f"{long / short:.2f}x",
        "at most 3x",
        long / short <= 3,
    )


def fit(shop: Shop) -> Row:
    """Compare a fit from an Arrow table with pandas that only collects the baskets."""
    table = shop.history.select("user", "basket", "item", "time").to_arrow()
    frame: pd.DataFrame = table.to_pandas()

    def histories() -> object:
        """Collect each user's baskets in order, as lists, which other libraries start from."""
        ordered = frame.sort_values(["user", "time", "basket"])
        return ordered.groupby(["user", "time", "basket"])["item"].agg(list).groupby("user").agg(list)

    def fitted() -> object:
        return Recommender(PARAMS).fit(table)

    before, baseline, after = seconds(fitted, 3), seconds(histories, 1), seconds(fitted, 3)
    ours = (before + after) / 2
    return Row(
        "fit The Complete Journey, 1.3 million rows",
        f"{ours:.2f} s",
        f"{baseline:.1f} s, pandas groupby into ordered baskets, no model",
        f"{baseline / ours:.1f}x",
        "at least 5x, at most 1 s",
        baseline / ours >= 5 and ours <= 1,
    )


def recommend(shop: Shop) -> Row:
    """Compare a recommendation, one thread, k=300, with scikit-learn's brute force on all users in one batch."""
    rec, params = shop.rec, shop.params
    chance = np.random.default_rng(0)
    users = chance.choice(np.array(rec.users()), 1000, replace=False).tolist()
    rec.recommend(users[0])
    ours = microseconds(rec.recommend, [(user,) for user in users])
    mean = seconds(lambda: [rec.recommend(user) for user in users], 3) / len(users) * 1e6
    rows = [rec.vector(user) for user in rec.users()]
    matrix = csr_matrix(
        (
            np.concatenate([list(row.values()) for row in rows]),
            np.concatenate([list(row) for row in rows]).astype(np.int64),
            np.cumsum([0, *map(len, rows)]),
        )
    )
    position = {user: i for i, user in enumerate(rec.users())}
    queries = [position[user] for user in users]

    model = NearestNeighbors(n_neighbors=params.neighbors + 1, algorithm="brute").fit(matrix)
    alpha = float(params.alpha)

    def score(query: int, others: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        average = np.asarray(matrix[others[1:]].mean(axis=0)).ravel()
        return np.argsort(-(alpha * matrix[query].toarray().ravel() + (1 - alpha) * average))[:10]

    with threadpool_limits(1):
        start = time.perf_counter()
        _, neighbors = model.kneighbors(matrix)
        baseline = (time.perf_counter() - start) / len(rows) * 1e6
        baseline += seconds(lambda: [score(query, neighbors[query]) for query in queries], 1) / len(users) * 1e6
    return Row(
        "recommend, The Complete Journey, k=300, one thread, per user",
        f"{mean:.0f} us (median {ours:.0f})",
        f"{baseline:.0f} us, scikit-learn brute force of all users in batch, mean, argsort",
        f"{baseline / mean:.1f}x",
        "at least 8x",
        baseline / mean >= 8,
    )


def recommend_some(shop: Shop) -> list[Row]:
    """Compare recommendations with filters and with a cart to plain ones, in alternating calls."""
    rec, chance = shop.rec, np.random.default_rng(1)
    items, users = rec.items(), chance.choice(np.array(rec.users()), 1000, replace=False).tolist()
    categories = ["few" if chance.random() < 0.01 else "half" if chance.random() < 0.5 else "rest" for _ in items]
    rec.describe(pl.DataFrame({"item": items, "name": "", "category": categories}))
    few = [item for item, category in zip(items, categories, strict=True) if category == "few"]
    filters: dict[str, dict[str, Any]] = {
        "only 1 % of the items, a list": {"only": few},
        "only 1 % of the items, a category": {"category": "few"},
        "only half of the items, a category": {"category": "half"},
        "only half of the items, a frozen set": {"only": frozenset(items[::2])},
        "only new ones, and without 1 %": {"only_new": True, "exclude": few},
        "three items in the cart": {"cart": few[:3]},
    }
    rows = []
    for name, arguments in filters.items():
        times: list[list[float]] = [[], []]
        for number, user in enumerate(users):
            calls = [(0, {}), (1, arguments)]
            for index, given in calls if number % 2 else reversed(calls):  # the second call has warm caches
                start = time.perf_counter()
                rec.recommend(user, **given)
                times[index].append(time.perf_counter() - start)
        plain, ours = (statistics.median(each) * 1e6 for each in times)
        result = f"{ours / plain:.2f}x"
        beside = f"{plain:.0f} us, the same users without"
        rows.append(Row(f"recommend, {name}", f"{ours:.0f} us", beside, result, "at most 2x", ours <= 2 * plain))
    return rows


def change_params(shop: Shop) -> Row:
    """Change all parameters back and forth while a thread requests recommendations without a pause."""
    rec, users, stop = shop.rec, shop.rec.users(), threading.Event()
    latencies: list[float] = []

    def query() -> None:
        for user in itertools.cycle(users):
            if stop.is_set():
                return
            start = time.perf_counter()
            rec.recommend(user)
            latencies.append(time.perf_counter() - start)

    reader = threading.Thread(target=query)
    reader.start()
    other = shop.params.changed(group_size=3, group_decay=0.9, neighbors=100, alpha=0.1)
    ours = seconds(lambda: rec.change_params(other if rec.params == shop.params else shop.params), 6)
    stop.set()
    reader.join()
    return Row(
        "change all parameters, The Complete Journey, queries meanwhile",
        f"{ours:.2f} s",
        f"{len(latencies):,} recommendations during 6 changes",
        f"slowest {max(latencies) * 1e3:.0f} ms",
        "at most 1 s",
        ours <= 1 and len(latencies) > 0,
    )


def learned_weights(shop: Shop) -> list[Row]:
    """Compare a model that learns alpha with one of a number, in turn: 200 users with the one, then with the other."""
    engines = [Recommender(params).fit(shop.history) for params in (Params(), Params(alpha=0.8))]
    times: dict[str, list[list[float]]] = {work: [[], []] for work in ("learn", "forget any basket", "recommend")}
    chance = random.Random(0)

    def timed(work: str, number: int, call: Callable[[], object]) -> None:
        start = time.perf_counter()
        call()
        times[work][number].append(time.perf_counter() - start)

    blocks = [shop.events[first : first + 200] for first in range(0, len(shop.events), 200)]
    for block, (number, rec) in itertools.product(blocks, [*enumerate(engines)]):
        for user, items, when in block:
            basket, old_when, old_items = chance.choice(rec.history(user))
            timed("learn", number, partial(rec.learn, user, items, basket=-1, time=when))
            timed("recommend", number, partial(rec.recommend, user))
            timed("forget any basket", number, partial(rec.forget, user, basket=basket))
            rec.learn(user, old_items, basket=basket, time=old_when)
            rec.forget(user, basket=-1)
    rows = []
    for work, goal in (("learn", 1.3), ("forget any basket", 1.3), ("recommend", 1.15)):
        ours, baseline = (statistics.median(some) * 1e6 for some in times[work])
        rows.append(
            Row(
                f"{work}, with learned weights",
                f"{ours:.1f} us",
                f"{baseline:.1f} us with a number for alpha",
                f"{ours / baseline:.2f}x",
                f"at most {goal}x",
                ours <= goal * baseline,
            )
        )
    return rows


MEMORY = """
import ctypes, gc
from unbasket import Params, Recommender
from unbasket.datasets import load
def used():
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(open("/proc/self/statm").read().split()[1]) * 4096
history = load("completejourney").history.select("user", "basket", "item", "time")
params = Params.paper("tafeng")
Recommender(params).fit(history).recommend(1)
before = used()
rec = Recommender(params).fit(history)
rec.recommend(1)
print((used() - before) / len(history))
"""


def in_a_process(program: str) -> float:
    """Return the number that a program prints; Polars' allocator is configured to return freed memory."""
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "_RJEM_MALLOC_CONF": "dirty_decay_ms:0,muzzy_decay_ms:0"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return float(output)


def memory() -> Row:
    """Measure the memory of a loaded shop."""
    bytes_per_purchase = in_a_process(MEMORY)
    return Row(
        "memory with The Complete Journey loaded, per purchase",
        f"{bytes_per_purchase:.1f} bytes",
        "",
        "",
        "aim 40",
        bytes_per_purchase <= 40,
    )


def main() -> None:
    """Run everything and print the table."""
    table = Table("work", "ours", "beside it", "result", "must reach", "", title="Unbasket: the engine")
    steps: list[Callable[[], Row | list[Row]]] = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("loading The Complete Journey", total=10)
        shop = Shop()
        steps = [
            lambda: learn(shop),
            learn_by_length,
            lambda: forget(shop),
            forget_at_the_end,
            lambda: fit(shop),
            lambda: recommend(shop),
            lambda: recommend_some(shop),
            lambda: change_params(shop),
            lambda: learned_weights(shop),
            memory,
        ]
        gc.disable()  # as timeit does
        for step in steps:
            progress.update(task, advance=1, description=getattr(step, "__name__", "measuring"))
            found = step()
            gc.collect()
            for row in [found] if isinstance(found, Row) else found:
                table.add_row(*row[:5], "[green]yes[/]" if row.reached else "[red]no[/]")
    Console(width=170).print(table)


if __name__ == "__main__":
    main()
