"""Figure (c): the numeric error of a vector after repeated deletions."""

from functools import partial

import polars as pl

from unbasket.domain.results import Progress
from unbasket.engine.recommender import Recommender
from unbasket.evaluation import plots
from unbasket.evaluation.paper_rules import PaperUser
from unbasket.reproduction.baselines import USER
from unbasket.reproduction.paper import DELETIONS_TO_ONE_PERCENT
from unbasket.reproduction.section import Finding, Row, Section, StepProgress, Table, number
from unbasket.reproduction.updates import ORDERS, deletion_positions
from unbasket.reproduction.workloads import PARAMS, Settings

ONE_PERCENT = 0.01
_ITEM = 1
_FLOOR = 1e-18  # stands for an error of exactly 0 on a logarithmic axis


def run(_: str, settings: Settings, step: StepProgress) -> list[Row]:
    """Measure a row per order, rule and deletion."""
    rows: list[Row] = []
    for order in ORDERS:
        positions = deletion_positions(order, settings.drift_baskets, settings.seed)
        for rule, errors in RULES.items():
            progress = partial(step, f"deletions from {order}, {rule}")
            rows += [
                {"order": order, "rule": rule, "deletions": deletions, "relative_error": error}
                for deletions, error in enumerate(errors(settings.drift_baskets, positions, progress), 1)
            ]
    return rows


def paper_errors(baskets: int, positions: list[int], progress: Progress) -> list[float]:
    """Compare the paper's rule with a recomputation from the same groups, after each deletion."""
    user = PaperUser(PARAMS.group_size, PARAMS.basket_decay, PARAMS.group_decay, dimension=1)
    for _ in range(baskets):
        user.add_basket([0])
    errors = []
    for done, position in enumerate(positions, 1):
        user.delete_basket(position)
        errors.append(_relative(float(user.vector[0]), float(user.retrained()[0])))
        progress(done, len(positions))
    return errors


def our_errors(baskets: int, positions: list[int], progress: Progress) -> list[float]:
    """Compare the engine with a new one fitted to the remaining baskets, after each deletion."""
    engine = Recommender(PARAMS)
    remaining = list(range(baskets))
    for basket in remaining:
        engine.learn(USER, [_ITEM], basket=basket, time=basket)
    errors = []
    for done, position in enumerate(positions, 1):
        engine.forget(USER, basket=remaining.pop(position))
        frame = pl.DataFrame({"user": USER, "basket": remaining, "item": _ITEM, "time": remaining})
        retrained = Recommender(PARAMS).fit(frame)
        errors.append(_relative(engine.vector(USER)[_ITEM], retrained.vector(USER)[_ITEM]))
        progress(done, len(positions))
    return errors


def _relative(value: float, truth: float) -> float:
    return abs(value - truth) / abs(truth)


RULES = {"paper's rule": paper_errors, "ours": our_errors}


def present(frame: pl.DataFrame) -> Section:
    """Present the error by deletions, and the number of deletions until it passes 1 %."""
    figure, axes = plots.panels(1, len(ORDERS), 13, 4.6)
    for axis, order in zip(axes, ORDERS, strict=True):
        for rule, color in (("paper's rule", plots.PAPER), ("ours", plots.OURS)):
            curve = frame.filter(pl.col("order") == order, pl.col("rule") == rule)
            label = "ours (exactly 0, drawn at 1e-18)" if rule == "ours" else rule
            axis.plot(curve["deletions"], curve["relative_error"].clip(_FLOOR), color=color, label=label)
        axis.axhline(ONE_PERCENT, color=plots.RETRAIN, linestyle="--", linewidth=1, label="1 %")
        claim = f"paper: 1 % after {DELETIONS_TO_ONE_PERCENT} deletions"
        axis.axvline(DELETIONS_TO_ONE_PERCENT, color=plots.CLAIM, linestyle=":", label=claim)
        axis.set_yscale("log")
        axis.set_title(f"deletions: {order}")
        axis.set_xlabel("deletions in a row")
        axis.set_ylabel("relative error of the vector (log scale)")
    plots.legend_below(figure, axes[0], 4)
    notes = (
        "One user, one item, m = 2, r_g = 0.7, r_b = 0.9, as in section 6.3 of the paper. After each deletion the "
        "maintained vector is compared with one recomputed from the remaining baskets.",
        "The paper's rule divides by a decay rate whenever a group is removed, and so multiplies the rounding error. "
        "The engine replays the history from the deletion on, with exactly the operations of a retrain: its error must "
        "be 0, not merely small.",
    )
    return Section(_findings(frame), notes, (_table(frame),), figure)


def _findings(frame: pl.DataFrame) -> tuple[Finding, ...]:
    ours = frame.filter(pl.col("rule") == "ours")["relative_error"].to_list()
    exact = max(ours) == 0
    text = "no deletion leaves an error" if exact else f"the error reaches {max(ours):.1e}"
    return (
        Finding(f"Ours: {text}, in {len(ours):,} comparisons with a retrain.", exact),
        Finding(f"The paper's rule, deleting from the end: {_passing_one_percent(frame)}.", None),
    )


def _passing_one_percent(frame: pl.DataFrame) -> str:
    drifting = frame.filter(pl.col("order") == "end", pl.col("rule") == "paper's rule")
    past = drifting.filter(pl.col("relative_error") > ONE_PERCENT)
    if past.is_empty():
        return "the relative error never passes 1 %"
    published = f"the paper says {DELETIONS_TO_ONE_PERCENT}"
    return f"the relative error passes 1 % after {past['deletions'][0]} deletions ({published})"


def _table(frame: pl.DataFrame) -> Table:
    rows = []
    for (order, rule), curve in frame.group_by("order", "rule", maintain_order=True):
        past = curve.filter(pl.col("relative_error") > ONE_PERCENT)["deletions"]
        largest = curve["relative_error"].max()
        assert isinstance(largest, float)
        first = number(past[0], 0) if len(past) else "never"
        rows.append((str(order), str(rule), first, f"{largest:.1e}" if largest else "0 (exactly)"))
    header = ("deletions from", "rule", "deletions until the error passes 1 %", "largest relative error")
    caption = f"Deletions until the error passes 1 %; the paper says {DELETIONS_TO_ONE_PERCENT}"
    return Table(caption, header, rows)
