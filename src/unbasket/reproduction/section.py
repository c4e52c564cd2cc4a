"""What a part contributes to the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.figure import Figure

Row = dict[str, Any]
"""One measurement: a name and a JSON value for each column of the part's CSV file."""

_FIGURES = frozenset("0123456789+-–<")


class Finding(NamedTuple):
    """A sentence for the head of the report. `holds` says how a check came out; None: there is nothing to check."""

    text: str
    holds: bool | None


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as people read it: text in cells."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]

    @property
    def text_columns(self) -> list[bool]:
        """Which columns hold words; the others, with a figure in any cell, are aligned at the right."""
        return [not any(cell[:1] in _FIGURES for cell in column) for column in zip(*self.rows, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One part of the report: what came out, how it was done, tables, and a figure."""

    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    figure: Figure


def number(value: float | None, digits: int = 4) -> str:
    """A figure for a cell; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}"


def signed(value: float, digits: int = 4) -> str:
    """A difference for a cell."""
    return f"{value:+.{digits}f}"


def spread(values: Sequence[float]) -> str:
    """The mean of several draws with the lowest and the highest of them; of one draw, its value.

    >>> spread([0.1, 0.2, 0.6]), spread([0.1])
    ('0.3000 [0.1000, 0.6000]', '0.1000')
    """
    mean = number(sum(values) / len(values))
    return mean if len(values) == 1 else f"{mean} [{number(min(values))}, {number(max(values))}]"


def p_value(p: float) -> str:
    """A probability for a cell.

    >>> p_value(0.0004), p_value(0.0304)
    ('< 0.001', '0.030')
    """
    return "< 0.001" if p < 0.001 else number(p, 3)
