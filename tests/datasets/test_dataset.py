"""`Dataset`, its statistics, and the split of last baskets."""

import polars as pl
import pytest

from unbasket.datasets import Dataset, DatasetError, hold_out_last, statistics


def history() -> pl.DataFrame:
    return pl.DataFrame(
        {
            "user": ["a", "a", "a", "a", "b", "b"],
            "basket": [1, 1, 3, 2, 9, 9],
            "item": [10, 11, 10, 12, 10, 13],
            "time": [5, 5, 7, 7, 1, 1],
        }
    )


def test_statistics_by_hand() -> None:
    found = Dataset("shop", history()).statistics()
    assert (found.users, found.items, found.baskets, found.purchases) == (2, 4, 4, 6)
    assert (found.basket_size, found.basket_size_with_repeats, found.baskets_per_user) == (1.5, 1.5, 2.0)


def test_repeats_count_in_their_own_average_only() -> None:
    found = statistics(history().with_columns(quantity=pl.Series([1, 3, 1, 1, 1, 1])))
    assert (found.basket_size, found.basket_size_with_repeats) == (1.5, 2.0)


def test_statistics_of_nothing_are_zero() -> None:
    found = statistics(history().clear())
    assert (found.users, found.baskets, found.basket_size, found.baskets_per_user) == (0, 0, 0.0, 0.0)


def test_the_last_basket_is_by_time_then_by_id() -> None:
    split = hold_out_last(Dataset("shop", history(), notes="A shop."))
    assert split.future is not None
    assert split.future.rows() == [("a", 3, 10, 7)]
    assert split.history.rows() == [
        ("a", 1, 10, 5),
        ("a", 1, 11, 5),
        ("a", 2, 12, 7),
        ("b", 9, 10, 1),
        ("b", 9, 13, 1),
    ]
    assert split.notes.startswith("A shop. Future: each user's last history basket")


def test_holding_out_leaves_an_earlier_future_out() -> None:
    again = hold_out_last(hold_out_last(Dataset("shop", history())))
    assert again.future is not None
    assert again.future.rows() == [("a", 2, 12, 7)]


@pytest.mark.parametrize("field", ["history", "future", "items"])
def test_a_frame_without_a_column_is_refused(field: str) -> None:
    frames = {"history": history(), "future": history(), "items": None, field: history().drop("item")}
    with pytest.raises(DatasetError, match=f"shop: {field} has no column item"):
        Dataset("shop", **frames)  # type: ignore[arg-type]
