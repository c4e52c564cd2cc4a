"""An experiment, and its output: progress, rows, and a section of the report."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import polars as pl
from matplotlib.figure import Figure

from unbasket.reproduction.workloads import Settings

StepProgress = Callable[[str, int, int], object]
"""A callback that gets a description of the step, the number of units done, and their total."""

Row = dict[str, Any]
"""One measurement: a name and a JSON value for each column of the experiment's CSV file."""

_NUMERIC_STARTS = frozenset("0123456789+-–<")


class Finding(NamedTuple):
    """A sentence at the top of the report. `holds` is the outcome of a check, or None without a check."""

    text: str
    holds: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table with formatted text in its cells."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    @property
    def text_columns(self) -> list[bool]:
        """Whether each column holds words; a column with a number in any cell is right-aligned."""
        return [not any(cell[:1] in _NUMERIC_STARTS for cell in column) for column in zip(*self.rows, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """The section of one experiment: findings, notes on the method, tables, and a figure."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    figure: Figure


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


def number(value: float | None, digits: int = 4) -> str:
    """Format a number for a cell; None becomes a dash."""
    return "–" if value is None else f"{value:,.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """Format a difference for a cell."""
    return f"{value:+.{digits}f}"


def spread(values: Sequence[float]) -> str:
    """Format the mean of several draws with their minimum and maximum, or the value of a single draw.

    >>> spread([0.1, 0.2, 0.6]), spread([0.1])
    ('0.3000 [0.1000, 0.6000]', '0.1000')
    """
    mean = number(sum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} [{number(min(values))}, {number(max(values))}]"


def p_value(p: float) -> str:
    """Format a probability for a cell.

    >>> p_value(0.0004), p_value(0.0304)
    ('< 0.001', '0.030')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)
