"""The tables and figures, and the datasets that each is made on."""

from collections.abc import Callable
from dataclasses import dataclass

import polars as pl

from unbasket.reproduction import counts, drift, grouping, latency, table1, table2, updates
from unbasket.reproduction.progress import Watch
from unbasket.reproduction.section import Row, Section
from unbasket.reproduction.settings import Settings
from unbasket.reproduction.workloads import SINGLE_ITEM


@dataclass(frozen=True, slots=True)
class Part:
    """A table or a figure: how it is measured on a dataset, and how all its rows are shown."""

    name: str
    title: str
    datasets: tuple[str, ...]
    quick: tuple[str, ...]
    """The datasets of a quick run."""
    run: Callable[[str, Settings, Watch], list[Row]]
    present: Callable[[pl.DataFrame], Section]


_PAPER = ("tafeng", "instacart", "valuedshopper")
_STREAMS = (SINGLE_ITEM, "coop100")
DATASETS = (*_PAPER, "coop100", SINGLE_ITEM)

PARTS = {
    part.name: part
    for part in (
        Part("table1", "Table 1: datasets and hyper-parameters", _PAPER, _PAPER, table1.run, table1.present),
        Part("table2", "Table 2: predictive performance", _PAPER, ("tafeng",), table2.run, table2.present),
        Part(
            "counts",
            "Table 2 on ValuedShopper: sets against counts",
            ("valuedshopper",),
            (),
            counts.run,
            counts.present,
        ),
        Part(
            "figure-a",
            "Figure (a): update time under accumulated additions",
            _STREAMS,
            _STREAMS,
            updates.run_additions,
            updates.present_additions,
        ),
        Part(
            "figure-b",
            "Figure (b): update time under accumulated deletions",
            _STREAMS,
            _STREAMS,
            updates.run_deletions,
            updates.present_deletions,
        ),
        Part(
            "figure-c",
            "Figure (c): numeric error of repeated deletions",
            (SINGLE_ITEM,),
            (SINGLE_ITEM,),
            drift.run,
            drift.present,
        ),
        Part(
            "latency",
            "Latency, end to end",
            ("coop100", *_PAPER),
            ("coop100", "tafeng"),
            latency.run,
            latency.present,
        ),
        Part(
            "grouping",
            "Grouping policy after heavy deletion",
            _PAPER,
            ("tafeng",),
            grouping.run,
            grouping.present,
        ),
    )
}
