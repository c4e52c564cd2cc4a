"""TIFU-kNN as a ranker, evaluated beside the baselines."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from unbasket.domain.ids import Id
from unbasket.domain.results import Progress, Recommendation
from unbasket.engine.model import Model
from unbasket.engine.ports import InMemoryJournal
from unbasket.engine.recommender import Recommender
from unbasket.engine.state import PoolPriorities
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.baselines import BASELINES, Ranker
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.field_baselines import FIELD_BASELINES
from unbasket.evaluation.histories import baskets_of, of_users
from unbasket.evaluation.metrics import Scorer, UserMetric
from unbasket.evaluation.models import SteppedRanker, rank_with, ranker_of
from unbasket.evaluation.protocols import EvaluationProtocol, Holdout, Split, first_of_twins
from unbasket.params import LEARNED, Params

TIFUKNN = "TIFU-kNN"


@dataclass(frozen=True, slots=True)
class TifuKnn:
    """The engine as a ranker. It averages exactly `params.neighbors` other users."""

    params: Params

    def __call__(self, history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
        return rank(fit_candidates(history, split, self.params), history, split, n)


def evaluate(
    data: Holdout,
    params: Params,
    protocol: EvaluationProtocol | Sequence[EvaluationProtocol],
    *,
    baselines: Sequence[str] = (),
    models: Mapping[str, Any] | None = None,
    metrics: Mapping[str, UserMetric] | None = None,
    categories: pl.DataFrame | None = None,
    cutoffs: Sequence[int] = (10, 20),
    progress: Progress | None = None,
) -> Evaluation:
    """Score TIFU-kNN, the named baselines and the caller's models under a protocol, on the query users of its split.

    Several protocols are one with several keysets (`named_protocols`). `params.neighbors` is the published k: the
    protocol decides how many other users are averaged. `models` are as for `ranker_of`, `metrics` and `categories` as
    for `score_users`. `progress` is called with the numbers of lists done and in total: one per query user and model,
    where simple baselines take no time.
    """
    protocols = [protocol] if isinstance(protocol, EvaluationProtocol) else list(protocol)
    rankers = _rankers(baselines, models or {})
    splits = [each.split(data.history, data.future) for each in protocols]
    if any(split.queries.is_empty() for split in splits):
        raise InvalidRequestError(f"protocol {protocols[0].name!r} finds no user with a history and a future")
    scorer = Scorer(data.history, data.future, cutoffs, categories=categories, metrics=metrics)
    steps = _Steps(progress, sum(len(split.queries) for split in splits) * (1 + len(rankers)))
    scores: dict[str, list[pl.DataFrame]] = defaultdict(list)
    for number, split in enumerate(splits):
        engine_params = replace(params, neighbors=protocols[0].true_neighbors(params.neighbors))
        engine = fit_candidates(data.history, split, engine_params)
        if protocols[0].twins_once:
            splits[number] = split = without_twins(engine, split)
        n = max(cutoffs)
        scores[TIFUKNN].append(scorer.score(rank(engine, data.history, split, n, steps.of(len(split.queries)))))
        for name, ranker in rankers.items():
            ranked = rank_with(ranker, data.history, split, n, steps.of(len(split.queries)))
            scores[name].append(scorer.score(ranked))
    steps.finish()
    return Evaluation(protocols[0], params, tuple(splits), _stacked(scores), tuple(cutoffs), tuple(metrics or ()))


def _rankers(baselines: Sequence[str], models: Mapping[str, Any]) -> dict[str, Ranker | SteppedRanker]:
    known: dict[str, Ranker | SteppedRanker] = {**BASELINES, **FIELD_BASELINES}
    unknown = [name for name in baselines if name not in known]
    if unknown:
        raise InvalidRequestError(f"baselines must be among {', '.join(known)}, not {unknown[0]!r}")
    taken = [name for name in models if name in (TIFUKNN, *baselines)]
    if taken:
        raise InvalidRequestError(f"the model {taken[0]!r} has the name of another one. Give it one of its own")
    return {name: known[name] for name in baselines} | {name: ranker_of(name, model) for name, model in models.items()}


def _stacked(scores: Mapping[str, list[pl.DataFrame]]) -> dict[str, pl.DataFrame]:
    """Return one frame per model; with several keysets, the column `keyset` counts them from 1."""
    if all(len(frames) == 1 for frames in scores.values()):
        return {model: frames[0] for model, frames in scores.items()}
    return {
        model: pl.concat(frame.with_columns(keyset=pl.lit(number)) for number, frame in enumerate(frames, 1))
        for model, frames in scores.items()
    }


class _Steps:
    """One progress over several models and splits."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def of(self, users: int) -> Progress:
        """Return the progress of the next model, which ranks so many users."""
        before, self._done = self._done, self._done + users
        return lambda done, _: self._report(before + done)

    def finish(self) -> None:
        """Report that all is done, even if a protocol left out some users."""
        self._report(self._total)

    def _report(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, self._total)


class _CandidatesFirst(PoolPriorities):
    """Priorities of a pool that only candidates get into."""

    def __init__(self, params: Params, candidates: pl.Series) -> None:
        super().__init__(params.pool_seed or 0)
        self._candidates = set(candidates)

    def of(self, user: Id) -> int:
        return super().of(user) if user in self._candidates else 2**64 - 1


def fit_candidates(history: pl.DataFrame, split: Split, params: Params) -> Recommender:
    """Fit an engine to the baskets of the split's candidates, the only users who can be neighbors.

    Learned weights come from all histories, as in a shop that serves all of these users.
    """
    others = history["user"].unique().sort()
    others = others.filter(~others.is_in(split.candidates.implode()))
    if params.alpha != LEARNED or others.is_empty():
        return Recommender(params).fit(of_users(history, split.candidates))
    count = len(split.candidates)
    model = Model(replace(params, pool=min(params.pool or count, count)))
    model.state.priorities = _CandidatesFirst(params, split.candidates)
    return Recommender(journal=InMemoryJournal(model)).fit(of_users(history, pl.concat([split.candidates, others])))


def rank(
    engine: Recommender, history: pl.DataFrame, split: Split, n: int, progress: Progress | None = None
) -> pl.DataFrame:
    """Rank the n best items for each query. A user unknown to the engine is served from the user's history alone."""
    known = [user for user in split.queries if user in engine]
    recommended = engine.recommend_many(known, n, progress=progress)
    unknown = baskets_of(history, split.queries.filter([user not in engine for user in split.queries]))
    for done, (user, baskets) in enumerate(unknown.items(), start=len(known) + 1):
        recommended[user] = engine.recommend_for(baskets, n)
        if progress is not None:
            progress(done, len(split.queries))
    return _rankings(recommended, split)


def _rankings(recommended: dict[Id, list[Recommendation]], split: Split) -> pl.DataFrame:
    """Convert recommendations to a frame via flat columns: from lists of lists, Polars takes five times as long."""
    users = [user for user, best in recommended.items() for _ in best]
    items = [item for best in recommended.values() for item, _ in best]
    rows = {"user": pl.Series(users, dtype=split.queries.dtype), "item": items}
    lists = pl.DataFrame(rows).group_by("user", maintain_order=True).agg(items="item")
    queries = pl.DataFrame({"user": split.queries})
    return queries.join(lists, on="user", how="left", maintain_order="left").with_columns(pl.col("items").fill_null([]))


def without_twins(engine: Recommender, split: Split) -> Split:
    """Return the split without queries that have the vector of a user with a lower id."""
    users = engine.users()
    vectors = [tuple(engine.vector(user).items()) for user in users]
    first = dict(zip(users, first_of_twins(users, vectors), strict=True))
    return replace(split, queries=split.queries.filter([first.get(user, False) for user in split.queries]))
