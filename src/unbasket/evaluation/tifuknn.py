"""The engine of this package as a ranker, and one call that evaluates it beside the baselines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from unbasket.domain.ids import Id
from unbasket.domain.progress import Progress
from unbasket.domain.results import Recommendation
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.baselines import BASELINES
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.protocols import EvaluationProtocol, first_of_twins
from unbasket.evaluation.scores import score_users
from unbasket.evaluation.splits import Holdout, Split
from unbasket.params import Params

TIFUKNN = "TIFU-kNN"


@dataclass(frozen=True, slots=True)
class TifuKnn:
    """TIFU-kNN as a ranker. The engine averages exactly `params.neighbors` other users."""

    params: Params
    progress: Progress | None = None

    def __call__(self, history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame:
        return rank(fit_candidates(history, split, self.params), history, split, n, self.progress)


def evaluate(
    data: Holdout,
    params: Params,
    protocol: EvaluationProtocol,
    *,
    baselines: Sequence[str] = (),
    cutoffs: Sequence[int] = (10, 20),
    progress: Progress | None = None,
) -> Evaluation:
    """Score TIFU-kNN and the named baselines under a protocol, on the users whom the protocol asks.

    `params.neighbors` is the published k: the protocol decides how many other users are averaged. `progress` is called
    with the users answered so far, and all of them.
    """
    unknown = [name for name in baselines if name not in BASELINES]
    if unknown:
        raise InvalidRequestError(f"baselines must be among {', '.join(BASELINES)}, not {unknown[0]!r}")
    split = protocol.split(data.history, data.future)
    if split.queries.is_empty():
        raise InvalidRequestError(f"protocol {protocol.name!r} finds no user with a history and a future")
    engine_params = replace(params, neighbors=protocol.true_neighbors(params.neighbors))
    engine = fit_candidates(data.history, split, engine_params)
    if protocol.twins_once:
        split = _without_twins(engine, split)
    n = max(cutoffs)
    rankings = {TIFUKNN: rank(engine, data.history, split, n, progress)}
    rankings |= {name: BASELINES[name](data.history, split, n) for name in baselines}
    scores = {name: score_users(ranked, data.history, data.future, cutoffs) for name, ranked in rankings.items()}
    return Evaluation(protocol, params, split, scores, tuple(cutoffs))


def fit_candidates(history: pl.DataFrame, split: Split, params: Params) -> Recommender:
    """An engine that has learned the baskets of the split's candidates, and of nobody else."""
    return Recommender(params).fit(_of_users(history, split.candidates))


def rank(
    engine: Recommender, history: pl.DataFrame, split: Split, n: int, progress: Progress | None = None
) -> pl.DataFrame:
    """The engine's n best items for each query; a query that it does not hold is answered from its history alone."""
    held = [user for user in split.queries if user in engine]
    answers = engine.recommend_many(held, n, progress=progress)
    strangers = _baskets(history, split.queries.filter([user not in engine for user in split.queries]))
    for done, (user, baskets) in enumerate(strangers.items(), start=len(held) + 1):
        answers[user] = engine.recommend_for(baskets, n)
        if progress is not None:
            progress(done, len(split.queries))
    return _rankings(answers, split)


def _of_users(history: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    return history.join(pl.DataFrame({"user": users}), on="user", how="semi", maintain_order="left")


def _baskets(history: pl.DataFrame, users: pl.Series) -> dict[Id, list[list[Id]]]:
    """Each user's baskets, oldest first, in the order that the engine would give them."""
    purchases = _of_users(history, users)
    if "time" in history.columns:
        purchases = purchases.sort("time", "basket", maintain_order=True)
    baskets = purchases.group_by("user", "basket", maintain_order=True).agg("item")
    return dict(baskets.group_by("user", maintain_order=True).agg("item").iter_rows())


def _rankings(answers: dict[Id, list[Recommendation]], split: Split) -> pl.DataFrame:
    """Answers as a frame, made from flat columns: from lists of lists, Polars takes five times as long."""
    rows = {
        "user": pl.Series([user for user, answer in answers.items() for _ in answer], dtype=split.queries.dtype),
        "item": [item for answer in answers.values() for item, _ in answer],
    }
    lists = pl.DataFrame(rows).group_by("user", maintain_order=True).agg(items="item")
    asked = pl.DataFrame({"user": split.queries})
    return asked.join(lists, on="user", how="left", maintain_order="left").with_columns(pl.col("items").fill_null([]))


def _without_twins(engine: Recommender, split: Split) -> Split:
    """The split without the queries that share their vector with a user of a lower id."""
    users = engine.users()
    vectors = [tuple(engine.vector(user).items()) for user in users]
    first = dict(zip(users, first_of_twins(users, vectors), strict=True))
    return replace(split, queries=split.queries.filter([first[user] for user in split.queries]))
