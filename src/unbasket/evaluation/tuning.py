"""The search for the parameters on a validation split, with Optuna. It never sees the future."""

import importlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from unbasket.domain._repr_html import html_table
from unbasket.domain.results import Progress
from unbasket.errors import InvalidRequestError, import_optional
from unbasket.evaluation.metrics import METRICS, score_users
from unbasket.evaluation.protocols import Holdout, Split, all_users_split, hide_last_basket
from unbasket.evaluation.tifuknn import TifuKnn
from unbasket.params import LEARNED, Params

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_DIGITS = 3  # of decays and alpha: more would pretend to a precision that no validation has
_NAMES = ("group_size", "basket_decay", "group_decay", "neighbors", "alpha")
_SHOWN_TRIALS = 5  # in a notebook


@dataclass(frozen=True, slots=True)
class Trial:
    """Parameters and their score on the validation split."""

    params: Params
    value: float


@dataclass(frozen=True, slots=True, repr=False)
class Tuning:
    """The best parameters found, and their score on the validation split."""

    params: Params
    metric: str
    value: float
    trials: int
    users: int
    """Users whose hidden basket was predicted."""
    tried: tuple[Trial, ...]
    """All trials, in order."""

    def line(self) -> str:
        """Return the parameters as a line of Python."""
        given = _tuned(self.params) | _shared(self.params)
        return f"Params({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    def frame(self) -> pl.DataFrame:
        """Return all trials as a frame: trial (from 1), value, and a column per parameter; a learned alpha is null."""
        rows = [{"trial": i, "value": trial.value} | _tuned(trial.params) for i, trial in enumerate(self.tried, 1)]
        numbers = [row | {"alpha": None if row["alpha"] == LEARNED else row["alpha"]} for row in rows]
        return pl.DataFrame(numbers, schema_overrides={"alpha": pl.Float64})

    def plot(self) -> "Figure":
        """Plot the metric by trial and against each parameter. Needs Matplotlib."""
        plots = import_optional("unbasket.evaluation.plots", "plots need Matplotlib", "plot")
        figure: Figure = plots.draw_tuning(self)
        return figure

    def title(self) -> str:
        """Return one line with the best score, the users and the trials."""
        users = f"{self.users:,} user{'s' * (self.users != 1)}"
        trials = f"{self.trials} trial{'s' * (self.trials != 1)}"
        return f"{self.metric} {self.value:.4f} on the validation baskets of {users}, the best of {trials}"

    def __repr__(self) -> str:
        return f"{self.title()}:\n{self.line()}"

    def _repr_html_(self) -> str:
        best = self.frame().sort("value", "trial", descending=[True, False]).head(_SHOWN_TRIALS)
        rows = [[f"{value:.4f}" if name == "value" else str(value) for name, value in row.items()]
                for row in best.iter_rows(named=True)]  # fmt: skip
        header = [self.metric if name == "value" else name for name in best.columns]
        return html_table(self.title(), header, rows, note=self.line())


def _tuned(params: Params) -> dict[str, Any]:
    return {name: getattr(params, name) for name in _NAMES}


def _shared(params: Params) -> dict[str, Any]:
    """Return the settings that all trials share, where they are not the defaults: grouping, pool, `repurchase`."""
    usual = Params()
    shared = {name: getattr(params, name) for name in ("grouping", "pool", "pool_seed")}
    if params.alpha == LEARNED:
        shared["repurchase"] = params.repurchase
    return {name: value for name, value in shared.items() if value != getattr(usual, name)}


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

    A trial has a number for alpha, or learns it. `start` is tried first, so the result is at least as good on the
    validation split; all trials share its grouping and pool, and those that learn alpha its `repurchase`. With a
    `study` file, an interrupted search can be resumed: it continues after the trials in the file, stops at `trials` of
    them, and ends with the same result as an uninterrupted search. The file holds parameters, scores, and the numbers
    of users, baskets and purchases that identify the data, but no personal data. `progress` is called with the
    numbers of trials done and in total.
    """
    if trials < 1:
        raise InvalidRequestError(f"trials must be at least 1, not {trials}")
    cutoff = _cutoff(metric)
    optuna = _optuna()
    data = hide_last_basket(history)
    split = all_users_split(*data)
    if split.queries.is_empty():
        raise InvalidRequestError("no user has two baskets or more, so there is no basket to hide and predict")
    start = start or Params()
    space, shared = _search_space(data.history, start), _shared(start)
    with _open_study(optuna, study, {"metric": metric, **_counts(history), **shared}) as search:
        done = len(search.get_trials(states=[optuna.trial.TrialState.COMPLETE]))
        if done == 0:
            search.enqueue_trial(_clipped(space, start))
        for number in range(done, trials):
            # Each trial has a sampler with its own seed, so a resumed search draws the same parameters.
            search.sampler = optuna.samplers.TPESampler(seed=seed + number)
            trial = search.ask(space)
            search.tell(trial, _score(data, split, _params(trial.params, shared), metric, cutoff))
            if progress is not None:
                progress(number + 1, trials)
        best = search.best_trial
        complete = search.get_trials(states=[optuna.trial.TrialState.COMPLETE])
        tried = tuple(Trial(_params(trial.params, shared), trial.value) for trial in complete)
        return Tuning(_params(best.params, shared), metric, best.value, max(done, trials), len(split.queries), tried)


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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "IProgress not found")  # about a notebook progress bar that is not used here
        optuna = import_optional("optuna", "tuning needs Optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.WARNING)  # instead of a line per trial
    return optuna


def _search_space(history: pl.DataFrame, start: Params) -> dict[str, Any]:
    """Return the ranges. Groups longer than any history, or more neighbors than users, would change nothing."""
    distributions = importlib.import_module("optuna").distributions
    longest: Any = history.group_by("user").agg(pl.col("basket").n_unique())["basket"].max()
    others = max(1, history["user"].n_unique() - 1)
    others = others if start.pool is None else min(others, start.pool)
    return {
        "learned": distributions.CategoricalDistribution([True, False] if start.grouping == "fixed" else [False]),
        "group_size": distributions.IntDistribution(1, min(30, longest)),
        "basket_decay": distributions.FloatDistribution(0.1, 1.0),
        "group_decay": distributions.FloatDistribution(0.1, 1.0),
        "neighbors": distributions.IntDistribution(min(10, others), min(2_000, others), log=True),
        "alpha": distributions.FloatDistribution(0.0, 1.0),
    }


def _clipped(space: dict[str, Any], params: Params) -> dict[str, Any]:
    """Return the parameters as values of the space; a learned alpha is any number, which `_params` ignores."""
    learned = params.alpha == LEARNED
    numbers = _tuned(params) | ({"alpha": 0.5} if learned else {})
    return {"learned": learned} | {
        name: min(max(value, space[name].low), space[name].high) for name, value in numbers.items()
    }


def _params(drawn: dict[str, Any], shared: dict[str, Any]) -> Params:
    """Return the parameters of a trial. Groups of a learned alpha have one basket, so `basket_decay` has no effect."""
    numbers = {name: round(drawn[name], _DIGITS) for name in _NAMES}
    if drawn.get("learned", False):
        numbers = {name: numbers[name] for name in ("group_decay", "neighbors")}
    return Params(**numbers, **shared)


def _counts(history: pl.DataFrame) -> dict[str, int]:
    return {
        "users": history["user"].n_unique(),
        "baskets": history.select("user", "basket").n_unique(),
        "purchases": len(history),
    }


@contextmanager
def _open_study(optuna: Any, path: str | Path | None, purpose: dict[str, Any]) -> Iterator[Any]:
    """Open the study in the file or create one; refuse a study of other data or another metric."""
    try:
        storage = optuna.storages.RDBStorage(f"sqlite:///{path}") if path is not None else None
    except Exception as error:  # SQLAlchemy and SQLite raise many types for a file that is not a study
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
