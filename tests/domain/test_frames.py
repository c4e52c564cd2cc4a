"""Frames: every kind of table, every fault of a table, and that an invalid one changes nothing."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import unbasket as ub
from unbasket import Basket, datasets
from unbasket.core.index import MAX_BASKET

PARAMS = ub.Params(group_size=2, basket_decay=0.5, group_decay=0.5, neighbors=2, alpha=0.8)

ROWS = {
    "user": ["ann", "bob", "ann", "ann", "bob"],
    "basket": [2, 1, 2, 1, 1],
    "item": ["tea", "milk", "jam", "tea", "bread"],
    "time": [20, 5, 20, 10, 5],
}


class Stream:
    """An object with the Arrow C stream interface alone."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def in_chunks(table: Any) -> Any:
    return pa.concat_tables([table.slice(row, 1) for row in range(len(table))] or [table])


# As pandas 2 names its frame; in pandas 3, the module is just `pandas`.
OldPandas: Any = type("OldPandas", (pd.DataFrame,), {"__module__": "pandas.core.frame"})

KINDS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "polars": pl.DataFrame,
    "polars lazy": pl.LazyFrame,
    "pandas": pd.DataFrame,
    "pandas of objects": lambda rows: pd.DataFrame(rows).astype({"user": object, "item": object}),
    "pandas nullable": lambda rows: pd.DataFrame(rows).convert_dtypes(),
    "pandas categorical": lambda rows: pd.DataFrame(rows).astype({"user": "category", "item": "category"}),
    "pandas 2": OldPandas,
    "pandas with an index": lambda rows: pd.DataFrame(rows).set_index(pd.Index(range(7, 7 + len(rows["user"])))),
    "arrow": pa.table,
    "arrow in chunks": lambda rows: in_chunks(pa.table(rows)),
    "arrow stream": lambda rows: Stream(pl.DataFrame(rows)),
}
kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())


def recommender() -> ub.Recommender:
    return ub.Recommender(PARAMS)


def table(**columns: Any) -> pl.DataFrame:
    """Return one user's purchases; some columns are given."""
    length = max(len(column) for column in columns.values())
    return pl.DataFrame({"user": ["u"] * length, "basket": [1] * length, "item": list(range(length))} | columns)


def frame_error(frame: Any, **names: Any) -> str:
    """Return the message of the error of a fit, which must change nothing."""
    rec = recommender()
    rec.learn("ann", ["tea"], basket=1)
    before = rec.digest(), rec.users(), rec.items(), rec.history("ann")
    with pytest.raises(ub.InvalidFrameError) as caught:
        rec.fit(frame, **names)
    assert (rec.digest(), rec.users(), rec.items(), rec.history("ann")) == before
    assert rec.verify().ok
    return str(caught.value)


# Kinds of frames ------------------------------------------------------------------------------------------------


@kinds
def test_every_kind_of_frame_with_times(kind: Callable[[dict[str, Any]], Any]) -> None:
    rec = recommender().fit(kind(ROWS), time="time")
    assert rec.history("ann") == [Basket(1, 10, ("tea",)), Basket(2, 20, ("jam", "tea"))]
    assert rec.history("bob") == [Basket(1, 5, ("bread", "milk"))]
    assert rec.verify().ok


@kinds
def test_a_column_named_time_is_found(kind: Callable[[dict[str, Any]], Any]) -> None:
    assert recommender().fit(kind(ROWS)).digest() == recommender().fit(pl.DataFrame(ROWS), time="time").digest()


@kinds
def test_every_kind_of_frame_without_times(kind: Callable[[dict[str, Any]], Any]) -> None:
    rec = recommender().fit(kind({name: ROWS[name] for name in ("user", "basket", "item")}))
    assert rec.history("ann") == [Basket(2, None, ("jam", "tea")), Basket(1, None, ("tea",))]
    assert rec.history("bob") == [Basket(1, None, ("bread", "milk"))]


@pytest.mark.parametrize("kind", ["polars", "polars lazy", "pandas", "arrow", "arrow stream"])
def test_columns_can_have_any_names(kind: str) -> None:
    renamed = dict(zip(["customer", "order", "sku", "when"], ROWS.values(), strict=True))
    rec = recommender().fit(KINDS[kind](renamed), user="customer", basket="order", item="sku", time="when")
    assert rec.digest() == recommender().fit(pl.DataFrame(ROWS)).digest()


@pytest.mark.parametrize("dtype", ["int64", "Int64", "uint8", "object", "category", "string", "str"])
@pytest.mark.parametrize("kind", [pd.DataFrame, OldPandas])
def test_pandas_ids_of_any_whole_or_text_type(kind: Callable[[dict[str, Any]], Any], dtype: str) -> None:
    items = pd.Series([3, 1, 2]).astype("str" if dtype in ("string", "str") else "int64").astype(dtype)
    rec = recommender().fit(kind({"user": [1, 1, 1], "basket": [1, 1, 1], "item": items}))
    assert rec.items() == ([1, 2, 3] if dtype not in ("string", "str") else ["1", "2", "3"])
    assert {type(item) for item in rec.items()} <= {int, str}


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["b", "a"])])
def test_polars_categories_are_texts(dtype: Any) -> None:
    rec = recommender().fit(table(item=["b", "a"]).with_columns(pl.col("item").cast(dtype)))
    assert rec.history("u") == [Basket(1, None, ("a", "b"))]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64])
def test_whole_numbers_of_any_width(dtype: Any) -> None:
    rec = recommender().fit(table(item=pl.Series([7, 100], dtype=dtype)))
    assert rec.items() == [7, 100]


def test_whole_numbers_far_apart() -> None:
    ids = [-(2**63), 2**63 - 1, 0, 5]
    assert recommender().fit(table(item=ids)).items() == sorted(ids)


@pytest.mark.parametrize("first", [-(2**63), -3, 0, 2**63 - 9])
def test_dense_whole_numbers_in_chunks(first: int) -> None:
    numbers = pa.table({"user": [first + 8, first, first + 3, first], "basket": [1, 1, 1, 2], "item": [5, 4, 5, 6]})
    rec = recommender().fit(in_chunks(numbers))
    assert rec.users() == [first, first + 3, first + 8]
    assert [basket.items for basket in rec.history(first)] == [(4,), (6,)]


def test_texts_are_ordered_by_code_point() -> None:
    texts = ["😀", "é", "z", "Z", "\uffff", "10", "9"]
    assert recommender().fit(table(item=texts)).items() == sorted(texts)


def test_fit_returns_the_recommender() -> None:
    rec = recommender()
    assert rec.fit(pl.DataFrame(ROWS)) is rec


# Meaning of the rows --------------------------------------------------------------------------------------------


def test_a_column_of_lists_is_one_basket_per_row() -> None:
    lists = pl.DataFrame({"user": ["u", "u"], "basket": [2, 1], "item": [["b", "a", "b"], ["c"]]})
    expected = [Basket(2, None, ("a", "b")), Basket(1, None, ("c",))]
    assert recommender().fit(lists).history("u") == expected
    assert recommender().fit(lists.to_arrow()).history("u") == expected


def test_a_null_in_a_list_is_an_error() -> None:
    lists = pl.DataFrame({"user": ["u"], "basket": [1], "item": [["b", None]]})
    assert "column 'item' is null" in frame_error(lists)


def test_rows_without_times_are_in_their_order() -> None:
    frame = table(basket=[3, 1, 3, 2, 1], item=list("abcde"))
    baskets = [Basket(3, None, ("a", "c")), Basket(1, None, ("b", "e")), Basket(2, None, ("d",))]
    assert recommender().fit(frame).history("u") == baskets
    assert [b.basket for b in recommender().fit(frame.reverse()).history("u")] == [1, 2, 3]


def test_rows_with_times_may_be_in_any_order() -> None:
    frame = table(basket=[3, 1, 3, 2, 1], item=list("abcde"), time=[7, 7, 7, 1, 7])
    digest = recommender().fit(frame).digest()
    assert [b.basket for b in recommender().fit(frame).history("u")] == [2, 1, 3]
    for seed in range(5):
        assert recommender().fit(frame.sample(fraction=1, shuffle=True, seed=seed)).digest() == digest


def test_repeated_rows_count_once() -> None:
    frame = pl.DataFrame(ROWS)
    rec = recommender().fit(pl.concat([frame, frame, frame]))
    assert rec.digest() == recommender().fit(frame).digest()
    assert rec.popular(1) == [("tea", 2)]


@pytest.mark.parametrize(
    ("times", "seconds"),
    [
        ([date(2024, 1, 2), date(1969, 12, 31)], [1_704_153_600, -86_400]),
        ([datetime(2024, 1, 2, 0, 0, 1), datetime(1970, 1, 1)], [1_704_153_601, 0]),
        ([datetime(2024, 1, 2, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC)], [1_704_153_600, 0]),
    ],
    ids=["dates", "datetimes", "datetimes with a zone"],
)
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, OldPandas, pa.table])
def test_dates_and_datetimes_become_seconds(
    times: list[Any], seconds: list[int], kind: Callable[[dict[str, Any]], Any]
) -> None:
    rows = {"user": ["u", "u"], "basket": [1, 2], "item": [1, 2], "when": times}
    history = recommender().fit(kind(rows), time="when").history("u")
    assert [basket.time for basket in history] == sorted(seconds)
    assert [basket.basket for basket in history] == [2, 1]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2024-01-02", 1_704_153_600),
        ("1969-12-31", -86_400),
        ("2024-01-02 10:00", 1_704_189_600),
        ("2024-01-02T10:00:01", 1_704_189_601),
        ("2024-01-02T10:00:01.750", 1_704_189_601),
        ("2024-01-02T10:00:01Z", 1_704_189_601),
        ("2024-01-02 10:00:01+02:00", 1_704_182_401),
    ],
)
@pytest.mark.parametrize("kind", ["polars", "pandas", "pandas of objects", "pandas categorical", "arrow"])
def test_iso_text_becomes_seconds(kind: str, text: str, seconds: int) -> None:
    rows = {"user": ["u", "u"], "basket": [1, 2], "item": ["a", "b"], "time": [text, "1900-01-01"]}
    history = recommender().fit(KINDS[kind](rows)).history("u")
    assert [(basket.basket, basket.time) for basket in history] == [(2, -2_208_988_800), (1, seconds)]


def test_iso_text_and_dates_are_the_same_history() -> None:
    days = [date(2024, 1, 2), date(2023, 5, 6)]
    rows = {"user": ["u", "u"], "basket": [1, 2], "item": ["a", "b"]}
    as_text = recommender().fit(pl.DataFrame(rows | {"time": [day.isoformat() for day in days]}))
    assert as_text.digest() == recommender().fit(pd.DataFrame(rows | {"time": days})).digest()


def test_pandas_nanoseconds() -> None:
    times = pd.to_datetime(["2024-01-02", "2024-01-01"]).astype("datetime64[ns]")
    rec = recommender().fit(pd.DataFrame({"user": [1, 1], "basket": [1, 2], "item": [1, 2], "time": times}))
    assert [basket.time for basket in rec.history(1)] == [1_704_067_200, 1_704_153_600]


def test_groups_are_filled_from_the_oldest_on() -> None:
    params = ub.Params(group_size=2, grouping="varying", alpha=0.8)
    rec = ub.Recommender(params).fit(
        pl.DataFrame({"user": [1, 1, 1, 2, 2], "basket": [1, 2, 3, 1, 2], "item": [1] * 5})
    )
    assert (rec.groups(1), rec.groups(2)) == ([2, 1], [2])


def test_a_column_of_groups_gives_the_boundaries() -> None:
    frame = table(user=["u"] * 5 + ["v"], basket=[1, 2, 3, 4, 5, 1], batch=["x", "y", "y", "x", "x", "x"])
    rec = ub.Recommender(ub.Params(group_size=3, grouping="varying", alpha=0.8)).fit(frame, group="batch")
    assert (rec.groups("u"), rec.groups("v")) == ([1, 2, 2], [1])
    assert rec.verify().ok


def test_groups_are_refused_where_they_would_be_ignored() -> None:
    frame = table(user=["u"] * 2, basket=[1, 2], batch=["x", "y"])
    for rec in (
        ub.Recommender(ub.Params(group_size=3, alpha=0.8)),
        ub.Recommender(ub.Params(group_size=3, grouping="varying", alpha=0.8)).fit(frame.head(1)),
    ):
        before = rec.digest()
        with pytest.raises(ub.InvalidFrameError, match="group='batch' is for varying groups"):
            rec.fit(frame, group="batch")
        assert rec.digest() == before


def test_the_same_column_can_serve_twice() -> None:
    """One basket per user: the user's id is a basket id as good as any."""
    frame = pl.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    assert recommender().fit(frame, basket="user").history("a") == [Basket("a", None, ("x",))]


@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, OldPandas, pa.table])
def test_no_rows_are_no_users(kind: Callable[[dict[str, Any]], Any]) -> None:
    rec = recommender().fit(kind({"user": [], "basket": [], "item": [], "time": []}))
    assert len(rec) == 0
    assert rec.digest() == recommender().digest()
    assert len(rec.fit(pl.DataFrame(ROWS).clear())) == 0


def test_no_rows_of_lists() -> None:
    empty = pl.DataFrame({"user": ["u"], "basket": [1], "item": [["a"]]}).clear()
    assert len(recommender().fit(empty)) == 0


# On top of existing baskets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_a_fit_on_top_is_as_learning_one_by_one(grouping: Any) -> None:
    params = ub.Params(group_size=2, grouping=grouping, alpha=0.8)
    fitted, learned = ub.Recommender(params), ub.Recommender(params)
    for rec in (fitted, learned):
        rec.learn("ann", ["old"], basket=2, time=20)  # will be edited
        rec.learn("ann", ["soap"], basket=9, time=15)  # stays, between late baskets
        rec.learn("carl", ["soap"], basket=1)  # is not in the frame
    fitted.fit(pl.DataFrame(ROWS))
    learned.learn("ann", ["tea"], basket=1, time=10)
    learned.learn("ann", ["tea", "jam"], basket=2, time=20)
    learned.learn("bob", ["milk", "bread"], basket=1, time=5)
    assert fitted.digest() == learned.digest()
    assert fitted.history("ann") == [
        Basket(1, 10, ("tea",)),
        Basket(9, 15, ("soap",)),
        Basket(2, 20, ("jam", "tea")),
    ]
    assert "old" not in fitted.items()
    assert fitted.verify().ok
    assert fitted.recommend_many() == learned.recommend_many()


def test_a_second_fit_of_the_same_changes_nothing() -> None:
    rec = recommender().fit(pl.DataFrame(ROWS))
    before = rec.digest()
    assert rec.fit(pl.DataFrame(ROWS)).digest() == before
    assert rec.verify().ok


def test_text_baskets_of_known_and_new_users() -> None:
    """Basket ids are stored once and counted: an id must survive until its last basket is forgotten."""
    rec = recommender()
    rec.learn("a", ["x"], basket="b1")
    rec.fit(pl.DataFrame({"user": ["a", "b", "c"], "basket": ["b2", "b1", "b2"], "item": ["y", "z", "w"]}))
    rec.forget("a")
    rec.forget("b")
    assert rec.history("c") == [Basket("b2", None, ("w",))]
    rec.forget("c")
    assert len(rec) == 0
    rec.fit(pl.DataFrame({"user": ["a"], "basket": ["b2"], "item": ["y"]}))
    assert rec.history("a") == [Basket("b2", None, ("y",))]


# Wrong frames ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("column", ["user", "basket", "item"])
@pytest.mark.parametrize("kind", [pl.DataFrame, pd.DataFrame, OldPandas, pa.table])
def test_null_ids(column: str, kind: Callable[[dict[str, Any]], Any]) -> None:
    rows: dict[str, Any] = {"user": ["u"] * 3, "basket": ["b"] * 3, "item": ["a", "b", "c"]}
    rows[column] = ["a", None, None]
    assert f"column '{column}' is null in row 1 (and 2 rows in all)" in frame_error(kind(rows))


@pytest.mark.parametrize("kind", [pd.DataFrame, OldPandas])
def test_nulls_in_pandas_nullable_and_categorical_columns(kind: Callable[[dict[str, Any]], Any]) -> None:
    rows = kind({"user": ["u", "u"], "basket": [1, 1], "item": [1, 2]})
    for dtype in ("Int64", "category"):
        rows["item"] = pd.Series([1, None], dtype=dtype)
        assert "column 'item' is null in row 1" in frame_error(rows)


@pytest.mark.parametrize("column", ["user", "basket", "item"])
@pytest.mark.parametrize(
    ("values", "kind"), [([1.0, 2.0], "Float64"), ([True, False], "Boolean"), ([b"a", b"b"], "Binary")]
)
def test_ids_of_other_types(column: str, values: list[Any], kind: str) -> None:
    message = frame_error(table(**{column: values}))
    assert f"column '{column}' has type {kind}; ids must be whole numbers or text" in message


def test_a_column_of_numbers_and_texts_is_one_of_texts() -> None:
    rows = {"user": ["u", "u"], "basket": [1, 1], "item": ["a", 1]}
    for frame in (pd.DataFrame(rows), OldPandas(rows)):
        assert ub.Recommender().fit(frame).items() == ["1", "a"]
    assert "column 'item'" in frame_error(pd.DataFrame({**rows, "item": ["a", 1.5]}))
    assert "column 'item'" in frame_error(pl.DataFrame(rows, schema_overrides={"item": pl.Object}))


def test_empty_text_ids() -> None:
    assert "column 'item' is empty text in row 1" in frame_error(table(item=["a", "", "b"]))


def test_ids_beyond_64_bits() -> None:
    message = frame_error(table(item=pl.Series([1, 2**63], dtype=pl.UInt64)))
    assert "column 'item' has ids beyond 64 bits" in message


@pytest.mark.parametrize("column", ["user", "basket", "item"])
@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame, pd.DataFrame, pa.table])
def test_missing_columns(column: str, kind: Callable[[dict[str, Any]], Any]) -> None:
    rows = {name: values for name, values in ROWS.items() if name != column}
    message = frame_error(kind(rows))
    assert f"the frame has no column '{column}'; it has {list(rows)}" in message


def test_missing_columns_by_other_names() -> None:
    assert "no column 'when'" in frame_error(pl.DataFrame(ROWS), time="when")
    assert "no column 'batch'" in frame_error(pl.DataFrame(ROWS), group="batch")


@pytest.mark.parametrize(
    "frame",
    [None, 3, "shop.csv", [("u", 1, "a")], {"user": [1]}, np.zeros((2, 3)), pa.chunked_array([[1]]), pl.Series([1])],
)
def test_other_objects_are_no_frames(frame: object) -> None:
    assert f"not {type(frame).__name__}" in frame_error(frame)


def test_more_than_one_time_of_a_basket() -> None:
    message = frame_error(table(user=["u", "v", "u"], time=[1, 2, 3]))
    assert message.startswith("basket 1 of user 'u' has more than one time, such as ")
    assert "1 in row 0" in message or "3 in row 2" in message


def test_the_same_basket_id_of_two_users_may_have_two_times() -> None:
    rec = recommender().fit(table(user=["u", "v"], time=[1, 2]))
    assert rec.history("u") + rec.history("v") == [Basket(1, 1, (0,)), Basket(1, 2, (1,))]


@pytest.mark.parametrize(
    ("times", "problem"),
    [
        ([1, None], "is null in row 1"),
        ([1.0, 1.0], "has type Float64; times must be whole numbers"),
        (["2024-01-31", "31.01.2024"], "is '31.01.2024' in row 1, which is not a date such as 2024-01-31"),
        (["2024-02-30", "2024-02-30"], "is '2024-02-30' in row 0"),
        (["1700000000", "1700000000"], "is '1700000000' in row 0"),
        ([True, True], "has type Boolean; times must be whole numbers"),
        ([-(2**63), -(2**63)], f"the time {-(2**63)} is out of range"),
        (pl.Series([1, 2**63], dtype=pl.UInt64), ""),
    ],
)
def test_wrong_times(times: Any, problem: str) -> None:
    message = frame_error(table(time=times))
    assert "column 'time'" in message
    assert problem in message


def test_too_large_a_basket() -> None:
    largest = pl.DataFrame({"user": "u", "basket": 7, "item": range(MAX_BASKET)})
    assert len(recommender().fit(largest).items()) == MAX_BASKET
    message = frame_error(pl.DataFrame({"user": "u", "basket": 7, "item": range(MAX_BASKET + 1)}))
    assert f"basket 7 of user 'u' has {MAX_BASKET + 1} items; the largest basket may have {MAX_BASKET}" in message


def test_a_group_column_may_not_be_null() -> None:
    assert "column 'batch' is null in row 1" in frame_error(table(batch=[1, None]), group="batch")


# Frames out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("users", [None, ["bob", "ann"], ["bob"], []])
def test_a_frame_of_recommendations_equals_recommend_many(users: list[str] | None) -> None:
    rec = recommender().fit(pl.DataFrame(ROWS))
    expected = [
        (user, item, score, rank)
        for user, answer in rec.recommend_many(users, 2).items()
        for rank, (item, score) in enumerate(answer, 1)
    ]
    frame = rec.recommend_frame(users, 2)
    assert frame.columns == ["user", "item", "score", "rank"]
    assert frame.rows() == expected
    assert len(frame) == 2 * len(rec.users() if users is None else users)


def test_frame_of_whole_number_ids_has_numbers() -> None:
    frame = recommender().fit(table(user=[7, 7])).recommend_frame()
    assert frame.schema == {"user": pl.Int64, "item": pl.Int64, "score": pl.Float64, "rank": pl.Int64}


def test_a_frame_takes_the_types_of_the_engine() -> None:
    rec = recommender()
    rec.learn(17, ["1", "a"], basket=2)
    rows = {"user": ["17", "9", "10", "9"], "basket": ["10", "9", "9", "10"], "item": 1, "time": [5, 5, 5, 5]}
    rec.fit(pl.DataFrame(rows))
    assert rec.users() == [9, 10, 17]
    assert rec.items() == ["1", "a"]
    assert [basket.basket for basket in rec.history(9)] == [9, 10]  # at the same time, by number
    assert rec.verify().ok
    with pytest.raises(ub.InvalidIdError, match="user id 'A-5' is not written as a whole number"):
        rec.fit(pl.DataFrame({**rows, "user": ["20", "21", "A-5", "22"]}))
    assert rec.users() == [9, 10, 17]


RETURNED = {
    "user": ["ann", "bob", "ann", "ann", "ann", "ann", "ann", "bob"],
    "basket": [2, 1, 1, 1, 1, 3, 1, 4],
    "item": ["bag", "milk", "tea", "jam", "gin", "jam", "gin", "rum"],
    "pieces": [0.0, 1.0, 1.0, 1.5, 0.3, -1.5, -0.3, -1.0],
}


@kinds
@pytest.mark.parametrize("timed", [True, False])
def test_quantities_mean_the_same_as_at_the_terminal(
    kind: Callable[[dict[str, Any]], Any], timed: bool, tmp_path: Path
) -> None:
    rows = {**RETURNED, "time": [20, 5, 10, 10, 10, 30, 10, 6]} if timed else RETURNED
    pl.DataFrame(rows).write_csv(tmp_path / "sales.csv")
    table = datasets.read_table(tmp_path / "sales.csv", quantity="pieces", time="time" if timed else None)
    expected = ub.Recommender(PARAMS).fit(table.history if timed else table.history.drop("time"))
    rec = ub.Recommender(PARAMS).fit(kind(rows), quantity="pieces")
    assert rec.users() == ["ann", "bob"]
    assert [basket.items for basket in rec.history("ann")] == [("tea",)]
    assert [rec.history(user) for user in rec.users()] == [expected.history(user) for user in expected.users()]


def test_the_order_of_baskets_is_that_of_their_first_rows_even_if_these_are_no_purchases() -> None:
    rows = {"user": [1, 1, 1], "basket": [9, 4, 9], "item": ["bag", "tea", "gin"], "pieces": [0, 1, 1]}
    rec = ub.Recommender(PARAMS).fit(pl.DataFrame(rows), quantity="pieces")
    assert [basket.basket for basket in rec.history(1)] == [9, 4]


@pytest.mark.parametrize(
    ("pieces", "complaint"),
    [
        ([1, None], "column 'pieces' is None in row 1; give every row a quantity"),
        ([float("nan"), 1.0], "column 'pieces' is nan in row 0"),
        (["1", "2"], "column 'pieces' has type String; quantities must be numbers"),
        (None, "has no column 'pieces'"),
    ],
)
def test_a_bad_quantity_is_named(pieces: list[Any] | None, complaint: str) -> None:
    rows: dict[str, list[Any]] = {"user": [1, 1], "basket": [1, 1], "item": [1, 2]}
    frame = pl.DataFrame(rows if pieces is None else {**rows, "pieces": pieces})
    rec = ub.Recommender(PARAMS)
    with pytest.raises(ub.InvalidFrameError, match=re.escape(complaint)):
        rec.fit(frame, quantity="pieces")
    assert len(rec) == 0
