"""The two calls that most people need: `unbasket.evaluate` and `unbasket.tune`."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from unbasket.domain.frames import read_purchases
from unbasket.errors import InvalidRequestError
from unbasket.evaluation import tifuknn, tuning
from unbasket.evaluation.baselines import BASELINES
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.protocols import PROTOCOLS
from unbasket.evaluation.splits import Holdout, hide_last_basket
from unbasket.evaluation.tuning import Tuning
from unbasket.evaluation.waiting import progress_line
from unbasket.params import Params


def evaluate(
    data: Any,
    params: Params | None = None,
    *,
    protocol: str = "all-users",
    baselines: Collection[str] = tuple(BASELINES),
    cutoffs: Sequence[int] = (10, 20),
    user: str = "user",
    basket: str = "basket",
    item: str = "item",
    time: str | None = None,
) -> Evaluation:
    """How well the model, and simple baselines, predict each user's next basket.

    `data` is a dataset (`unbasket.datasets.load`), or any frame that `fit` takes, with columns of the given names.
    Where it has no future, each user's last basket is hidden and predicted. `params` are the dataset's own by default,
    else `Params()`. The result shows itself in a notebook, and has `plot()` and `frame()`.

    >>> import unbasket as ub
    >>> evaluation = ub.evaluate(ub.datasets.generate(users=200, seed=1), baselines=["GP-TopFreq"], cutoffs=[10])
    >>> evaluation.frame().filter(metric="recall@10").select("model", "users").rows()
    [('TIFU-kNN', 198), ('GP-TopFreq', 198)]
    """
    if protocol not in PROTOCOLS:
        raise InvalidRequestError(f"protocol must be one of {', '.join(PROTOCOLS)}, not {protocol!r}")
    holdout = _holdout(data, user, basket, item, time)
    with progress_line("evaluating users") as progress:
        evaluation = tifuknn.evaluate(
            holdout,
            params or getattr(data, "params", None) or Params(),
            PROTOCOLS[protocol],
            baselines=list(baselines),
            cutoffs=cutoffs,
            progress=progress,
        )
        _ = evaluation.means  # computed here, while the progress is shown
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

    `data` is as for `evaluate`, and the basket that `evaluate` predicts takes no part: each user's last basket before
    it is hidden and predicted. So `evaluate(data, tune(data).params)` is an honest figure. `start`, by default the
    dataset's own parameters, is tried first. With a `study` file, an interrupted search can go on.
    """
    holdout = _holdout(data, user, basket, item, time)
    with progress_line(f"trials for {metric}") as progress:
        return tuning.tune(
            holdout.history,
            trials=trials,
            metric=metric,
            start=start or getattr(data, "params", None),
            seed=seed,
            study=study,
            progress=progress,
        )


def _holdout(data: Any, user: str, basket: str, item: str, time: str | None) -> Holdout:
    """A history and what comes next, of a dataset or a frame."""
    if hasattr(data, "history") and hasattr(data, "future"):
        return Holdout(data.history, data.future) if data.future is not None else hide_last_basket(data.history)
    return hide_last_basket(read_purchases(data, user=user, basket=basket, item=item, time=time))
