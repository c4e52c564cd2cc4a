"""The effect of the grouping policy on quality after heavy deletion: groups refilled to m, or left short."""

from dataclasses import replace
from functools import partial

import polars as pl
from matplotlib.figure import Figure

from unbasket.engine.recommender import Recommender
from unbasket.evaluation import PROTOCOLS, compare_paired, plots
from unbasket.params import Grouping
from unbasket.reproduction.paper import METRIC_NAMES, METRICS
from unbasket.reproduction.scoring import read, recommend_all, scores, shuffled_baskets
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number, p_value, signed
from unbasket.reproduction.workloads import Settings

PROTOCOL = PROTOCOLS["all-users"]
POLICIES: tuple[Grouping, Grouping] = ("fixed", "varying")


def run(dataset: str, settings: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per share of forgotten baskets and metric. Each share forgets more in the same engines."""
    data = read(dataset)
    target = next(iter(data.targets))
    split = PROTOCOL.split(data.history, data.targets[target])
    engines = [Recommender(replace(data.params, grouping=policy)).fit(data.history) for policy in POLICIES]
    baskets = shuffled_baskets(data.history, settings.seed)
    rows: list[Row] = []
    forgotten = 0
    for share in (0.0, *settings.basket_shares):
        until = round(share * len(baskets))
        for done, (user, basket) in enumerate(baskets[forgotten:until], forgotten + 1):
            for engine in engines:
                engine.forget(user, basket=basket)
            step("forgetting baskets", done, len(baskets))
        forgotten = until
        progress = partial(step, f"{share:.0%} forgotten: recommending")
        recommended = [recommend_all(engine, split, progress) for engine in engines]
        fixed, varying = (scores(each, split.queries, data, target) for each in recommended)
        same = sum(engines[0].vector(user) == engines[1].vector(user) for user in engines[0].users())
        facts = {"dataset": dataset, "forgotten_share": share, "users": fixed.height}
        facts["users_with_another_vector"] = len(engines[0]) - same
        rows += [facts | _compared(metric, fixed, varying) for metric in METRICS]
    return rows


def _compared(metric: str, fixed: pl.DataFrame, varying: pl.DataFrame) -> Row:
    comparison = compare_paired(varying[metric], fixed[metric])
    return {
        "metric": METRIC_NAMES[metric],
        "fixed": comparison.second_mean,
        "varying": comparison.first_mean,
        "difference": comparison.difference.mean,
        "low": comparison.difference.low,
        "high": comparison.difference.high,
        "p_permutation": comparison.p_permutation,
    }


def present(frame: pl.DataFrame) -> Section:
    """Present both policies side by side, with the interval of their difference."""
    rows = [
        (
            row["dataset"],
            f"{row['forgotten_share']:.0%}",
            row["metric"],
            number(row["fixed"]),
            number(row["varying"]),
            f"{signed(row['difference'])} [{signed(row['low'])}, {signed(row['high'])}]",
            p_value(row["p_permutation"]),
        )
        for row in frame.iter_rows(named=True)
    ]
    header = ("data", "forgotten", "metric", "fixed", "varying", "varying - fixed [95 %]", "p")
    notes = (
        "A random share of all baskets is forgotten, the same baskets in both engines. Fixed: baskets are regrouped by "
        "m from the oldest on, as a retrain does. Varying: the paper's relaxation, where the boundaries of groups "
        "remain and groups get shorter.",
        "Protocol: every user with a history and a next basket (Instacart: last history basket; ValuedShopper: next "
        "basket), k true neighbors; users without remaining baskets are left out. Intervals are over users, for one "
        "draw of baskets.",
        "If most users have fewer than m baskets, as in Ta-Feng (m = 7, median 4), there is only one group, and the "
        "policies hardly differ.",
    )
    tables = (Table("Fixed against varying (p: paired permutation test)", header, rows), _users_table(frame))
    return Section(_findings(frame), notes, tables, _draw(frame))


def _users_table(frame: pl.DataFrame) -> Table:
    rows = [
        (row[0], f"{row[1]:.0%}", *(number(count, 0) for count in row[2:]))
        for row in frame.select("dataset", "forgotten_share", "users", "users_with_another_vector")
        .unique(maintain_order=True)
        .iter_rows()
    ]
    header = ("data", "forgotten", "users scored", "users whose vectors differ")
    return Table("Users affected by the policy", header, rows)


def _findings(frame: pl.DataFrame) -> tuple[Finding, ...]:
    """Report the change of Recall@10 at the largest share, per dataset."""
    recall = frame.filter(pl.col("metric") == METRIC_NAMES[METRICS[0]])
    most = recall.filter(pl.col("forgotten_share") == pl.col("forgotten_share").max().over("dataset"))
    return tuple(
        Finding(
            f"{row['dataset']}, {row['forgotten_share']:.0%} of the baskets forgotten: against fixed groups, the "
            f"paper's varying ones change Recall@10 by {signed(row['difference'])} [{signed(row['low'])}, "
            f"{signed(row['high'])}].",
            None,
        )
        for row in most.iter_rows(named=True)
    )


def _draw(frame: pl.DataFrame) -> Figure:
    names = frame["dataset"].unique(maintain_order=True).to_list()
    figure, axes = plots.panels(2, len(names), 4.2 * len(names) + 1, 7.5)
    recall = frame.filter(pl.col("metric") == "Recall@10").with_columns(percent=100 * pl.col("forgotten_share"))
    for column, name in enumerate(names):
        curve = recall.filter(pl.col("dataset") == name)
        above, below = axes[column], axes[len(names) + column]
        above.plot(curve["percent"], curve["fixed"], "o-", color=plots.OURS, label="fixed (a retrain's groups)")
        above.plot(curve["percent"], curve["varying"], "x--", color=plots.PAPER, label="varying (the paper's)")
        above.set_title(name)
        above.set_ylabel("Recall@10")
        errors = [curve["difference"] - curve["low"], curve["high"] - curve["difference"]]
        below.errorbar(curve["percent"], curve["difference"], yerr=errors, fmt="o", color="black", capsize=3)
        below.axhline(0, color=plots.RETRAIN, linewidth=1)
        below.set_ylabel("varying - fixed, 95 % interval")
        for axis in (above, below):
            axis.set_xlabel("baskets forgotten (%)")
    plots.legend_below(figure, axes[0], 2)
    return figure
