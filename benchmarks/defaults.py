"""The quality of the defaults of `Params`, which learn alpha, beside fixed parameters: `make bench-defaults`.

It takes half an hour. Fixed parameters are chosen by a search, and judged by how well they predict each user's last
history basket, never the basket that figures are reported for. In a shop with few users, several baskets of each are
predicted, every one from the baskets before it. The value of parameters in a shop is the mean of four metrics (recall
and NDCG at 10 and 20), each divided by that of GP-TopFreq; for several shops, it is the geometric mean. The search
draws parameters at random, the same for all shops, continues from the best by changing one at a time, and then reduces
the neighbors while the value stays nearly the same.

Fixed defaults would be meant for shops outside the search. Their value there is measured by leaving out one shop at a
time: the best parameters of the others predict the future of the one left out. A learned alpha needs no search.

It needs the files of all five datasets: data/README.md. The tables go to docs/evaluation.md. Values are cached in a
file, so an interrupted search can be resumed.
"""

import argparse
import json
import random
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from statistics import fmean, geometric_mean
from typing import Any, NamedTuple

import polars as pl
from benchmarks.pool import NAMES
from rich.console import Console
from rich.progress import track

from benchmarks import pages
from unbasket import Params, Recommender, datasets
from unbasket.datasets.published import OF_THE_PAPER
from unbasket.evaluation import (
    PROTOCOLS,
    Holdout,
    MeanInterval,
    Split,
    all_users_split,
    compare_paired,
    gp_topfreq,
    hide_last_basket,
    score_users,
)
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate, fit_candidates, rank

FIGURES = {"recall@10": "recall@10", "ndcg_paper@10": "NDCG@10", "recall@20": "recall@20", "ndcg_paper@20": "NDCG@20"}
SIMPLE = "GP-TopFreq"
DEFAULTS, FIXED, OTHERS, TUNED = "defaults", "fixed", "chosen on the others", "tuned"
N = 20

DRAWN: dict[str, list[Any]] = {
    "group_size": [1, 2, 3, 5, 7, 10, 15, 20, 30],
    "basket_decay": [0.8, 0.85, 0.9, 0.95, 0.98, 1.0],
    "group_decay": [0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0],
    "neighbors": [50, 100, 200, 300, 500, 900],
    "alpha": [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0],
}
STEPS = DRAWN | {
    "group_decay": [0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.93, 0.95, 0.97, 0.98, 0.99, 1.0],
    "neighbors": [25, 50, 100, 200, 300, 500, 900],
}
NEARLY = 0.998  # the share of the best value that fewer neighbors must reach

PAGE = Path(__file__).parents[1] / "docs" / "evaluation.md"

console = Console(stderr=True)


class Validation(NamedTuple):
    """A hidden basket of each user, an engine fitted to the baskets before it, and the metrics of GP-TopFreq."""

    data: Holdout
    split: Split
    engine: Recommender
    simple: dict[str, float]


class Search:
    """The search for the parameters of the highest value."""

    def __init__(self, cache: Path, draws: int, queries: int, seed: int, shops: Sequence[str]) -> None:
        self._cache = cache
        self._values: dict[str, dict[str, float]] = {shop: {} for shop in NAMES}
        if cache.exists():
            self._values |= json.loads(cache.read_text())
        self._draws = _draws(draws, seed)
        self._validations = {
            shop: _validations(shop, queries, seed) for shop in track(shops, "loading", console=console, transient=True)
        }

    def best(self, shops: Sequence[str]) -> Params:
        """Return the parameters with the highest value in these shops."""
        self._try(self._draws, shops)
        here = max(self._draws, key=lambda params: self._mean(params, shops))
        while True:
            near = _near(here)
            self._try(near, shops)
            there = max(near, key=lambda params: self._mean(params, shops))
            if self._mean(there, shops) <= self._mean(here, shops):
                return self._with_fewer_neighbors(here, shops)
            here = there

    def _with_fewer_neighbors(self, params: Params, shops: Sequence[str]) -> Params:
        """Reduce the neighbors, each of which costs time, to the fewest with nearly the same value."""
        fewer = [params.changed(neighbors=k) for k in STEPS["neighbors"] if k <= params.neighbors]
        self._try(fewer, shops)
        return next(one for one in fewer if self._mean(one, shops) >= NEARLY * self._mean(params, shops))

    def _mean(self, params: Params, shops: Sequence[str]) -> float:
        return geometric_mean(self._values[shop][str(params)] for shop in shops)

    def _try(self, some: list[Params], shops: Sequence[str]) -> None:
        """Measure the values that are not cached."""
        new = [(shop, params) for params in some for shop in shops if str(params) not in self._values[shop]]
        description = "all shops" if len(shops) == len(NAMES) else " ".join(shops)
        for shop, params in track(new, description, console=console, transient=True):
            self._values[shop][str(params)] = _value(params, self._validations[shop])
            self._cache.write_text(json.dumps(self._values, indent=0))


def _draws(count: int, seed: int) -> list[Params]:
    """Return the paper's parameters, and random ones."""
    chance = random.Random(seed)
    drawn = [Params(**{name: chance.choice(values) for name, values in DRAWN.items()}) for _ in range(count)]
    return [*map(Params.paper, OF_THE_PAPER), *drawn]


def _near(params: Params) -> list[Params]:
    """Return the parameters one step away in one parameter."""
    found = []
    for name, values in STEPS.items():
        index = values.index(getattr(params, name))
        if name == "basket_decay" and params.group_size == 1:  # it has no effect
            continue
        found += [params.changed(**{name: values[i]}) for i in (index - 1, index + 1) if 0 <= i < len(values)]
    return found


def _validations(shop: str, queries: int, seed: int) -> list[Validation]:
    """Hide baskets, at least one per user, until about `queries` of them are predicted."""
    history, validations = _with_future(shop).history, []
    for _ in range(max(1, queries // history["user"].n_unique())):
        data = hide_last_basket(history)
        split = _sampled(all_users_split(*data), queries, seed)
        simple = _figures(gp_topfreq(data.history, split, N), data)
        validations.append(Validation(data, split, fit_candidates(data.history, split, Params()), simple))
        history = data.history
    return validations


def _value(params: Params, validations: list[Validation]) -> float:
    """Return the mean of the metrics on the hidden baskets, each divided by that of GP-TopFreq."""
    found = []
    for data, split, engine, _ in validations:
        engine.change_params(params)
        found.append(_figures(rank(engine, data.history, split, N), data))
    return fmean(
        fmean(figures[name] for figures in found) / fmean(each.simple[name] for each in validations) for name in FIGURES
    )


def _with_future(shop: str) -> Holdout:
    data = datasets.load(shop)
    return hide_last_basket(data.history) if data.future is None else Holdout(data.history, data.future)


def _sampled(split: Split, queries: int, seed: int) -> Split:
    asked = split.queries
    if len(asked) > queries:
        asked = asked.sample(queries, seed=seed).sort()
    return Split(queries=asked, candidates=split.candidates)


def _figures(rankings: pl.DataFrame, data: Holdout) -> dict[str, float]:
    means = score_users(rankings, data.history, data.future, [10, N]).select(pl.col(*FIGURES).mean())
    return dict(means.row(0, named=True))


# The tables -----------------------------------------------------------------------------------------------------


def _page(search: Search, shops: Sequence[str]) -> str:
    """Render the tables as Markdown."""
    fixed = search.best(shops)
    console.print(f"The best fixed parameters in all shops: {fixed}", soft_wrap=True)
    chosen = {
        shop: {
            "the paper's": Params.paper(shop if shop in OF_THE_PAPER else "tafeng"),
            FIXED: fixed,
            OTHERS: search.best([other for other in shops if other != shop] or shops),
            TUNED: search.best([shop]),
            DEFAULTS: Params(),
        }
        for shop in shops
    }
    found = {
        shop: {way: _predicted(shop, params) for way, params in ways.items()}
        for shop, ways in track(chosen.items(), "predicting the future", console=console, transient=True)
    }
    return "\n".join([_worth_table(found), _figures_table(found), _differences_table(found), _params_table(chosen)])


@cache
def _predicted(shop: str, params: Params) -> Evaluation:
    """Evaluate parameters on the future of a shop; cached, since two choices may be equal."""
    return evaluate(_with_future(shop), params, PROTOCOLS["all-users"], baselines=[SIMPLE])


def _worth_table(found: dict[str, dict[str, Evaluation]]) -> str:
    """Tabulate the mean of the metrics, each divided by that of GP-TopFreq: by shop, and the geometric mean."""
    lines = [f"| worth | {' | '.join(NAMES[shop] for shop in found)} | all |", "| --- " * (2 + len(found)) + "|"]
    for way in next(iter(found.values())):
        worths = [_worth(ways[way]) for ways in found.values()]
        cells = [f"{worth:.3f}" for worth in (*worths, geometric_mean(worths))]
        lines.append(f"| {way} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _worth(evaluation: Evaluation) -> float:
    ratios = []
    for name in FIGURES:
        ours, simple = (evaluation.mean(model, name) for model in (TIFUKNN, SIMPLE))
        assert ours is not None
        assert simple is not None
        ratios.append(ours.mean / simple.mean)
    return fmean(ratios)


def _figures_table(found: dict[str, dict[str, Evaluation]]) -> str:
    lines = [f"| | parameters | {' | '.join(FIGURES.values())} |", "| --- " * (2 + len(FIGURES)) + "|"]
    for shop, ways in found.items():
        rows = {SIMPLE: ways[DEFAULTS].means[SIMPLE]} | {way: ways[way].means[TIFUKNN] for way in ways}
        for way, means in rows.items():
            cells = [f"{mean.mean:.4f} ±{_half(mean):.4f}" for mean in map(means.get, FIGURES) if mean]
            lines.append(f"| {NAMES[shop]} | {way} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _differences_table(found: dict[str, dict[str, Evaluation]]) -> str:
    pairs = [(DEFAULTS, SIMPLE), (DEFAULTS, FIXED), (DEFAULTS, TUNED), (OTHERS, SIMPLE)]
    titles = [f"{first} - {second}" for first, second in pairs]
    lines = [f"| | paired | {' | '.join(titles)} |", "| --- " * (2 + len(pairs)) + "|"]
    for shop, ways in found.items():
        scores = {SIMPLE: ways[DEFAULTS].scores[SIMPLE]} | {way: ways[way].scores[TIFUKNN] for way in ways}
        for name, title in FIGURES.items():
            gains = [compare_paired(scores[first][name], scores[second][name]).difference for first, second in pairs]
            cells = [f"{gain.mean:+.4f} ±{_half(gain):.4f}" for gain in gains]
            lines.append(f"| {NAMES[shop]} | {title} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _params_table(chosen: dict[str, dict[str, Params]]) -> str:
    lines = [f"| | parameters | {' | '.join(DRAWN)} |", "| --- " * (2 + len(DRAWN)) + "|"]
    fixed = next(iter(chosen.values()))[FIXED]
    lines += [f"| all | {way} | {_values(params)} |" for way, params in ((DEFAULTS, Params()), (FIXED, fixed))]
    for shop, ways in chosen.items():
        lines += [f"| {NAMES[shop]} | {way} | {_values(ways[way])} |" for way in (OTHERS, TUNED)]
    return "\n".join(lines) + "\n"


def _values(params: Params) -> str:
    return " | ".join(str(getattr(params, name)) for name in DRAWN)


def _half(interval: MeanInterval) -> float:
    return (interval.high - interval.low) / 2


def main() -> None:
    """Choose on validation baskets, predict the future, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=100, help="of parameters")
    parser.add_argument("--queries", type=int, default=2_000, help="hidden baskets of a shop to predict")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--kept",
        type=Path,
        default=Path("build/defaults.json"),
        help="the cache of values with these queries and this seed",
    )
    parser.add_argument("--shops", nargs="+", choices=NAMES, default=list(NAMES), help="with fewer, no page is written")
    asked = parser.parse_args()
    asked.kept.parent.mkdir(parents=True, exist_ok=True)
    search = Search(asked.kept, asked.draws, asked.queries, asked.seed, asked.shops)
    text = _page(search, asked.shops)
    sys.stdout.write(text)
    if asked.shops == list(NAMES):
        pages.write(PAGE, "benchmarks/defaults.py", text)


if __name__ == "__main__":
    main()
