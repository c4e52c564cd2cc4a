"""`unbasket reproduce`: the paper's tables and figures beside this engine's."""

from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from unbasket.cli._shared.terminal import console, errors, needing

_REFRESH = 0.1  # seconds between two updates of a bar


def reproduce(
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Experiment; may be repeated: table1, table2, counts, figure-a, figure-b, figure-c, latency, grouping."
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(help="A dataset; may be repeated: tafeng, instacart, valuedshopper, coop100, single-item."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small run of under two minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the report; a run continues what is in it.")] = Path(
        "reproduction"
    ),
    seed: Annotated[int, typer.Option(help="Decides which users and baskets are drawn at random.")] = 0,
) -> None:
    """Reproduce the paper's evaluation: report.html, and every table and figure as CSV, LaTeX, SVG and PNG."""
    with needing("reproduce"):
        from unbasket import reproduction
    settings = reproduction.quick_settings(seed) if quick else reproduction.Settings(seed=seed)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    hidden = not errors.is_terminal  # else Rich leaves a blank line
    with Progress(*columns, console=errors, transient=True, disable=hidden) as progress:
        path = reproduction.reproduce(out, settings, _Bars(progress), only=only or (), datasets=dataset or ())
    console.print(f"Report: {path}", soft_wrap=True)


class _Bars:
    """One progress bar for all tasks, and one for the steps of the current task."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._all = progress.add_task("all", total=None)
        self._current = progress.add_task("")
        self._shown = 0.0

    def missing(self, dataset: str, reason: str) -> None:
        self._progress.console.print(f"{dataset} is left out: {reason}", soft_wrap=True)

    def task(self, number: int, total: int, part: str, dataset: str, *, stored: bool) -> None:
        self._progress.update(self._all, completed=number - 1, total=total)
        self._progress.console.print(f"{number}/{total} {part}, {dataset}{': stored already' if stored else ''}")

    def step(self, what: str, done: int, total: int) -> None:
        """Move the second bar, at most every `_REFRESH` seconds."""
        if done == total or monotonic() - self._shown > _REFRESH:
            self._progress.update(self._current, description=what, completed=done, total=total)
            self._shown = monotonic()
