"""The search for the five parameters on a validation split, with Optuna. The future takes no part in it."""

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.evaluation.scores import score_users
from unbasket.evaluation.splits import Holdout, Split, all_users_split, hide_last_basket
from unbasket.evaluation.tifuknn import TifuKnn
from unbasket.params import Params

METRICS = ("recall", "precision", "hit_rate", "ndcg_paper", "ndcg_hu", "ndcg_standard")
_DIGITS = 3  # of decays and alpha: more would pretend to a precision that no validation has

Progress = Callable[[int, int], object]
"""Called with the trials done so far, and all of them."""


class MissingPackageError(UnbasketError, ImportError):
    """An optional package is not installed."""


@dataclass(frozen=True, slots=True)
class Tuning:
    """The best parameters so far, and how good they are on the validation split."""

    params: Params
    metric: str
    value: float
    trials: int
    users: int
    """Users whose hidden basket was predicted."""

    def line(self) -> str:
        """The parameters as a line of Python to paste."""
        tuned = {name: value for name, value in asdict(self.params).items() if name != "grouping"}
        return f"Params({', '.join(f'{name}={value}' for name, value in tuned.items())})"


def tune(
    history: pl.DataFrame,
    *,
    trials: int = 50,
    metric: str = "recall@10",
    start: Params | None = None,
    seed: int = 0,
    study: str | Path | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Search for the parameters that best predict each user's last basket from the ones before it.

    `start` is tried first, so the result is at least as good on the validation split. With a `study` file, the
    search can be interrupted: a second call goes on from the trials in the file, to the same result as an
    uninterrupted one, and stops when there are `trials` of them. The file holds parameters and scores, and the
    numbers of users, baskets and purchases to tell other data: nothing about any person.
    """
    if trials < 1:
        raise InvalidRequestError(f"trials must be at least 1, not {trials}")
    cutoff = _cutoff(metric)
    optuna = _optuna()
    data = hide_last_basket(history)
    split = all_users_split(*data)
    if split.queries.is_empty():
        raise InvalidRequestError("no user has two baskets or more, so there is none to hide and predict")
    space = _search_space(data.history)
    with _open_study(optuna, study, {"metric": metric, **_counts(history)}) as search:
        done = len(search.get_trials(states=[optuna.trial.TrialState.COMPLETE]))
        if done == 0:
            search.enqueue_trial(_within(space, start or Params()))
        for number in range(done, trials):
            # A sampler with its own seed for each trial: it draws the same whether the search was interrupted or not
            search.sampler = optuna.samplers.TPESampler(seed=seed + number)
            trial = search.ask(space)
            search.tell(trial, _score(data, split, _params(trial.params), metric, cutoff))
            if progress is not None:
                progress(number + 1, trials)
        best = search.best_trial
        return Tuning(_params(best.params), metric, best.value, max(done, trials), len(split.queries))


def _score(data: Holdout, split: Split, params: Params, metric: str, cutoff: int) -> float:
    rankings = TifuKnn(params)(data.history, split, cutoff)
    mean: Any = score_users(rankings, data.history, data.future, [cutoff])[metric].mean()
    return float(mean)


def _cutoff(metric: str) -> int:
    name, _, cutoff = metric.partition("@")
    if name not in METRICS or not cutoff.isdecimal() or int(cutoff) < 1:
        raise InvalidRequestError(f"metric must be one of {', '.join(METRICS)}, then @ and a number, not {metric!r}")
    return int(cutoff)


def _optuna() -> Any:
    """Imported when needed: it is optional, and takes a second to load."""
    try:
        optuna = importlib.import_module("optuna")
    except ImportError as error:
        raise MissingPackageError("tuning needs Optuna: pip install 'unbasket[tune]'") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # not a line per trial
    return optuna


def _search_space(history: pl.DataFrame) -> dict[str, Any]:
    """The ranges. Groups longer than any history, or more neighbors than there are users, change nothing."""
    distributions = importlib.import_module("optuna").distributions
    longest: Any = history.group_by("user").agg(pl.col("basket").n_unique())["basket"].max()
    others = max(1, history["user"].n_unique() - 1)
    return {
        "group_size": distributions.IntDistribution(1, min(30, longest)),
        "basket_decay": distributions.FloatDistribution(0.1, 1.0),
        "group_decay": distributions.FloatDistribution(0.1, 1.0),
        "neighbors": distributions.IntDistribution(min(10, others), min(2_000, others), log=True),
        "alpha": distributions.FloatDistribution(0.0, 1.0),
    }


def _within(space: dict[str, Any], params: Params) -> dict[str, Any]:
    """The parameters, moved into the ranges."""
    return {name: min(max(getattr(params, name), span.low), span.high) for name, span in space.items()}


def _params(drawn: dict[str, Any]) -> Params:
    return Params(**{name: round(value, _DIGITS) for name, value in drawn.items()})


def _counts(history: pl.DataFrame) -> dict[str, int]:
    return {
        "users": history["user"].n_unique(),
        "baskets": history.select("user", "basket").n_unique(),
        "purchases": len(history),
    }


@contextmanager
def _open_study(optuna: Any, path: str | Path | None, purpose: dict[str, Any]) -> Iterator[Any]:
    """The study in the file, or a new one; never one that was made for other data or another metric."""
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}") if path is not None else None
    except Exception as error:  # whatever SQLAlchemy and SQLite say of a file that is no study
        reason = str(error).splitlines()[0]
        raise InvalidRequestError(f"{path} cannot be used as a study file: {reason}") from error
    try:
        study = optuna.create_study(storage=storage, study_name="unbasket", direction="maximize", load_if_exists=True)
        found = study.user_attrs or purpose
        if found != purpose:
            raise InvalidRequestError(f"{path} is a study of {found}, not of {purpose}; give another study file")
        for name, value in purpose.items():
            study.set_user_attr(name, value)
        yield study
    finally:
        if storage is not None:
            storage.remove_session()
            storage.engine.dispose()
