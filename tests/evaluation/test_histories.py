"""Purchases of some users, as frames and as baskets."""

import polars as pl

from unbasket.evaluation.histories import baskets_of, of_users

HISTORY = pl.DataFrame(
    [(1, 8, 10, 5), (2, 1, 10, 1), (1, 2, 11, 5), (1, 5, 12, 4), (1, 8, 13, 5)],
    ["user", "basket", "item", "time"],
    orient="row",
)


def test_users_keep_their_order_of_rows() -> None:
    assert of_users(HISTORY, pl.Series([1]))["item"].to_list() == [10, 11, 12, 13]


def test_baskets_are_by_time_and_id_or_by_first_rows() -> None:
    assert baskets_of(HISTORY, pl.Series([1])) == {1: [[12], [11], [10, 13]]}
    assert baskets_of(HISTORY.drop("time"), pl.Series([1, 2])) == {1: [[10, 13], [11], [12]], 2: [[10]]}
    assert baskets_of(HISTORY, pl.Series([], dtype=pl.Int64)) == {}
