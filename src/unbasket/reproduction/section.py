"""What a part contributes to the report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

Row = dict[str, Any]
"""One measurement: a name and a JSON value for each column of the part's CSV file."""


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table as people read it: text in cells."""

    caption: str
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """One part of the report: what was done, tables, and a figure."""

    notes: tuple[str, ...]
    tables: tuple[Table, ...]
    figure: Figure


def number(value: float | None, digits: int = 4) -> str:
    """A figure for a cell; a dash where there is none."""
    if value is None:
        return "–"
    return f"{value:,.{digits}f}"


def signed(value: float | None, digits: int = 4) -> str:
    """A difference for a cell."""
    return "–" if value is None else f"{value:+.{digits}f}"
