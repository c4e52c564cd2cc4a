"""`unbasket tune`: the best parameters for a shop's data."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli.data import Data, Reading, read_data
from unbasket.cli.options import with_options
from unbasket.cli.progress import progress_bar
from unbasket.cli.terminal import AsJson, say, say_json
from unbasket.datasets import hold_out_last
from unbasket.evaluation.tuning import METRICS
from unbasket.evaluation.tuning import tune as search
from unbasket.params import Params


@with_options(reading=Reading)
def tune(
    data: Data,
    reading: Reading,
    trials: Annotated[int, typer.Option(help="How many trials the study has in the end.")] = 50,
    metric: Annotated[
        str, typer.Option(help=f"What to maximize: {', '.join(METRICS)}, each with @ and a number of items.")
    ] = "recall@10",
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials in this file (SQLite), so that an interrupted search can continue. "
            "It holds parameters and scores, no personal data.",
        ),
    ] = None,
    pool: Annotated[
        int | None, typer.Option(help="Look for neighbors among so many users only; by default, among all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds find equal parameters.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Search for the five parameters that best predict baskets hidden for validation.

    The basket that `unbasket evaluate` predicts is not used: the one before it is hidden for validation.
    """
    dataset = read_data(data, reading)
    if dataset.future is None:
        dataset = hold_out_last(dataset)  # evaluate will predict these: they stay unseen
    with progress_bar("trials") as report:
        tuning = search(
            dataset.history,
            trials=trials,
            metric=metric,
            start=replace(dataset.params or Params(), pool=pool),
            seed=seed,
            study=study,
            progress=report,
        )
    if as_json:
        say_json(asdict(tuning))
        return
    first, *others = str(tuning).splitlines()
    for line in (f"{dataset.name}: {first}", *others):
        say(line)
