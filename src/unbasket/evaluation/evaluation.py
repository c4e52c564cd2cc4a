"""The result of an evaluation: a row of scores per user, and their means."""

from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from unbasket.domain._repr_html import html_table
from unbasket.errors import import_optional
from unbasket.evaluation.metrics import LIST_METRICS
from unbasket.evaluation.protocols import EvaluationProtocol, Split
from unbasket.evaluation.statistics import Comparison, MeanInterval, bootstrap_mean, bootstrap_means, compare_paired
from unbasket.params import Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Means = dict[str, dict[str, MeanInterval | None]]
NOTE = "Means over users; ± is half the width of the 95 % bootstrap interval."


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """The scores of models on the same users, in the same order."""

    protocol: EvaluationProtocol
    params: Params
    splits: tuple[Split, ...]
    """The query users, all of them scored, and the candidates for neighbors; several with several keysets."""
    scores: dict[str, pl.DataFrame]
    """Model -> a row per user, a column per metric, as `score_users` names them."""
    cutoffs: tuple[int, ...]
    own_metrics: tuple[str, ...] = ()
    """The names of the caller's own metrics."""

    @property
    def split(self) -> Split:
        """The split; with several keysets, the query users one after the other, and the candidates of any of them."""
        queries = pl.concat([split.queries for split in self.splits])
        candidates = pl.concat([split.candidates for split in self.splits]).unique().sort()
        return Split(queries, candidates)

    def values(self, model: str, metric: str) -> pl.Series:
        """Return a model's value for each user, null where there is none, such that their mean is that of the metric.

        With several keysets, the mean over keysets counts each keyset once, whatever the number of its users.
        """
        scores = self.scores[model]
        if len(self.splits) == 1:
            return scores[metric]
        value = pl.col(metric)
        weight = value.count() / (len(self.splits) * value.count().over("keyset"))
        return scores.select(value * weight)[metric]

    def mean(self, model: str, metric: str) -> MeanInterval | None:
        """Return a model's mean over users with its interval, or None if no user has a value."""
        values = self.values(model, metric).drop_nulls()
        return bootstrap_mean(values) if len(values) else None

    def compare(self, first: str, second: str, metric: str) -> Comparison:
        """Compare two models by a metric."""
        return compare_paired(self.values(first, metric), self.values(second, metric))

    @property
    def metrics(self) -> list[str]:
        """The headline metrics: NDCG in the protocol's own form only; then those of lists, then the caller's own."""
        scored = next(iter(self.scores.values())).columns
        lists = [name for name in LIST_METRICS if f"{name}@{self.cutoffs[0]}" in scored]
        return [f"{name}@{n}" for n in self.cutoffs for name in (*self._accuracy, *lists, *self.own_metrics)]

    @property
    def accuracy(self) -> list[list[str]]:
        """The metrics of accuracy for each cutoff, all of them shares."""
        return [[f"{name}@{n}" for name in self._accuracy] for n in self.cutoffs]

    @property
    def _accuracy(self) -> tuple[str, ...]:
        return ("recall", f"ndcg_{self.protocol.ndcg}", "hit_rate", "repeat_recall", "explore_recall")

    @cached_property
    def means(self) -> Means:
        """The `mean` of each model and headline metric, computed together: much quicker than one by one."""
        means: Means = {model: dict.fromkeys(self.metrics) for model in self.scores}
        same_users: dict[bytes, list[tuple[str, str]]] = defaultdict(list)
        for model, scores in self.scores.items():
            for metric in self.metrics:
                same_users[scores[metric].is_null().to_numpy().tobytes()].append((model, metric))
        for pairs in same_users.values():  # one draw of users serves all of their metrics
            columns = [self.values(model, metric).drop_nulls().to_numpy() for model, metric in pairs]
            if len(columns[0]):
                for (model, metric), mean in zip(pairs, bootstrap_means(columns), strict=True):
                    means[model][metric] = mean
        return means

    def frame(self) -> pl.DataFrame:
        """Return the means as a frame: model, metric, mean, low, high, users; null where a metric has no mean."""
        rows = [
            (model, metric, *((mean.mean, mean.low, mean.high, mean.users) if mean else [None] * 4))
            for model, row in self.means.items()
            for metric, mean in row.items()
        ]
        return pl.DataFrame(rows, ["model", "metric", "mean", "low", "high", "users"], orient="row")

    def plot(self) -> "Figure":
        """Draw the means as bars with their intervals. Needs Matplotlib."""
        plots = import_optional("unbasket.evaluation.plots", "plots need Matplotlib", "plot")
        figure: Figure = plots.draw_evaluation(self)
        return figure

    def title(self) -> str:
        """Return one line with the protocol and the numbers of users."""
        queries = sum(len(split.queries) for split in self.splits)
        candidates = sum(len(split.candidates) for split in self.splits) // len(self.splits)
        among = f"{candidates:,}"
        if self.params.pool is not None and self.params.pool < candidates:
            among = f"a pool of {self.params.pool:,} of {among}"
        keysets = f", mean over {len(self.splits)} keysets" if len(self.splits) > 1 else ""
        users = f"{queries:,} user{'s' * (queries != 1)}"
        return f"Protocol {self.protocol.name}{keysets}: {users}, neighbors among {among}"

    def rows(self) -> list[list[str]]:
        """Return the means as text: a row per metric, its name first, then a cell per model."""
        return [[metric, *(_cell(means[metric]) for means in self.means.values())] for metric in self.metrics]

    def __repr__(self) -> str:
        table = [["", *self.means], *self.rows()]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
            for row in table
        ]
        return "\n".join([self.title(), str(self.params), "", *lines, "", NOTE])

    def _repr_html_(self) -> str:
        return html_table(self.title(), ["", *self.means], self.rows(), note=f"{self.params}. {NOTE}")


def _cell(mean: MeanInterval | None) -> str:
    if mean is None:
        return "-"
    half = f"{(mean.high - mean.low) / 2:.4f}".removeprefix("0")  # four models fit into 80 columns
    return f"{mean.mean:.4f}"[:6] + f" ±{half}"  # 10.25 bits of novelty have no fourth digit
