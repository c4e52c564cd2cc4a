"""The experiments: tables and figures, with the datasets of each."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from unbasket.reproduction import counts, drift, grouping, latency, table1, table2, updates
from unbasket.reproduction.section import Row, Section, StepProgress
from unbasket.reproduction.workloads import SINGLE_ITEM, Settings


@dataclass(frozen=True, slots=True)
class Experiment:
    """A table or a figure: `run` measures it on a dataset, `present` shows the rows of all datasets."""

    name: str
    title: str
    datasets: tuple[str, ...]
    quick: tuple[str, ...]
    """The datasets of a quick run."""
    run: Callable[[str, Settings, StepProgress], list[Row]]
    present: Callable[[pl.DataFrame], Section]


_PAPER = ("tafeng", "instacart", "valuedshopper")
_SINGLE = (SINGLE_ITEM,)
_STREAMS = (SINGLE_ITEM, "coop100")
DATASETS = (*_PAPER, "coop100", SINGLE_ITEM)

EXPERIMENTS = {
    each.name: each
    for each in (
        Experiment("table1", "Table 1: datasets and hyper-parameters",
                   _PAPER, _PAPER, table1.run, table1.present),
        Experiment("table2", "Table 2: predictive performance",
                   _PAPER, ("tafeng",), table2.run, table2.present),
        Experiment("counts", "Table 2 on ValuedShopper: sets against counts",
                   ("valuedshopper",), (), counts.run, counts.present),
        Experiment("figure-a", "Figure (a): update time under accumulated additions",
                   _STREAMS, _STREAMS, updates.run_additions, updates.present_additions),
        Experiment("figure-b", "Figure (b): update time under accumulated deletions",
                   _STREAMS, _STREAMS, updates.run_deletions, updates.present_deletions),
        Experiment("figure-c", "Figure (c): numeric error of repeated deletions",
                   _SINGLE, _SINGLE, drift.run, drift.present),
        Experiment("latency", "Latency, end to end",
                   ("coop100", *_PAPER), ("coop100", "tafeng"), latency.run, latency.present),
        Experiment("grouping", "Grouping policy after heavy deletion",
                   _PAPER, ("tafeng",), grouping.run, grouping.present),
    )
}  # fmt: skip
