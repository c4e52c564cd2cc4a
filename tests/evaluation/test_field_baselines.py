"""Baselines of the field against slow twins that are written from their definitions."""

from collections import Counter, defaultdict

import polars as pl
import pytest

from unbasket.datasets import generate
from unbasket.domain.ids import Id
from unbasket.evaluation.field_baselines import FIELD_BASELINES, TrexRepetition, UpCf
from unbasket.evaluation.histories import baskets_of
from unbasket.evaluation.protocols import Split

HISTORY = generate(users=30, seed=5, baskets_per_user=6, basket_size=4, items=40).history
USERS = HISTORY["user"].unique().sort()
SPLITS = {"all": Split(USERS, USERS), "others": Split(USERS[20:], USERS[:20])}

Lists = dict[Id, list[Id]]


def ranked(scores: dict[Id, dict[Id, float]], popularity: Counter[Id], n: int) -> Lists:
    return {
        user: sorted((i for i, s in row.items() if s > 0), key=lambda i: (-round(row[i], 9), -popularity[i], int(i)))[
            :n
        ]
        for user, row in scores.items()
    }


def naive_up_cf(model: UpCf, split: Split, n: int) -> Lists:
    baskets = baskets_of(HISTORY, USERS)
    items = {user: {item for basket in history for item in basket} for user, history in baskets.items()}
    shares: dict[Id, dict[Id, float]] = {}
    for user, history in baskets.items():
        recent = history[-model.recency :]
        counts = Counter(item for basket in recent for item in basket)
        shares[user] = {item: count / len(recent) for item, count in counts.items()}
    scores: dict[Id, dict[Id, float]] = defaultdict(lambda: defaultdict(float))
    for user in split.queries:
        for other in {*split.candidates, user}:
            common, size, others = len(items[user] & items[other]), len(items[user]), len(items[other])
            similarity = common / (size**model.asymmetry * others ** (1 - model.asymmetry)) if other != user else 1.0
            for item, share in shares[other].items():
                scores[user][item] += similarity**model.locality * share
    return ranked(scores, popularity_of(split), n)


def naive_trex(model: TrexRepetition, split: Split, n: int) -> Lists:
    times: dict[Id, Counter[int]] = defaultdict(Counter)
    for history in baskets_of(HISTORY, split.candidates).values():
        for item, count in Counter(item for basket in history for item in basket).items():
            times[item][count] += 1
    held = of_both(split)
    repeats = {
        item: sum(buyers * (count - 1) ** model.alpha for count, buyers in times[item].items() if count > 1)
        / max(sum(times[item].values()), 1)
        for item in held
    }
    mean = sum(repeats.values()) / len(held)
    factor = {item: repeats[item] + mean / (sum(times[item].values()) + 1) for item in held}
    scores: dict[Id, dict[Id, float]] = defaultdict(lambda: defaultdict(float))
    for user, history in baskets_of(HISTORY, split.queries).items():
        for age, basket in enumerate(reversed(history)):
            for item in basket:
                scores[user][item] += model.beta**age * factor[item]
    return ranked(scores, popularity_of(split), n)


def popularity_of(split: Split) -> Counter[Id]:
    purchases = baskets_of(HISTORY, split.candidates).values()
    return Counter(item for history in purchases for basket in history for item in basket)


def of_both(split: Split) -> set[Id]:
    both = baskets_of(HISTORY, pl.concat([split.queries, split.candidates]).unique()).values()
    return {item for history in both for basket in history for item in basket}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", [UpCf(), UpCf(recency=2, locality=1.5, asymmetry=0.75)])
def test_up_cf_equals_its_definition(model: UpCf, split: str) -> None:
    found = model.rank(HISTORY, SPLITS[split], 15, lambda *_: None)
    assert dict(found.iter_rows()) == naive_up_cf(model, SPLITS[split], 15)


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("model", [TrexRepetition(), TrexRepetition(alpha=1.0, beta=0.5)])
def test_trex_equals_its_definition(model: TrexRepetition, split: str) -> None:
    found = model.rank(HISTORY, SPLITS[split], 15, lambda *_: None)
    assert dict(found.iter_rows()) == naive_trex(model, SPLITS[split], 15)


@pytest.mark.parametrize("name", FIELD_BASELINES)
def test_texts_and_untimed_baskets_are_ranked_alike(name: str) -> None:
    """Rows are in the order of time already."""
    text = HISTORY.drop("time").with_columns(
        pl.col("user", "item").cast(pl.String).str.zfill(6), pl.col("basket").cast(pl.String)
    )
    users = text["user"].unique().sort()
    steps: list[tuple[int, int]] = []
    found = FIELD_BASELINES[name].rank(text, Split(users, users), 9, lambda *step: steps.append(step))
    expected = FIELD_BASELINES[name].rank(HISTORY, SPLITS["all"], 9, lambda *_: None)
    assert {int(user): [int(item) for item in items] for user, items in found.iter_rows()} == dict(expected.iter_rows())
    assert steps == [(done, len(users)) for done in range(1, len(users) + 1)]
