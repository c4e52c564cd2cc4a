"""TIFU-kNN as a ranker, evaluated beside the baselines."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from unbasket.domain.ids import Id
from unbasket.domain.results import Progress, Recommendation
from unbasket.engine.model import Model
from unbasket.engine.ports import InMemoryJournal
from unbasket.engine.recommender import Recommender
from unbasket.engine.state import PoolPriorities
from unbasket.errors import InvalidRequestError
from unbasket.evaluation.baselines import BASELINES
from unbasket.evaluation.evaluation import Evaluation
from unbasket.evaluation.metrics import score_users
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
    protocol: EvaluationProtocol,
    *,
    baselines: Sequence[str] = (),
    cutoffs: Sequence[int] = (10, 20),
    progress: Progress | None = None,
) -> Evaluation:
    """Score TIFU-kNN and the named baselines under a protocol, on the query users of its split.

    `params.neighbors` is the published k: the protocol decides how many other users are averaged. `progress` is called
    with the numbers of query users done and in total.
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
        split = without_twins(engine, split)
    n = max(cutoffs)
    rankings = {TIFUKNN: rank(engine, data.history, split, n, progress)}
    rankings |= {name: BASELINES[name](data.history, split, n) for name in baselines}
    scores = {name: score_users(ranked, data.history, data.future, cutoffs) for name, ranked in rankings.items()}
    return Evaluation(protocol, params, split, scores, tuple(cutoffs))


class _CandidatesFirst(PoolPriorities):
    """Priorities of a pool that only candidates get into."""

    def __init__(self, params: Params, candidates: pl.Series) -> None:
        super().__init__(params.pool_seed or 0)
        self._candidates = set(candidates)

    def of(self, user: Id) -> int:
        return super().of(user) if user in self._candidates else 2**64 - 1


def fit_candidates(history: pl.DataFrame, split: Split, params: Params) -> Recommender:
    """Fit an engine to the baskets of the split's candidates, the only users who can be neighbors.

    Learned weights also come from the histories of the queries, as in a shop that serves all of these users.
    """
    others = split.queries.filter(~split.queries.is_in(split.candidates.implode()))
    if params.alpha != LEARNED or others.is_empty():
        return Recommender(params).fit(_of_users(history, split.candidates))
    count = len(split.candidates)
    model = Model(replace(params, pool=min(params.pool or count, count)))
    model.state.priorities = _CandidatesFirst(params, split.candidates)
    return Recommender(journal=InMemoryJournal(model)).fit(_of_users(history, pl.concat([split.candidates, others])))


def rank(
    engine: Recommender, history: pl.DataFrame, split: Split, n: int, progress: Progress | None = None
) -> pl.DataFrame:
    """Rank the n best items for each query. A user unknown to the engine is served from the user's history alone."""
    known = [user for user in split.queries if user in engine]
    recommended = engine.recommend_many(known, n, progress=progress)
    unknown = _baskets(history, split.queries.filter([user not in engine for user in split.queries]))
    for done, (user, baskets) in enumerate(unknown.items(), start=len(known) + 1):
        recommended[user] = engine.recommend_for(baskets, n)
        if progress is not None:
            progress(done, len(split.queries))
    return _rankings(recommended, split)


def _of_users(history: pl.DataFrame, users: pl.Series) -> pl.DataFrame:
    return history.join(pl.DataFrame({"user": users}), on="user", how="semi", maintain_order="left")


def _baskets(history: pl.DataFrame, users: pl.Series) -> dict[Id, list[list[Id]]]:
    """Return each user's baskets, oldest first, in the engine's order."""
    purchases = _of_users(history, users)
    if "time" in history.columns:
        purchases = purchases.sort("time", "basket", maintain_order=True)
    baskets = purchases.group_by("user", "basket", maintain_order=True).agg("item")
    return dict(baskets.group_by("user", maintain_order=True).agg("item").iter_rows())


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
