"""The table of accuracy in README.md: `make bench-accuracy`.

Each user's next basket is predicted in five shops, under the protocol all-users, by GP-TopFreq, by TIFU-kNN with the
paper's parameters (those for Ta-Feng in shops that the paper does not have), by parameters that `tune` finds in 50
trials, and by the defaults, which nobody tunes. Tuning sees baskets before the predicted one only.

It needs the files of all five datasets (data/README.md), Optuna, which `make setup` installs, and about an hour on two
cores, most of it for tuning. Trials are kept in build/accuracy, so an interrupted run can be resumed.
"""

import argparse
import sys
from pathlib import Path

import polars as pl
from benchmarks.pool import NAMES
from rich.console import Console
from rich.progress import track

import unbasket as ub
from benchmarks import pages
from unbasket.evaluation.evaluation import Evaluation
from unbasket.params import PAPER_DATASETS

FIGURES = ("recall@10", "ndcg_paper@10", "recall@20", "ndcg_paper@20")
SIMPLE, OURS = "GP-TopFreq", "TIFU-kNN"
COLUMNS = ("GP-TopFreq", "the paper's parameters", "tuned, 50 trials", "**ours, untuned**")
FOLDER = Path("build/accuracy")
PAGE = Path(__file__).parents[1] / "README.md"

console = Console(stderr=True)


def row(shop: str, trials: int) -> str:
    """Evaluate a shop in all ways, and return its row of the table."""
    data = ub.datasets.load(shop)
    paper = ub.Params.paper(shop if shop in PAPER_DATASETS else "tafeng")
    study = FOLDER / f"{shop}-{trials}.db"
    tuned = ub.tune(data, trials=trials, start=paper, study=study).params
    ours = ub.evaluate(data, ub.Params(), baselines=[SIMPLE])
    others = [ub.evaluate(data, params, baselines=[]) for params in (paper, tuned)]
    cells = [_cell(ours, SIMPLE), *(_cell(each, OURS) for each in others), _cell(ours, OURS)]
    return f"| {NAMES[shop]} | {' | '.join(cells)} |"


def _cell(evaluation: Evaluation, model: str) -> str:
    means = [evaluation.scores[model].select(pl.col(figure).mean()).item() for figure in FIGURES]
    return " ".join(f"{mean:.4f}".removeprefix("0") for mean in means)


def written(rows: list[str]) -> str:
    """Render the table of the page."""
    header = "| recall@10, NDCG@10, recall@20, NDCG@20 | " + " | ".join(COLUMNS) + " |"
    return "\n".join([header, "| --- " * (1 + len(COLUMNS)) + "|", *rows])


def main() -> None:
    """Evaluate all shops, print the table, and write it into the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shops", nargs="+", choices=NAMES, default=list(NAMES), help="fewer shops: writes nothing")
    parser.add_argument("--trials", type=int, default=50, help="of tuning")
    asked = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    table = written([row(shop, asked.trials) for shop in track(asked.shops, "shops", console=console, transient=True)])
    sys.stdout.write(table + "\n")
    if asked.shops == list(NAMES):
        pages.write(PAGE, "benchmarks/accuracy.py", table)


if __name__ == "__main__":
    main()
