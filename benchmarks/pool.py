"""The quality of recommendations with neighbors from a pool: `make bench-pool`, some ten minutes.

Each of five datasets is evaluated with neighbors among all users, and among pools of a half to a twentieth of them,
each with several seeds: once with the paper's parameters (those of Ta-Feng for datasets outside the paper), and once
with alpha = 0.1, where neighbors contribute nearly the whole score. Writes the tables of docs/pool.md and its figure.
It needs the files of all five: data/README.md.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import Progress

from benchmarks import pages
from unbasket import datasets
from unbasket.evaluation import PROTOCOLS, Holdout
from unbasket.evaluation.plots import legend_below, panels, svg
from unbasket.evaluation.statistics import bootstrap_means
from unbasket.evaluation.tifuknn import TIFUKNN, evaluate
from unbasket.params import Params

NAMES = {
    "tafeng": "Ta-Feng",
    "instacart": "Instacart",
    "valuedshopper": "ValuedShopper",
    "completejourney": "The Complete Journey",
    "coop100": "Coop",
}
METRICS = {"recall@10": "recall@10", "ndcg_paper@10": "NDCG@10"}
SHARES = {2: "half", 4: "quarter", 10: "tenth", 20: "twentieth"}
ALPHA = 0.1
MUST = 0.97  # share of the exact recall@10 with a tenth of the users, mean over the datasets

PAGE = Path("docs/pool.md")
FIGURE = Path("docs/images/pool.svg")

Scores = npt.NDArray[np.float64]  # of users, in the order of their ids


class Kept(NamedTuple):
    """A metric with a pool: the mean, half the width of its interval, and the share of the exact mean."""

    mean: float
    half: float
    share: float
    low: float
    high: float


class Setting(NamedTuple):
    """A dataset with parameters."""

    name: str
    users: int
    params: Params
    kept: dict[str, dict[int, Kept]]
    """Metric -> denominator of the share of users (1: all) -> the metric with that pool."""


def holdout(name: str) -> tuple[Holdout, Params]:
    """Return a dataset's history and future, and its parameters."""
    dataset = datasets.load(name)
    if dataset.future is None:
        dataset = datasets.hold_out_last(dataset)
    assert dataset.future is not None
    return Holdout(dataset.history, dataset.future), dataset.params or Params.paper("tafeng")


def scores(data: Holdout, params: Params) -> dict[str, Scores]:
    """Return each user's scores."""
    found = evaluate(data, params, PROTOCOLS["all-users"], cutoffs=[10]).scores[TIFUKNN]
    return {metric: found.sort("user")[metric].to_numpy() for metric in METRICS}


def measured(name: str, seeds: int, alpha: float | None) -> Iterator[Setting | None]:
    """Yield None for each finished evaluation, and finally the result."""
    data, params = holdout(name)
    params = params if alpha is None else replace(params, alpha=alpha)
    users = data.history["user"].n_unique()
    exact = scores(data, params)
    yield None
    kept = {metric: {1: _kept(exact[metric], exact[metric])} for metric in METRICS}
    for divisor in SHARES:
        found = []
        for seed in range(seeds):
            found.append(scores(data, replace(params, pool=max(1, users // divisor), pool_seed=seed)))
            yield None
        for metric in METRICS:
            kept[metric][divisor] = _kept(np.mean([one[metric] for one in found], axis=0), exact[metric])
    yield Setting(name, users, params, kept)


def _kept(found: Scores, exact: Scores) -> Kept:
    """Return the means, with the interval of their ratio from that of the paired difference."""
    mean, lost = bootstrap_means([found, found - exact])
    whole = float(exact.mean())
    return Kept(mean.mean, (mean.high - mean.low) / 2, mean.mean / whole, 1 + lost.low / whole, 1 + lost.high / whole)


def table(settings: list[Setting], metric: str) -> str:
    """Render a row per dataset: the exact mean, then each pool's share of it; and the mean shares."""
    lines = [f"| {METRICS[metric]} | users | all users | {' | '.join(SHARES.values())} |"]
    lines.append("| --- " * (3 + len(SHARES)) + "|")
    for setting in settings:
        exact, *pools = setting.kept[metric].values()
        cells = [f"{100 * p.share:.1f} % ({100 * p.low:.1f} to {100 * p.high:.1f})" for p in pools]
        lines.append(
            f"| {NAMES[setting.name]} | {setting.users:,} | {exact.mean:.4f} ± {exact.half:.4f} | {' | '.join(cells)} |"
        )
    shares = [f"{100 * mean_share(settings, metric, divisor):.1f} %" for divisor in SHARES]
    lines.append(f"| mean of the shares | | | {' | '.join(shares)} |")
    return "\n".join(lines) + "\n"


def mean_share(settings: list[Setting], metric: str, divisor: int) -> float:
    """Return the mean share over datasets for a pool of this size."""
    return float(np.mean([setting.kept[metric][divisor].share for setting in settings]))


def draw(groups: dict[str, list[Setting]]) -> str:
    """Draw a panel per metric and alpha: the share of the exact metric by pool size."""
    figure, axes = panels(len(METRICS), len(groups), 9.5, 7)
    ticks = [1, *SHARES]
    for axis, (metric, title) in zip(axes, [(m, g) for m in METRICS for g in groups], strict=True):
        for setting in groups[title]:
            kept = [setting.kept[metric][divisor] for divisor in ticks]
            shares = [pool.share for pool in kept]
            spread = [[p.share - p.low for p in kept], [p.high - p.share for p in kept]]
            label = f"{NAMES[setting.name]} ({setting.users:,})"
            axis.errorbar(range(len(ticks)), shares, spread, marker="o", markersize=4, capsize=2, label=label)
        axis.axhline(1, color="gray", linewidth=0.8)
        axis.set_xticks(range(len(ticks)), ["all", *SHARES.values()])
        axis.set_ylabel(f"{METRICS[metric]}, share of the exact")
        axis.set_title(title, fontsize="medium")
    legend_below(figure, axes[0], 3)
    return svg(figure)


def page(groups: dict[str, list[Setting]], seeds: int) -> str:
    """Render the tables as Markdown."""
    lines = [
        f"Shares of the figure with all users, means over {seeds} seeds. In brackets, and behind ±: 95 % bootstrap "
        "intervals over users, paired.\n"
    ]
    for title, settings in groups.items():
        lines.append(f"### {title[0].upper()}{title[1:]}\n")
        lines += [table(settings, metric) for metric in METRICS]
    return "\n".join(lines)


def main() -> None:
    """Evaluate, and write the tables and the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", choices=NAMES, default=list(NAMES), help="datasets; all by default")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of each pool")
    asked = parser.parse_args()
    console = Console(stderr=True)
    groups: dict[str, list[Setting]] = {}
    with Progress(console=console, transient=True) as progress:
        total = 2 * len(asked.data) * (1 + asked.seeds * len(SHARES))
        task = progress.add_task("", total=total)
        for title, alpha in {"the paper's parameters": None, f"alpha = {ALPHA}": ALPHA}.items():
            groups[title] = []
            for name in asked.data:
                progress.update(task, description=f"{NAMES[name]}, {title}")
                for result in measured(name, asked.seeds, alpha):
                    if result is None:
                        progress.advance(task)
                    else:
                        groups[title].append(result)
    text = page(groups, asked.seeds)
    sys.stdout.write(text)
    if list(asked.data) == list(NAMES):
        pages.write(PAGE, "benchmarks/pool.py", text)
        FIGURE.write_text(draw(groups))
    share = mean_share(next(iter(groups.values())), "recall@10", 10)
    console.print(f"With a tenth of the users, {share:.1%} of recall@10 stays; at least {MUST:.0%} must")
    assert share >= MUST, f"a pool of a tenth of the users loses more than {1 - MUST:.0%} of recall@10"


if __name__ == "__main__":
    main()
