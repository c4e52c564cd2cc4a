from collections import Counter
from random import Random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.baselines import BASELINES, Ranker, g_topfreq, gp_topfreq, p_topfreq
from unbasket.evaluation.protocols import Split

SCHEMA = {"user": pl.Int64, "basket": pl.Int64, "item": pl.Int64}
PURCHASES = st.lists(st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(1, 7)), max_size=40)


def frame(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def split(queries: list[int], candidates: list[int]) -> Split:
    return Split(pl.Series(queries, dtype=pl.Int64), pl.Series(candidates, dtype=pl.Int64))


def lists(ranker: Ranker, rows: list[tuple[int, int, int]], users: Split, n: int) -> dict[int, list[int]]:
    return dict(ranker(frame(rows), users, n).select("user", "items").iter_rows())


# User 1 bought item 30 twice, 20 and 40 once; user 2 bought 40 twice, 10 and 50 once.
SHOP = [(1, 1, 30), (1, 2, 30), (1, 2, 20), (1, 2, 40), (2, 1, 40), (2, 2, 40), (2, 2, 10), (2, 2, 50)]
BOTH = split([1, 2], [1, 2])


def test_global_list() -> None:
    """40 is in three baskets, 30 in two; 10, 20 and 50 in one each, so by id."""
    assert lists(g_topfreq, SHOP, BOTH, 4) == {1: [40, 30, 10, 20], 2: [40, 30, 10, 20]}


def test_personal_list_breaks_ties_by_popularity_then_id() -> None:
    assert lists(p_topfreq, SHOP, BOTH, 3) == {1: [30, 40, 20], 2: [40, 10, 50]}
    assert lists(p_topfreq, SHOP, BOTH, 2) == {1: [30, 40], 2: [40, 10]}


def test_personal_list_filled_with_the_global_one() -> None:
    assert lists(gp_topfreq, SHOP, BOTH, 4) == {1: [30, 40, 20, 10], 2: [40, 10, 50, 30]}
    assert lists(gp_topfreq, SHOP, BOTH, 9) == {1: [30, 40, 20, 10, 50], 2: [40, 10, 50, 30, 20]}


def test_an_item_counts_once_per_basket() -> None:
    rows = [(1, 1, 5), (1, 1, 5), (1, 1, 5), (1, 2, 4), (1, 3, 4)]
    for ranker in BASELINES.values():
        assert lists(ranker, rows, split([1], [1]), 2) == {1: [4, 5]}


def test_basket_ids_are_the_users_own() -> None:
    """Basket 1 of user 1 and basket 1 of user 2 are two baskets."""
    rows = [(1, 1, 5), (2, 1, 5), (1, 1, 4)]
    assert lists(g_topfreq, rows, BOTH, 1) == {1: [5], 2: [5]}


def test_only_candidates_make_an_item_popular() -> None:
    """Under a split by users, a query's baskets say nothing about other queries."""
    rows = [(1, 1, 7), (2, 1, 8), (2, 2, 8), (3, 1, 6), (3, 1, 8)]
    users = split([2, 3], [1])
    assert lists(g_topfreq, rows, users, 3) == {2: [7], 3: [7]}
    assert lists(p_topfreq, rows, users, 3) == {2: [8], 3: [6, 8]}
    assert lists(gp_topfreq, rows, users, 3) == {2: [8, 7], 3: [6, 8, 7]}


def test_a_user_without_history_keeps_a_row() -> None:
    users = split([2, 99], [1, 2])
    assert lists(p_topfreq, SHOP, users, 2) == {2: [40, 10], 99: []}
    assert lists(gp_topfreq, SHOP, users, 2) == {2: [40, 10], 99: [40, 30]}


def test_ids_may_be_strings() -> None:
    history = frame(SHOP).cast(pl.String)
    users = Split(pl.Series(["1"]), pl.Series(["1", "2"]))
    assert gp_topfreq(history, users, 4)["items"].to_list() == [["30", "40", "20", "10"]]


@settings(deadline=None)  # a busy machine is not a failure
@given(PURCHASES, st.integers(1, 9), st.randoms())
def test_baselines_equal_naive_ones(rows: list[tuple[int, int, int]], n: int, random: Random) -> None:
    queries, candidates = [1, 2, 3], [2, 3, 4]
    popularity = Counter(item for user, _, item in set(rows) if user in candidates)
    popular = sorted(popularity, key=lambda item: (-popularity[item], item))
    expected: dict[str, dict[int, list[int]]] = {"G-TopFreq": {}, "P-TopFreq": {}, "GP-TopFreq": {}}
    for user in queries:
        own = Counter(item for buyer, _, item in set(rows) if buyer == user)
        mine = sorted(own, key=lambda item: (-own[item], -popularity[item], item))
        expected["G-TopFreq"][user] = popular[:n]
        expected["P-TopFreq"][user] = mine[:n]
        expected["GP-TopFreq"][user] = (mine + [item for item in popular if item not in own])[:n]
    shuffled = random.sample(rows, len(rows))
    for name, ranker in BASELINES.items():
        assert lists(ranker, shuffled, split(queries, candidates), n) == expected[name]


@pytest.mark.parametrize("name", ["G-TopFreq", "P-TopFreq", "GP-TopFreq"])
def test_n_must_be_positive(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="not 0"):
        BASELINES[name](frame(SHOP), BOTH, 0)
