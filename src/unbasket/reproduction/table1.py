"""Table 1: dataset statistics and hyper-parameters, ours beside the paper's."""

from dataclasses import asdict

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from unbasket.datasets import load
from unbasket.evaluation import plots
from unbasket.params import Params
from unbasket.reproduction.paper import published_statistic
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number
from unbasket.reproduction.workloads import Settings

DIGITS = {"users": 0, "items": 0, "baskets": 0, "basket_size": 1, "baskets_per_user": 1}


def run(dataset: str, _: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per statistic."""
    step("counting", 0, 1)
    statistics = load(dataset).statistics()
    ours = asdict(statistics) | {"basket_size": statistics.basket_size_with_repeats}  # Table 1 counts repeats
    params = Params.paper(dataset)
    hyper = [params.group_size, params.basket_decay, params.group_decay, params.neighbors, params.alpha]
    return [
        {
            "dataset": dataset,
            "statistic": name,
            "paper": published_statistic(dataset, name),
            "ours": ours[name],
            "distinct_basket_size": statistics.basket_size,
            "hyper_parameters": str(hyper),
        }
        for name in DIGITS
    ]


def present(frame: pl.DataFrame) -> Section:
    """Present the paper's table, each figure as paper / ours."""
    rows = []
    for dataset in frame["dataset"].unique(maintain_order=True):
        statistics = frame.filter(pl.col("dataset") == dataset)
        cells = [" / ".join(_rounded(row)) for row in statistics.iter_rows(named=True)]
        extra = statistics.row(0, named=True)
        rows.append((dataset, *cells, number(extra["distinct_basket_size"], 2), extra["hyper_parameters"]))
    header = (
        "data", "users", "items", "baskets", "avg. basket size", "avg. baskets per user",
        "avg. distinct items per basket", "hyper-parameters",
    )  # fmt: skip
    notes = (
        "Held-out baskets are not counted. Each cell is paper / ours.",
        "The hyper-parameters are the paper's and are used throughout: group size m, decay r_b within a group, decay "
        "r_g across groups, k neighbors, weight alpha of the user's own vector.",
        "The average basket size counts an item as often as the source lists it in a basket, as the paper does. This "
        "matters for ValuedShopper only. The engine's baskets are sets (0/1), so it uses distinct items.",
    )
    table = Table("Statistics of the history, paper / ours", header, rows)
    return Section((_finding(frame),), notes, (table,), _draw(frame))


def _rounded(row: Row) -> tuple[str, str]:
    digits = DIGITS[row["statistic"]]
    return number(row["paper"], digits), number(row["ours"], digits)


def _finding(frame: pl.DataFrame) -> Finding:
    """Count the datasets with all figures equal to the paper's after rounding."""
    datasets = [map(_rounded, rows.iter_rows(named=True)) for _, rows in frame.group_by("dataset")]
    same, total = sum(all(paper == ours for paper, ours in rows) for rows in datasets), len(datasets)
    text = f"Users, items, baskets and averages equal the paper's on {same} of {total} datasets."
    return Finding(text, same == total)


def _draw(frame: pl.DataFrame) -> Figure:
    figure, axes = plots.panels(1, len(DIGITS), 12, 3.2)
    for axis, name in zip(axes, DIGITS, strict=True):
        bars = frame.filter(pl.col("statistic") == name)
        positions = np.arange(bars.height)
        axis.bar(positions - 0.2, bars["paper"], 0.38, color=plots.PAPER, label="paper")
        axis.bar(positions + 0.2, bars["ours"], 0.38, color=plots.OURS, label="ours")
        axis.set_xticks(positions, bars["dataset"].to_list(), rotation=25, ha="right")
        axis.set_title(name.replace("_", " "))
        axis.set_ylabel("items" if name == "basket_size" else "baskets" if name == "baskets_per_user" else name)
    plots.legend_below(figure, axes[0], 2)
    return figure
