"""Learned weights: by hand, against the oracle on a real shop, and with wrong sums, which must be found."""

import random
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import polars as pl
import pytest
from tests.engine.spoiled_forgets import SCOPES, forget_spoiled, open_shop, shrink_limits
from tests.laws import learned_bits
from tests.oracle import Id, Oracle

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.model import LearnedSums
from unbasket.datasets import load
from unbasket.engine.verification import FullVerification, InvariantChecker

HALF = ub.Params(group_decay=0.5, neighbors=5)


def learned_by(rec: ub.Recommender, n: int = 10) -> ub.LearnedWeights:
    learned = rec.learned(n)
    assert learned is not None
    return learned


def sums_of(rec: ub.Recommender) -> LearnedSums:
    sums = rec._state.sums
    assert sums is not None
    return sums


def test_alpha_by_hand() -> None:
    """Before ann's last basket, milk has the weight 1 and bread 1/3 (D = 3/2, d = 1/2); only milk comes true."""
    rec = ub.Recommender(HALF)
    rec.learn("ann", ["milk", "bread"], basket=1)
    assert learned_by(rec).alpha == pytest.approx(0.8)
    assert learned_by(rec).users == 0
    rec.learn("ann", ["milk"], basket=2)
    rec.learn("ann", ["milk", "tea"], basket=3)
    assert learned_by(rec).alpha == pytest.approx((1 / (1 + 1 / 9) + 20 * 0.8) / 21)
    assert learned_by(rec).users == 1


def test_factors_by_hand() -> None:
    """Milk has C = 3, U = 2, S = 2.5, bread C = U = 1, S = 0.5: milk was bought again once, and 1/2 of each faded."""
    rec = ub.Recommender(HALF)
    rec.learn("ann", ["milk", "bread"], basket=1)
    rec.learn("ann", ["milk"], basket=2)
    rec.learn("bob", ["milk"], basket=1)
    milk, bread, unknown = rec.explain_many("ann", ["milk", "bread", "never seen"])
    assert milk.factor == pytest.approx((1 + 1.5) / (0.5 + 1.5), abs=1e-4)
    assert bread.factor == pytest.approx((0 + 1.5) / (0.5 + 1.5), abs=1e-4)
    assert unknown.factor == 1
    assert milk.weight == pytest.approx(1, abs=1e-4)
    assert bread.weight == pytest.approx(1 / 3, abs=1e-4)
    rec.change_params(ub.Params(group_decay=0.5, neighbors=5, repurchase=None))
    assert rec.explain("ann", "milk").factor == 1
    assert learned_by(rec).most == ()


def test_a_number_is_not_learned() -> None:
    rec = ub.Recommender(ub.Params(alpha=0.8))
    rec.learn("ann", ["milk"], basket=1)
    assert rec.learned() is None


@pytest.mark.parametrize("buyers", [19, 20])
def test_items_are_listed_from_20_buyers_on(buyers: int) -> None:
    rec = ub.Recommender()
    for user in range(25):
        rec.learn(user, ["milk", "tea"], basket=1)
        rec.learn(user, ["milk", *(["rare"] if user < buyers else [])], basket=2)
    most = learned_by(rec).most
    assert [factor.item for factor in most] == ["milk", *(["rare"] if buyers == 20 else []), "tea"]
    assert learned_by(rec).least == most[::-1]
    assert most[0].buyers == 25
    assert learned_by(rec, 1)[2:] == (most[:1], most[-1:])


def test_the_sums_cover_users_outside_the_pool() -> None:
    chance = random.Random(3)
    every, pooled = ub.Recommender(HALF), ub.Recommender(ub.Params(group_decay=0.5, neighbors=5, pool=3))
    for number in range(300):
        user, items, gone = chance.randrange(20), chance.sample(range(12), 3), chance.randrange(20)
        for rec in (every, pooled):
            rec.learn(user, items, basket=number % 7)
            rec.forget(gone)
    assert len(every) > 5
    assert learned_bits(every) == learned_bits(pooled)
    assert pooled.verify().ok


@pytest.fixture(scope="module")
def part() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the histories and next baskets of the 60 users of The Complete Journey with the fewest baskets."""
    data = load("completejourney")
    assert data.future is not None
    counts = data.history.group_by("user").agg(pl.col("basket").n_unique()).sort("basket", "user").head(60)
    history = data.history.join(counts, on="user", how="semi", maintain_order="left")
    return history, data.future.join(counts, on="user", how="semi", maintain_order="left")


def test_a_real_shop_agrees_with_the_oracle(part: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    """Alpha and all factors to the bit, and the ten best items of each user, after baskets came and went."""
    history, future = part
    params = ub.Params(neighbors=8)
    rec, oracle = ub.Recommender(params).fit(history), Oracle(params)
    for user, basket, time, items in _baskets(history):
        oracle.learn(user, items, basket, time)
    expected = oracle.alpha(), oracle.factors()
    for user, basket, time, items in _baskets(future):
        rec.learn(user, items, basket=basket, time=time)
    assert learned_bits(rec) != expected
    for user, basket, *_ in _baskets(future):
        rec.forget(user, basket=basket)
    assert learned_bits(rec) == expected
    for user in rec.users():
        best, found = oracle.recommend(user, 10), rec.recommend(user, 10)
        assert [item for item, _ in found] == [item for item, _ in best]
        assert dict(found) == pytest.approx(dict(best), abs=1e-6)


def _baskets(frame: pl.DataFrame) -> Iterator[tuple[Id, Id, int, list[Id]]]:
    return frame.group_by("user", "basket", "time", maintain_order=True).agg("item").iter_rows()


def test_another_history_counts_as_if_it_were_stored() -> None:
    """Its share replaces that of the stored history, so alpha and the factors are those after the change."""
    chance = random.Random(1)
    rec = ub.Recommender(ub.Params(neighbors=4))
    for user in range(9):
        for basket in range(5):
            rec.learn(user, chance.sample(range(12), 3), basket=basket)
    history = [[1, 2], [3, 99], [1, 99]]
    for user in (4, 100):
        preview = rec.recommend_for(history, n=20, user=user)
        assert preview != rec.recommend_for(history, n=20)
        rec.forget(user)
        for basket, items in enumerate(history):
            rec.learn(user, items, basket=basket)
        assert rec.recommend(user, 20) == preview


# Wrong sums ---------------------------------------------------------------------------------------------------------

Spoiler = Callable[[LearnedSums, int, int], None]


def a_total(number: int) -> Spoiler:
    def spoil(sums: LearnedSums, _user: int, _item: int) -> None:
        testing.learned(sums)["totals"][number] += 1

    return spoil


def a_weight(sums: LearnedSums, _user: int, item: int) -> None:
    testing.learned(sums)["items"]["weight"][item] += 1


def the_buyers(sums: LearnedSums, _user: int, item: int) -> None:
    testing.learned(sums)["items"]["buyers"][item] += 1


def what_is_kept_of_a_user(sums: LearnedSums, user: int, _item: int) -> None:
    testing.learned(sums)["users"]["squares"][user] += 1


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ub.DurableRecommender]:
    shrink_limits(monkeypatch)
    yield from open_shop(tmp_path, ub.Params(neighbors=5))


@pytest.mark.parametrize("spoil", [*map(a_total, range(6)), a_weight, the_buyers, what_is_kept_of_a_user])
@pytest.mark.parametrize("scope", SCOPES)
def test_a_wrong_sum_is_found(
    shop: ub.DurableRecommender, monkeypatch: pytest.MonkeyPatch, scope: str, spoil: Spoiler
) -> None:
    sums, item = sums_of(shop), shop._state.items.codes["milk"]
    assert not forget_spoiled(shop, scope, monkeypatch, lambda trace: spoil(sums, trace.code, item)).verified
    for found in (shop.verify().mismatches, shop.verify("bob").mismatches):
        assert {*found} & {"the learned sums", "an orphaned record in the learned sums"}


def test_a_wrong_scale_is_found(shop: ub.DurableRecommender) -> None:
    testing.scales(shop._state.index.shards[0])[0] += 1
    assert "the vector of user 'ann'" in shop.verify().mismatches


def test_a_verification_starts_over_when_the_parameters_change(shop: ub.DurableRecommender) -> None:
    state, changes = shop._model.state, [ub.Params(neighbors=5), ub.Params(alpha=0.5), HALF]
    recount = InvariantChecker(state).recount()
    for found in recount:
        assert found == []
        if changes:
            shop.change_params(changes.pop())
            shop.learn("ann", ["milk"], basket=f"new {len(changes)}")
    assert changes == [ub.Params(neighbors=5)]  # with a number for alpha, there is nothing to recount
    full = FullVerification(state, shop._model.digest)
    while full.advance():
        pass
    full.stop()
    assert full.report().ok


def test_a_recount_that_is_stopped_leaves_nothing_behind(shop: ub.DurableRecommender) -> None:
    first, second = (InvariantChecker(shop._state).recount() for _ in range(2))
    next(first)
    next(second)
    shop.learn("zoe", ["milk"], basket="one")
    first.close()
    shop.forget("ann", basket="two")
    assert [*chain.from_iterable(second)] == []
    assert sums_of(shop).recount is None
