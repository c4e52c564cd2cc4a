"""A benchmark of forgetting, after ERASE (arXiv 2603.08341): people withdraw what they bought of a sensitive category.

    users drawn until 0.1 % of all interactions are theirs and of the category -> four steps of requests -> measures

A request forgets all of one user's items of the category. Each method is measured beside a model of its own kind that
is retrained from what remains:

- ours: the engine's `forget`, with any parameters;
- retraining: a new engine for each request, the only other exact way;
- the paper's rule: its equations for item and basket deletion (section 4.3) on dense vectors, with the paper's
  parameters. In its favor, a vector holds the user's own items instead of all, and the state that the paper's system
  keeps of each user is there before the clock starts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter
from typing import Protocol

import numpy as np
import polars as pl

from unbasket.domain.ids import Id
from unbasket.domain.results import Progress
from unbasket.engine.recommender import Recommender
from unbasket.errors import InvalidRequestError
from unbasket.evaluation._item_sets import Codes
from unbasket.evaluation.histories import baskets_of
from unbasket.evaluation.metrics import Floats, Scorer
from unbasket.evaluation.models import rankings_of
from unbasket.evaluation.paper_rules import PaperUser
from unbasket.evaluation.protocols import Holdout, Split, all_users_split
from unbasket.params import Params

SEEDS = (2, 3, 5, 7, 11)
STEPS = 4
SHARE = 0.001  # of all interactions
SENSITIVE = ("meat", "alcohol", "baby")
CUTOFFS = (10, 20)
METRICS = tuple(f"{name}@{n}" for n in CUTOFFS for name in ("recall", "ndcg_standard", "hit_rate"))
OURS, RETRAINING, PAPER = "ours", "retraining", "the paper's rule"

_QUERIES = 500  # users whose next basket is predicted, before and after
_COMPARED = 100  # people with requests, the latest, whose scores are compared with the retrained model's
_LEAST = 1e-12  # of a distribution: a model that rules an item out is not infinitely far from one that does not


@dataclass(frozen=True, slots=True)
class Request:
    """A user who wants all purchases of these items forgotten."""

    user: Id
    items: tuple[Id, ...]


class ForgettingMethod(Protocol):
    """A fitted model that forgets."""

    def prepare(self, requests: Sequence[Request]) -> None:
        """Make ready for these requests."""

    def forget(self, request: Request) -> None:
        """Forget the user's purchases of the items."""

    def scores(self, user: Id) -> Mapping[Id, float]:
        """Return the scores of all items that have one."""

    def lists(self, users: Iterable[Id], n: int) -> dict[Id, list[Id]]:
        """Return the n best items of each user."""


class Forgetting:
    """The result: a row per category, method, seed and step, and their means over seeds."""

    def __init__(self, rows: Sequence[dict[str, object]], queries: int) -> None:
        self._frame = pl.DataFrame(rows, infer_schema_length=None)
        self.queries = queries

    def frame(self) -> pl.DataFrame:
        """Return all measures.

        `step` counts from 1; `seconds` is the median request of the step, `still_shown` the share of the users who made
        requests so far that get an item of the category among 20 (`shown_before`: of all that make any, before), and
        `divergence` the mean Kullback-Leibler divergence of the latest hundred of them from the retrained model, in
        bits. The metrics are those of `queries` users; `before` is the prefix of those from before the first request,
        and they are null in steps before the last.
        """
        return self._frame

    def means(self) -> pl.DataFrame:
        """Return a row per category and method: means over seeds, after the last step."""
        last = self._frame.filter(pl.col("step") == STEPS)
        numbers = [name for name in last.columns if name not in ("category", "method", "seed", "step")]
        return last.group_by("category", "method", maintain_order=True).agg(pl.col(numbers).mean())


def categories_like(words: Sequence[str], categories: pl.DataFrame) -> dict[str, pl.Series]:
    """Return the items of the categories that contain each word, in any case; a word that none contains is left out."""
    lower = pl.col("category").str.to_lowercase()
    found = {word: categories.filter(lower.str.contains(word.lower(), literal=True))["item"] for word in words}
    found = {word: items for word, items in found.items() if len(items)}
    if not found:
        some = ", ".join(categories["category"].unique().sort().head(10))
        raise InvalidRequestError(f"no category has {' or '.join(map(repr, words))} in its name. There are {some} ...")
    return found


def draw_requests(history: pl.DataFrame, items: pl.Series, seed: int) -> list[Request]:
    """Draw users until a thousandth of all interactions are of the category and theirs; at least one request a step."""
    theirs = history.select("user", "basket", "item").unique().filter(pl.col("item").is_in(items.implode()))
    users = theirs.group_by("user").agg(pl.col("item").unique().sort(), interactions=pl.len()).sort("user")
    if len(users) < STEPS:
        raise InvalidRequestError(f"{len(users)} users have bought items of the category; the benchmark needs {STEPS}")
    drawn = users.sample(fraction=1.0, shuffle=True, seed=seed)
    before = drawn["interactions"].cum_sum().shift(1, fill_value=0)
    enough = max(STEPS, int((before < SHARE * history.height).sum()))
    return [Request(user, tuple(bought)) for user, bought, _ in drawn.head(enough).iter_rows()]


def without(history: pl.DataFrame, requests: Sequence[Request]) -> pl.DataFrame:
    """Return the history that remains."""
    gone = [(request.user, item) for request in requests for item in request.items]
    schema = {name: history.schema[name] for name in ("user", "item")}
    return history.join(
        pl.DataFrame(gone, schema, orient="row"), on=["user", "item"], how="anti", maintain_order="left"
    )


def benchmark_forgetting(
    data: Holdout,
    params: Params,
    paper: Params,
    categories: Mapping[str, pl.Series],
    *,
    seeds: Sequence[int] = SEEDS,
    progress: Progress | None = None,
) -> Forgetting:
    """Let people withdraw purchases of each category, with each seed, and measure all methods.

    `categories` has the items of each category, `paper` the parameters of the paper's rule, whose groups are varying.
    """
    split = all_users_split(*data)
    queries = split.queries.sample(min(_QUERIES, len(split.queries)), seed=0).sort()
    trial = _Trial(data, Split(queries, split.candidates), params, replace(paper, grouping="fixed"))
    rows: list[dict[str, object]] = []
    total = len(categories) * len(seeds) * STEPS
    for name, items in categories.items():
        for seed in seeds:
            for step in trial.run(items, seed):
                rows += [{"category": name, "seed": seed, **row} for row in step]
                if progress is not None:
                    progress(len({(r["category"], r["seed"], r["step"]) for r in rows}), total)
    return Forgetting(rows, len(queries))


class _Trial:
    """The benchmark on one shop; its parts that do not depend on the category or the seed are computed once."""

    def __init__(self, data: Holdout, split: Split, params: Params, paper: Params) -> None:
        self._data, self._split, self._params, self._paper = data, split, params, paper
        self._scorer = Scorer(data.history, data.future, CUTOFFS)
        self._before = {
            OURS: self._accuracy(EngineMethod(data.history, params)),
            PAPER: self._accuracy(PaperMethod(data.history, paper)),
        }
        self._before[RETRAINING] = self._before[OURS]

    def run(self, items: pl.Series, seed: int) -> Iterator[list[dict[str, object]]]:
        """Yield the rows of each step."""
        history, requests = self._data.history, draw_requests(self._data.history, items, seed)
        methods: dict[str, ForgettingMethod] = {
            OURS: EngineMethod(history, self._params),
            PAPER: PaperMethod(history, self._paper),
        }
        for method in methods.values():
            method.prepare(requests)
        users, kinds = [request.user for request in requests], set(items)
        shown = {name: _showing(method.lists(users, max(CUTOFFS)), kinds) for name, method in methods.items()}
        shown[RETRAINING] = shown[OURS]
        bounds = [len(requests) * step // STEPS for step in range(STEPS + 1)]
        for step in range(1, STEPS + 1):
            new, done = requests[bounds[step - 1] : bounds[step]], requests[: bounds[step]]
            seconds = {name: median(_timed(method, request) for request in new) for name, method in methods.items()}
            remaining = without(history, done)
            started = perf_counter()
            retrained = EngineMethod(remaining, self._params)
            seconds[RETRAINING] = perf_counter() - started
            truths: dict[str, ForgettingMethod] = {OURS: retrained, PAPER: PaperMethod(remaining, self._paper)}
            measured = methods | {RETRAINING: retrained}
            yield [
                {"method": name, "step": step, "requests": len(done), "seconds": seconds[name]}
                | {"shown_before": shown[name]}
                | self._measures(measured[name], truths.get(name, retrained), done, kinds, step)
                | {f"before {metric}": value for metric, value in self._before[name].items()}
                for name in (OURS, RETRAINING, PAPER)
            ]

    def _measures(
        self, method: ForgettingMethod, truth: ForgettingMethod, done: list[Request], items: set[Id], step: int
    ) -> dict[str, float | None]:
        compared = [(method.scores(each.user), truth.scores(each.user)) for each in done[-_COMPARED:]]
        lists = method.lists([request.user for request in done], max(CUTOFFS))
        accuracy = self._accuracy(method) if step == STEPS else dict.fromkeys(METRICS)
        return {
            "still_shown": _showing(lists, items),
            "divergence": float(np.mean([divergence(expected, found) for found, expected in compared])),
            **accuracy,
        }

    def _accuracy(self, method: ForgettingMethod) -> dict[str, float | None]:
        lists = method.lists(self._split.queries, max(CUTOFFS))
        scores = self._scorer.score(rankings_of("", lists, self._data.history, self._split))
        return {metric: float(scores[metric].mean()) for metric in METRICS}  # type: ignore[arg-type]


def _showing(lists: Mapping[Id, list[Id]], items: set[Id]) -> float:
    """Return the share of users whose list has any of the items."""
    return float(np.mean([not items.isdisjoint(found) for found in lists.values()]))


def _timed(method: ForgettingMethod, request: Request) -> float:
    started = perf_counter()
    method.forget(request)
    return perf_counter() - started


def divergence(truth: Mapping[Id, float], found: Mapping[Id, float]) -> float:
    """Return the Kullback-Leibler divergence of one model's scores from another's, as distributions, in bits.

    >>> divergence({"a": 1.0, "b": 3.0}, {"b": 6.0, "a": 2.0})
    0.0
    """
    items = sorted(truth.keys() | found.keys(), key=str)
    p, q = (_distribution([scores.get(item, 0.0) for item in items]) for scores in (truth, found))
    return float(np.sum(p * np.log2(p / q))) if items else 0.0


def _distribution(scores: list[float]) -> Floats:
    """Return scores as a distribution; the paper's rule may make some negative."""
    positive = np.maximum(np.array(scores), 0.0)
    shares = np.maximum(positive / max(positive.sum(), _LEAST), _LEAST)
    distribution: Floats = shares / shares.sum()
    return distribution


class EngineMethod:
    """The engine."""

    def __init__(self, history: pl.DataFrame, params: Params) -> None:
        self._engine = Recommender(params).fit(history)

    def prepare(self, requests: Sequence[Request]) -> None:
        """Do nothing: the engine has all that it needs."""

    def forget(self, request: Request) -> None:
        """Forget the user's purchases of the items."""
        for item in request.items:
            self._engine.forget(request.user, item=item)

    def scores(self, user: Id) -> Mapping[Id, float]:
        """Return the scores of all items that have one; a user who has vanished has none."""
        return dict(self._engine.recommend(user, len(self._engine.items()))) if user in self._engine else {}

    def lists(self, users: Iterable[Id], n: int) -> dict[Id, list[Id]]:
        """Return the n best items of each user."""
        known = [user for user in users if user in self._engine]
        found = self._engine.recommend_many(known, n)
        return {user: [item for item, _ in found.get(user, [])] for user in users}


class PaperMethod:
    """The paper's model: vectors by its rules, exact neighbors, alpha times the own vector and the rest from theirs."""

    def __init__(self, history: pl.DataFrame, params: Params) -> None:
        engine = Recommender(params).fit(history)
        self._params, self._history = params, history
        self._users = {user: row for row, user in enumerate(engine.users())}
        self._items = {item: column for column, item in enumerate(engine.items())}
        vectors = [engine.vector(user) for user in self._users]
        self._rows: Codes = np.repeat(np.arange(len(vectors)), [len(vector) for vector in vectors])
        self._columns: Codes = np.array([self._items[item] for vector in vectors for item in vector], np.int64)
        self._weights = np.array([weight for vector in vectors for weight in vector.values()])
        self._norms = np.bincount(self._rows, self._weights**2, len(vectors))
        self._maintained: dict[Id, _Maintained] = {}
        self._stacked: Floats | None = None  # their vectors, until one changes

    def prepare(self, requests: Sequence[Request]) -> None:
        """Build the states of users who will make requests."""
        users = pl.Series("user", [request.user for request in requests], self._history.schema["user"])
        for user, baskets in baskets_of(self._history, users).items():
            self._maintained[user] = _Maintained(baskets, self._params, self._items)
        self._stacked = None

    def forget(self, request: Request) -> None:
        """Forget the user's purchases of the items."""
        self._maintained[request.user].forget(request.items)
        self._stacked = None

    def lists(self, users: Iterable[Id], n: int) -> dict[Id, list[Id]]:
        """Return the n best items of each user."""
        names, found = list(self._items), {}
        for user in users:
            scores = self._scores(user) if user in self._users else np.empty(0)
            top = np.argsort(-scores, kind="stable")[:n]
            found[user] = [names[column] for column in top if scores[column] > 0]
        return found

    def scores(self, user: Id) -> Mapping[Id, float]:
        """Return the scores of all items that have one."""
        if user not in self._users:
            return {}
        scores = self._scores(user)
        return {item: scores[column] for item, column in self._items.items() if scores[column] > 0}

    def _scores(self, user: Id) -> Floats:
        if self._stacked is None:
            vectors = [kept.vector for kept in self._maintained.values()]
            self._stacked = np.array(vectors).reshape(len(vectors), len(self._items))
            self._norms[[self._users[other] for other in self._maintained]] = (self._stacked**2).sum(axis=1)
        own, matrix, count = self._dense(user), self._stacked, len(self._users)
        changed = np.array([self._users[other] for other in self._maintained], np.int64)
        dots = np.bincount(self._rows, self._weights * own[self._columns], count)
        dots[changed] = matrix @ own
        distances = self._norms - 2 * dots
        distances[self._users[user]] = np.inf
        distances[changed[self._norms[changed] == 0]] = np.inf  # users of whom nothing is left
        near = np.argsort(distances, kind="stable")[: min(self._params.neighbors, count - 1)]
        chosen = np.isin(np.arange(count), near)
        kept = chosen.copy()
        kept[changed] = False
        mean = np.bincount(self._columns, self._weights * kept[self._rows], len(self._items))
        mean = (mean + matrix[chosen[changed]].sum(axis=0)) / len(near)
        alpha = float(self._params.alpha)
        scores: Floats = alpha * own + (1 - alpha) * mean
        return scores

    def _dense(self, user: Id) -> Floats:
        if user in self._maintained:
            return self._maintained[user].vector
        vector, own = np.zeros(len(self._items)), self._rows == self._users[user]
        vector[self._columns[own]] = self._weights[own]
        return vector


class _Maintained:
    """A user's vector under the paper's rules, over the user's own items."""

    def __init__(self, baskets: list[list[Id]], params: Params, columns: Mapping[Id, int]) -> None:
        self._items = {
            item: code for code, item in enumerate(sorted({i for basket in baskets for i in basket}, key=str))
        }
        self._columns = np.array([columns[item] for item in self._items])
        self._size = len(columns)
        self._user = PaperUser(params.group_size, params.basket_decay, params.group_decay, len(self._items))
        for basket in baskets:
            self._user.add_basket([self._items[item] for item in basket])

    def forget(self, items: Iterable[Id]) -> None:
        """Delete the items one by one from each basket that has them."""
        codes, position = {self._items[item] for item in items}, 0
        for basket in [basket for group in self._user.groups for basket in group.baskets]:
            bought = set(np.flatnonzero(basket).tolist())
            for code in sorted(codes & bought):
                self._user.delete_item(position, code)
            position += 1 if bought - codes else 0  # an emptied basket is gone

    @property
    def vector(self) -> Floats:
        """The vector over all items."""
        vector = np.zeros(self._size)
        vector[self._columns] = self._user.vector
        return vector
