"""The public entry points `unbasket.evaluate` and `unbasket.tune`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
from rich import progress as bars
from rich.console import Console

from unbasket.domain.frames import read_purchases
from unbasket.domain.results import Progress
from unbasket.evaluation import tifuknn, tuning
from unbasket.evaluation.baselines import BASELINES
from unbasket.evaluation.categories import read_categories
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.keysets import named_protocols, read_keysets
from unbasket.evaluation.metrics import UserMetric
from unbasket.evaluation.protocols import Holdout, hide_last_basket
from unbasket.evaluation.tuning import Tuning
from unbasket.params import Params


def evaluate(
    data: Any,
    params: Params | None = None,
    *,
    protocol: str = "all-users",
    keyset: Any = None,
    baselines: Collection[str] = tuple(BASELINES),
    models: Mapping[str, Any] | None = None,
    metrics: Mapping[str, UserMetric] | None = None,
    categories: Any = None,
    cutoffs: Sequence[int] = (10, 20),
    user: str = "user",
    basket: str = "basket",
    item: str = "item",
    time: str | None = None,
) -> Evaluation:
    """Measure how well the model, simple baselines and models of your own predict each user's next basket.

    `data` is a dataset (`unbasket.datasets.load`) or any frame that `fit` accepts, with columns of the given names.
    If it has no future, each user's last basket is hidden and predicted. `params` default to the dataset's own, then
    to `Params()`. The result has `plot()` and `frame()`, and a display for notebooks.

    `models` are your own, by name: anything with `fit(frame)` and `recommend(user, n)`, or a function (history, split,
    n) that returns a list of items for each user of `split.queries`. `metrics` are your own, by name: functions of (the
    first n items, the next basket, all that the user has bought). `baselines` may also name "UP-CF@r" and "TREx
    repetition". The protocols "reality-check" and "uva" need a `keyset`, a JSON file with the lists train, val and test
    of users, or several of them, whose mean is reported. `categories` (a JSON file or a mapping from categories to
    items; by default, those of the dataset) add the diversity of categories.

    >>> import unbasket as ub
    >>> evaluation = ub.evaluate(ub.datasets.generate(users=200, seed=1), baselines=["GP-TopFreq"], cutoffs=[10])
    >>> evaluation.frame().filter(metric="recall@10").select("model", "users").rows()
    [('TIFU-kNN', 198), ('GP-TopFreq', 198)]
    """
    protocols = named_protocols(protocol, read_keysets(keyset))
    holdout = _holdout(data, user, basket, item, time)
    with _progress_bar("evaluating users") as progress:
        evaluation = tifuknn.evaluate(
            holdout,
            params or getattr(data, "params", None) or Params(),
            protocols,
            baselines=list(baselines),
            models=models,
            metrics=metrics,
            categories=_categories(categories, data, holdout),
            cutoffs=cutoffs,
            progress=progress,
        )
        _ = evaluation.means  # computed here, while the progress bar is shown
    return evaluation


def tune(
    data: Any,
    *,
    trials: int = 50,
    metric: str = "recall@10",
    start: Params | None = None,
    seed: int = 0,
    study: str | Path | None = None,
    user: str = "user",
    basket: str = "basket",
    item: str = "item",
    time: str | None = None,
) -> Tuning:
    """Search for the parameters that predict best. Needs Optuna.

    `data` is as for `evaluate`. The search never sees the basket that `evaluate` predicts: it hides and predicts each
    user's last basket before that one, so `evaluate(data, tune(data).params)` is an honest figure. The first trial is
    `start`, by default the dataset's own parameters. With a `study` file, an interrupted search can be resumed.
    """
    holdout = _holdout(data, user, basket, item, time)
    with _progress_bar(f"trials for {metric}") as progress:
        return tuning.tune(
            holdout.history,
            trials=trials,
            metric=metric,
            start=start or getattr(data, "params", None),
            seed=seed,
            study=study,
            progress=progress,
        )


def _categories(given: Any, data: Any, holdout: Holdout) -> pl.DataFrame | None:
    """Return the categories that were given, or else those of the dataset, if any."""
    catalog = getattr(data, "items", None)  # of a dataset; that of a pandas frame is a method
    source = catalog if given is None and isinstance(catalog, pl.DataFrame) else given
    return None if source is None else read_categories(source, holdout.history.schema["item"])


def _holdout(data: Any, user: str, basket: str, item: str, time: str | None) -> Holdout:
    if hasattr(data, "history") and hasattr(data, "future"):
        return Holdout(data.history, data.future) if data.future is not None else hide_last_basket(data.history)
    return hide_last_basket(read_purchases(data, user=user, basket=basket, item=item, time=time))


@contextmanager
def _progress_bar(description: str) -> Iterator[Progress]:
    """Show a progress bar in a terminal or a notebook, and remove it at the end.

    In a notebook, Rich needs ipywidgets; without them it would warn, so no bar is shown.
    """
    console = Console(stderr=True)
    shown = find_spec("ipywidgets") is not None if console.is_jupyter else console.is_terminal
    columns = (bars.TextColumn("{task.description}"), bars.BarColumn(), bars.MofNCompleteColumn())
    with bars.Progress(*columns, console=console, transient=True, disable=not shown) as progress:
        task = progress.add_task(description, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
