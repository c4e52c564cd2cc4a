"""Table 1: dataset statistics and hyper-parameters, ours beside the paper's."""

import polars as pl
from matplotlib.figure import Figure

from unbasket.datasets import load
from unbasket.evaluation import plots
from unbasket.params import Params
from unbasket.reproduction import claims
from unbasket.reproduction.progress import Watch
from unbasket.reproduction.section import Finding, Row, Section, Table, number
from unbasket.reproduction.settings import Settings

DIGITS = {"users": 0, "items": 0, "baskets": 0, "basket_size": 1, "baskets_per_user": 1}


def run(dataset: str, _: Settings, watch: Watch) -> list[Row]:
    """A row per statistic."""
    watch("counting", 0, 1)
    statistics = load(dataset).statistics()
    params = Params.paper(dataset)
    hyper = [params.group_size, params.basket_decay, params.group_decay, params.neighbors, params.alpha]
    return [
        {
            "dataset": dataset,
            "statistic": name,
            "paper": claims.statistic(dataset, name),
            "ours": ours,
            "distinct_basket_size": statistics.basket_size,
            "hyper_parameters": str(hyper),
        }
        for name, ours in claims.comparable(statistics).items()
    ]


def present(frame: pl.DataFrame) -> Section:
    """The paper's table, each figure as paper / ours."""
    rows = []
    for dataset in frame["dataset"].unique(maintain_order=True):
        part = frame.filter(pl.col("dataset") == dataset)
        cells = [
            f"{number(row['paper'], DIGITS[row['statistic']])} / {number(row['ours'], DIGITS[row['statistic']])}"
            for row in part.iter_rows(named=True)
        ]
        extra = part.row(0, named=True)
        rows.append((dataset, *cells, number(extra["distinct_basket_size"], 2), extra["hyper_parameters"]))
    header = (
        "data", "users", "items", "baskets", "avg. basket size", "avg. baskets per user",
        "avg. distinct items per basket", "hyper-parameters",
    )  # fmt: skip
    notes = (
        "Held-out baskets are not counted. Each cell is paper / ours.",
        "The hyper-parameters are the paper's and are used throughout: group size m, decay r_b within a group, decay "
        "r_g across groups, k neighbors, weight alpha of the user's own vector.",
        "The average basket size counts an item as often as the source lists it in a basket, as the paper does. That "
        "matters for ValuedShopper only. The engine's baskets are sets (0/1), so it sees distinct items.",
    )
    table = Table("Statistics of the history, paper / ours", header, rows)
    return Section((_finding(frame),), notes, (table,), _draw(frame))


def _finding(frame: pl.DataFrame) -> Finding:
    """Do all figures round to the paper's?"""
    shown = frame.select(
        "dataset",
        equal=pl.struct("statistic", "paper", "ours").map_elements(
            lambda row: number(row["paper"], DIGITS[row["statistic"]]) == number(row["ours"], DIGITS[row["statistic"]]),
            return_dtype=pl.Boolean,
        ),
    )
    datasets = shown.group_by("dataset").agg(pl.col("equal").all())
    same, all_of_them = datasets["equal"].sum(), datasets.height
    text = f"Users, items, baskets and averages equal the paper's on {same} of {all_of_them} datasets."
    return Finding(text, same == all_of_them)


def _draw(frame: pl.DataFrame) -> Figure:
    figure, axes = plots.panels(1, len(DIGITS), 12, 3.2)
    for axis, name in zip(axes, DIGITS, strict=True):
        part = frame.filter(pl.col("statistic") == name)
        places = range(part.height)
        axis.bar([place - 0.2 for place in places], part["paper"], 0.38, color=plots.PAPER, label="paper")
        axis.bar([place + 0.2 for place in places], part["ours"], 0.38, color=plots.OURS, label="ours")
        axis.set_xticks(list(places), part["dataset"].to_list(), rotation=25, ha="right")
        axis.set_title(name.replace("_", " "))
        axis.set_ylabel("items" if name == "basket_size" else "baskets" if name == "baskets_per_user" else name)
    plots.legend_below(figure, axes[0], 2)
    return figure
