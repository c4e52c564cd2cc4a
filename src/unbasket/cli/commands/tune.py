"""`unbasket tune`: the best parameters for a shop's data."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import polars as pl
import typer

from unbasket.cli._shared.database import open_to_read, open_to_write
from unbasket.cli._shared.options import with_options
from unbasket.cli._shared.purchase_files import PURCHASES_HELP, ReadingOptions, read_data
from unbasket.cli._shared.terminal import AsJson, progress_bar, say, say_json
from unbasket.datasets import Dataset, hold_out_last
from unbasket.errors import InvalidRequestError
from unbasket.evaluation import PROTOCOLS, Comparison, Holdout, compare_paired
from unbasket.evaluation.metrics import METRICS
from unbasket.evaluation.tifuknn import TIFUKNN
from unbasket.evaluation.tifuknn import evaluate as evaluate_models
from unbasket.evaluation.tuning import Tuning
from unbasket.evaluation.tuning import tune as search
from unbasket.params import Params
from unbasket.store import DurableRecommender


@with_options(reading=ReadingOptions)
def tune(
    reading: ReadingOptions,
    data: Annotated[str | None, typer.Argument(help=PURCHASES_HELP)] = None,
    db: Annotated[
        Path | None,
        typer.Option("--db", metavar="FILE", help="Tune on the baskets of this database instead.", dir_okay=False),
    ] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="With --db: ask whether to give its model the parameters found.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --apply: don't ask, if they are better.")] = False,
    trials: Annotated[int, typer.Option(help="Number of trials that the study has in the end.")] = 50,
    metric: Annotated[
        str, typer.Option(help=f"What to maximize: {', '.join(METRICS)}, each with @ and a number of items.")
    ] = "recall@10",
    study: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Keep the trials in this file (SQLite), to continue an interrupted search. It holds parameters and "
            "scores, no personal data.",
        ),
    ] = None,
    pool: Annotated[
        int | None, typer.Option(help="Look for neighbors in a sample of this size; by default, among all users.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Equal seeds find equal parameters.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Search for the five parameters that best predict baskets hidden for validation.

    The basket that `unbasket evaluate` predicts is not used: the one before it is hidden for validation. With --db,
    each user's last basket is kept for a comparison with the database's own parameters.
    """
    if (data is None) == (db is None):
        raise InvalidRequestError("tune needs DATA, or else --db with a database")
    if apply and db is None:
        raise InvalidRequestError("--apply is for a database: name it with --db")
    dataset = read_data(data, reading) if data is not None else None
    if db is not None:
        dataset = _shop(open_to_read(db), db.name)
    assert dataset is not None, "one of the two"
    if dataset.future is None:
        dataset = hold_out_last(dataset)  # evaluate will predict these: they stay unseen
    start = dataset.params or Params()
    with progress_bar("trials") as report:
        tuning = search(
            dataset.history,
            trials=trials,
            metric=metric,
            start=start if pool is None else replace(start, pool=pool),
            seed=seed,
            study=study,
            progress=report,
        )
    gain = None if db is None else _gain(dataset, tuning, start)
    _show(dataset.name, tuning, gain, as_json=as_json)
    if apply and db is not None and gain is not None:
        _apply(db, tuning, gain, yes=yes)


def _shop(rec: DurableRecommender, name: str) -> Dataset:
    """Return the baskets of a database with numbers as ids, since ids of both types do not fit into one column."""
    items = {item: number for number, item in enumerate(rec.items())}
    histories = [rec.history(user) for user in rec.users()]
    baskets = [(user, basket) for user, history in enumerate(histories) for basket in history]
    rows = [
        (user, number, items[item], number) for number, (user, basket) in enumerate(baskets) for item in basket.items
    ]
    columns = ["user", "basket", "item", "time"]
    return Dataset(name, pl.DataFrame(rows, dict.fromkeys(columns, pl.Int64), orient="row"), params=rec.params)


class _Gain(NamedTuple):
    """The advantage of the parameters found, on baskets that took no part in the search."""

    metric: str
    comparison: Comparison

    def line(self) -> str:
        return f"{self.metric} of each user's last basket, tuned - the database's own: {self.comparison}"


def _gain(dataset: Dataset, tuning: Tuning, own: Params) -> _Gain:
    assert dataset.future is not None, "held out"
    data, cutoff = Holdout(dataset.history, dataset.future), int(tuning.metric.partition("@")[2])
    with progress_bar("comparing"):
        tuned, before = (
            evaluate_models(data, params, PROTOCOLS["all-users"], cutoffs=[cutoff]).scores[TIFUKNN][tuning.metric]
            for params in (_merged(own, tuning), own)
        )
        return _Gain(tuning.metric, compare_paired(tuned, before))


def _merged(own: Params, tuning: Tuning) -> Params:
    """Return the parameters found with the other parameters of the model."""
    return replace(tuning.params, grouping=own.grouping, pool=own.pool, pool_seed=own.pool_seed)


def _show(name: str, tuning: Tuning, gain: _Gain | None, *, as_json: bool) -> None:
    if as_json:
        found: dict[str, Any] = asdict(tuning)
        say_json(found if gain is None else found | {"gain": asdict(gain.comparison)})
        return
    first, *others = str(tuning).splitlines()
    for line in (f"{name}: {first}", *others, *([] if gain is None else [gain.line()])):
        say(line)


def _apply(db: Path, tuning: Tuning, gain: _Gain, *, yes: bool) -> None:
    if gain.comparison.difference.mean <= 0:
        say(f"{db} keeps its parameters: they are at least as good")
        return
    if not yes:
        typer.confirm(f"Shall {db} have these parameters?", abort=True)
    with open_to_write(db) as rec, progress_bar("rebuilding the model") as report:
        rec.change_params(_merged(rec.params, tuning), progress=report)
    say(f"{db} has these parameters now")
