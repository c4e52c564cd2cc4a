"""The pool: its users, their effect on answers, and that verification finds a wrong pool."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from tests.oracle import Oracle, priority

import unbasket as ub
from unbasket.core.check import testing
from unbasket.core.index import LiveIndex
from unbasket.domain.ids import Id

PARAMS = ub.Params(group_size=2, neighbors=3, pool=5, pool_seed=7, alpha=0.8)
USERS = [f"user {number}" for number in range(12)]


def learn(rec: ub.Recommender | Oracle, user: Id) -> None:
    """Learn three baskets that depend on the user alone."""
    chance = random.Random(str(user))
    for basket in range(3):
        rec.learn(user, chance.sample("abcdefgh", 3), basket=basket, time=basket)


def shop_of(users: list[str], params: ub.Params = PARAMS) -> ub.Recommender:
    rec = ub.Recommender(params)
    for user in users:
        learn(rec, user)
    return rec


def by_priority(users: list[str], seed: int = 7) -> list[str]:
    return sorted(users, key=lambda user: priority(seed, user))


def pool_of(rec: ub.Recommender) -> list[Id]:
    """Return the users of the pool as seen from outside: all neighbors of any user."""
    return sorted({near.user for user in rec.users() for near in rec.similar_users(user, 100)}, key=str)


def test_the_pool_has_the_users_with_the_smallest_priorities() -> None:
    rec, remaining = shop_of(USERS), USERS.copy()
    assert pool_of(rec) == sorted(by_priority(USERS)[:5])
    for user in random.Random(1).sample(USERS, 9):
        rec.forget(user)
        remaining.remove(user)
        assert pool_of(rec) == sorted(by_priority(remaining)[:5])


def test_a_new_user_with_a_small_priority_replaces_the_largest() -> None:
    *others, first = reversed(by_priority(USERS))
    rec = shop_of(others)
    assert pool_of(rec) == sorted(by_priority(USERS)[1:6])
    learn(rec, first)
    assert pool_of(rec) == sorted(by_priority(USERS)[:5])
    assert rec.digest() == shop_of(USERS).digest()


def test_a_user_without_items_leaves_the_pool() -> None:
    member, entrant = by_priority(USERS)[0], by_priority(USERS)[5]
    rec = shop_of(USERS)
    for item in rec.vector(member):
        rec.forget(member, item=item)
    assert member not in rec
    assert entrant in pool_of(rec)
    assert rec.verify().ok


def test_a_fit_chooses_the_same_pool() -> None:
    learned = shop_of(USERS)
    rows = [(u, b.basket, list(b.items), b.time) for u in USERS for b in learned.history(u)]
    frame = pl.DataFrame(rows, ["user", "basket", "item", "time"], orient="row")
    fitted = ub.Recommender(PARAMS)
    for start in (0, 3, 4):  # in steps: some users enter the pool and leave it again
        users = by_priority(USERS)[::-1][start : start + 3 if start == 0 else start + 1 if start == 3 else None]
        fitted.fit(frame.filter(pl.col("user").is_in(users)))
        assert fitted.verify().ok
    assert fitted.recommend_many() == learned.recommend_many()
    assert pool_of(fitted) == pool_of(learned)


def test_the_neighbors_of_a_user_are_the_pool_without_the_user() -> None:
    rec, order = shop_of(USERS), by_priority(USERS)
    for user in USERS:
        assert {near.user for near in rec.similar_users(user, 100)} == set(order[:5]) - {user}


def test_all_answers_equal_the_oracle() -> None:
    rec, oracle = shop_of(USERS), Oracle(PARAMS)
    for user in USERS:
        learn(oracle, user)
    for user in USERS:
        found = [near.user for near in rec.similar_users(user, 3)]
        assert found == [other for other, _ in oracle.neighbors_of(user, 3)]
        scores = oracle.prediction(user)
        answer = rec.recommend(user, 100)
        assert dict(answer) == pytest.approx(scores, abs=1e-6)
        history = [basket.items for basket in rec.history(user)]
        assert rec.recommend_for(history, 100, user=user) == answer == rec.recommend_many([user], 100)[user]
        for item, score in answer:
            explanation = rec.explain(user, item)
            assert explanation.score == pytest.approx(score, abs=1e-12)
            assert explanation.neighbors == 3


def test_an_unknown_user_is_answered_as_if_already_learned() -> None:
    """A small priority would push another user out of the pool, who is then no neighbor."""
    full = shop_of(USERS)
    for user in USERS:
        others = shop_of([other for other in USERS if other != user])
        history = [basket.items for basket in full.history(user)]
        assert others.recommend_for(history, 100, user=user) == full.recommend(user, 100)


def test_a_long_history_outside_is_folded_from_its_newest_checkpoint() -> None:
    rec, outsider = shop_of(USERS), by_priority(USERS)[-1]
    chance = random.Random(5)
    for basket in range(3, 900):
        rec.learn(outsider, chance.sample("abcdefgh", 2), basket=basket, time=basket)
    live = rec._state.live
    assert testing.newest_checkpoints(live.checkpoints)[rec._state.users.codes[outsider]] > 0
    history = [basket.items for basket in rec.history(outsider)]
    assert rec.recommend(outsider, 100) == rec.recommend_for(history, 100, user=outsider)
    assert rec.verify().ok
    for basket in range(20, 900):
        rec.forget(outsider, basket=basket)
    assert rec.verify().ok


def postings(rec: ub.Recommender) -> list[list[tuple[int, int]]]:
    rows = rec._state.index.shards[0].postings
    return [testing.row(rows, item, testing.POSTING).tolist() for item in range(rows.count)]


def test_only_the_pool_is_in_the_index() -> None:
    rec, outsider = shop_of(USERS), by_priority(USERS)[-1]
    vectors = sum(len(rec.vector(user)) for user in by_priority(USERS)[:5])
    assert rec.sizes().entries == vectors
    before = postings(rec)
    rec.learn(outsider, ["a", "h"], basket=99)
    rec.forget(outsider, basket=0)
    assert postings(rec) == before
    assert rec.sizes().entries == vectors


def test_a_pool_of_all_users_is_the_papers_model() -> None:
    full, paper = (
        shop_of(USERS, replace(PARAMS, pool=12)),
        shop_of(USERS, ub.Params(group_size=2, neighbors=3, alpha=0.8)),
    )
    assert full.recommend_many() == paper.recommend_many()
    assert full.digest() != paper.digest()


def test_the_seed_changes_pool_and_digest() -> None:
    without = shop_of(USERS, ub.Params(group_size=2, neighbors=3, pool=5, alpha=0.8))
    assert without.params == replace(PARAMS, pool_seed=0)
    assert pool_of(without) == sorted(by_priority(USERS, 0)[:5]) != pool_of(shop_of(USERS))
    digests = {shop_of(USERS, replace(PARAMS, pool=p, pool_seed=s)).digest() for p in (5, 6) for s in (0, 1)}
    assert len(digests) == 4


def test_a_database_draws_a_seed_and_keeps_it(tmp_path: Path) -> None:
    params = ub.Params(pool=5)
    with ub.open(tmp_path / "one.db", params) as one, ub.open(tmp_path / "two.db", params) as two:
        seed = one.params.pool_seed
        assert seed != two.params.pool_seed
        for user in USERS:
            learn(one, user)
        expected, digest = pool_of(one), one.digest()
        assert expected == sorted(by_priority(USERS, seed or 0)[:5])
    for given in (None, params, replace(params, pool_seed=seed)):
        with ub.open(tmp_path / "one.db", given) as again:
            assert (pool_of(again), again.digest()) == (expected, digest)
            assert again.params == replace(params, pool_seed=seed)
    for other in (ub.Params(), ub.Params(pool=6), ub.Params(pool=5, pool_seed=0)):
        with pytest.raises(ub.InvalidParamsError, match=f"pool=5, pool_seed={seed}"):
            ub.open(tmp_path / "one.db", other)


# Verification finds a wrong pool --------------------------------------------------------------------------------

Spoiler = Callable[[LiveIndex, int], None]  # takes the code of a user in the pool or outside


def a_member_out_of_the_index(live: LiveIndex, user: int) -> None:
    testing.put(live, user, in_index=False)


def an_outsider_in_the_index(live: LiveIndex, user: int) -> None:
    testing.put(live, user, in_index=True)


def a_priority(live: LiveIndex, user: int) -> None:
    assert live.pool is not None
    testing.pool(live.pool)["priorities"][user] ^= 1


def a_position(live: LiveIndex, user: int) -> None:
    assert live.pool is not None
    testing.pool(live.pool)["positions"][user] += 1


def positions_swapped(live: LiveIndex, user: int) -> None:
    """Swap the user with one on the other side of the border, in the heaps and in the index."""
    assert live.pool is not None
    arrays = testing.pool(live.pool)
    heaps, positions = arrays["heaps"], arrays["positions"]
    other = int(heaps[live.pool.size + 2] if live.pool.holds(user) else heaps[2])
    mine, theirs = int(positions[user]), int(positions[other])
    heaps[[mine - 1, theirs - 1]] = other, user
    positions[[user, other]] = theirs, mine
    for each in (user, other):
        testing.put(live, each, in_index=live.pool.holds(each))


@pytest.mark.parametrize(
    ("spoil", "rank"),
    [
        (a_member_out_of_the_index, 0),
        (an_outsider_in_the_index, 11),
        (a_priority, 0),
        (a_priority, 11),
        (a_position, 0),
        (a_position, 9),
        (positions_swapped, 1),
        (positions_swapped, 10),
    ],
)
def test_a_wrong_pool_is_found(tmp_path: Path, spoil: Spoiler, rank: int) -> None:
    with ub.open(tmp_path / "shop.db", PARAMS) as rec:
        for user in USERS:
            learn(rec, user)
        assert rec.verify().ok
        user = by_priority(USERS)[rank]
        assert rec.verify(user).ok
        spoil(rec._state.live, rec._state.users.codes[user])
        assert not rec.verify().ok
        assert not rec.verify(user).ok
        if spoil is not a_member_out_of_the_index:  # an event puts the user back
            rec.forget(user, basket=1)
            assert not rec.receipts()[-1].verified


@pytest.mark.parametrize("array", ["priorities", "positions", "heaps"])
def test_residue_of_a_forgotten_user_is_found(array: str) -> None:
    rec, user = shop_of(USERS), by_priority(USERS)[0]
    owner, pool = rec._state.users.codes[user], rec._state.pool
    assert pool is not None
    rec.forget(user)
    assert rec.verify().ok
    testing.pool(pool)[array][pool.count if array == "heaps" else owner] = 3
    assert not rec.verify().ok
    assert not rec.verify(user).ok
