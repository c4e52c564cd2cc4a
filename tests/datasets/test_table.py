"""Any table, with mapped columns."""

from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest
from tests.datasets.tables import rows, write

from unbasket.datasets import DatasetError, read_table


def test_csv_with_mapped_columns(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "when,who,receipt,what\n20,anna,b,milk\n10,anna,a,tea\n10,anna,a,rum\n")
    shop = read_table(file, user="who", basket="receipt", item="what", time="when")
    assert shop.name == "shop"
    assert shop.history.columns == ["user", "basket", "item", "time"]
    assert rows(shop) == [("anna", "a", "tea", 10), ("anna", "a", "rum", 10), ("anna", "b", "milk", 20)]
    assert shop.future is None
    assert shop.skipped == 0


def test_without_time_baskets_are_in_the_order_of_the_file(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item\n1,9,5\n2,7,5\n1,3,6\n1,9,7\n")
    assert rows(read_table(file)) == [(1, 9, 5, 1), (1, 9, 7, 1), (1, 3, 6, 2), (2, 7, 5, 1)]


def test_repeats_become_a_quantity(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item\n1,1,5\n1,1,5\n1,1,6\n")
    assert read_table(file).history.select("item", "quantity").rows() == [(5, 2), (6, 1)]


def test_a_basket_has_one_time_its_earliest(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item,time\n1,1,5,30\n1,1,6,20\n1,2,5,25\n")
    assert rows(read_table(file, time="time")) == [(1, 1, 5, 20), (1, 1, 6, 20), (1, 2, 5, 25)]


def test_leading_zeros_are_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item\n007,1,5\n7,1,6\n")
    assert rows(read_table(file)) == [("007", 1, 5, 1), ("7", 1, 6, 1)]


def test_integers_beyond_64_bits_stay_text(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item\n9223372036854775808,1,5\n")
    assert rows(read_table(file)) == [("9223372036854775808", 1, 5, 1)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1700000000", 1700000000),
        ("-5", -5),
        ("2023-11-14", 1699920000),
        ("2023-11-14 22:13", 1699999980),
        ("2023-11-14 22:13:20", 1700000000),
        ("2023-11-14T22:13:20.75", 1700000000),
        ("2023-11-14T22:13:20Z", 1700000000),
        ("2023-11-14T23:13:20+01:00", 1700000000),
    ],
)
def test_times_in_text(tmp_path: Path, text: str, seconds: int) -> None:
    file = write(tmp_path / "shop.csv", f"user,basket,item,time\n1,1,5,{text}\n")
    assert read_table(file, time="time").history["time"].to_list() == [seconds]


def test_times_in_a_format_of_the_shop(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item,time\n1,1,5,14.11.2023 22:13\n")
    shop = read_table(file, time="time", time_format="%d.%m.%Y %H:%M")
    assert shop.history["time"].to_list() == [1699999980]


@pytest.mark.parametrize(
    ("time", "seconds"),
    [(7, 7), (date(2023, 11, 14), 1699920000), (datetime(2023, 11, 14, 22, 13), 1699999980)],
)
def test_parquet_keeps_text_and_integers_apart(tmp_path: Path, time: object, seconds: int) -> None:
    file = tmp_path / "shop.parquet"
    pl.DataFrame({"u": ["01"], "b": [3], "i": ["7"], "t": [time]}).write_parquet(file)
    shop = read_table(file, user="u", basket="b", item="i", time="t")
    assert rows(shop) == [("01", 3, "7", seconds)]


def test_the_day_may_be_the_basket(tmp_path: Path) -> None:
    file = tmp_path / "shop.parquet"
    pl.DataFrame({"user": [1], "day": [date(2023, 11, 14)], "item": [2]}).write_parquet(file)
    assert rows(read_table(file, basket="day", time="day")) == [(1, "2023-11-14", 2, 1699920000)]


def test_ndjson_with_lists_of_items(tmp_path: Path) -> None:
    file = write(
        tmp_path / "events.ndjson",
        '{"user": "a", "basket": 1, "items": ["x", "y"], "time": 5}\n\n'
        '{"user": "a", "basket": 2, "items": ["y"], "time": 4}\n',
    )
    shop = read_table(file, item="items", time="time")
    assert rows(shop) == [("a", 2, "y", 4), ("a", 1, "x", 5), ("a", 1, "y", 5)]


def test_an_empty_item_in_a_list_is_named_or_skipped(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.ndjson", '{"user": 1, "basket": 1, "item": ["x", "", "y"]}\n')
    with pytest.raises(DatasetError, match=r"line 1: no usable item in .*'item': ''"):
        read_table(file)
    shop = read_table(file, skip_bad=True)
    assert (rows(shop), shop.skipped) == ([(1, 1, "x", 1), (1, 1, "y", 1)], 1)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (",1,5,1", r"line 4: no usable user in .*'user': None"),
        ("1,,5,1", r"line 4: no usable basket"),
        ('1,1,"",1', r"line 4: no usable item in .*'item': ''"),
        ("1", r"line 4: no usable basket and item and time"),
        ("1,1,5,soon", r"line 4: no usable time in .*'time': 'soon'"),
        ("1,1,5,2023-11-14", r"line 4: no usable time in .*'time': '2023-11-14'"),
    ],
)
def test_a_bad_line_is_named_or_skipped_and_counted(tmp_path: Path, line: str, complaint: str) -> None:
    # the quoted line break moves the bad record from line 3 to line 4
    file = write(tmp_path / "shop.csv", f'user,basket,item,time\n1,1,"a\nb",1\n{line}\n1,2,6,2\n')
    with pytest.raises(DatasetError, match=complaint):
        read_table(file, time="time")
    shop = read_table(file, time="time", skip_bad=True)
    assert shop.skipped == 1
    assert rows(shop) == [(1, 1, "a\nb", 1), (1, 2, "6", 2)]


@pytest.mark.parametrize("column", ["user", "basket", "item", "time"])
def test_a_column_of_fractions_is_refused(tmp_path: Path, column: str) -> None:
    file = tmp_path / "shop.parquet"
    frame = pl.DataFrame({"user": [1], "basket": [1], "item": [1], "time": [1]})
    frame.with_columns(pl.col(column).cast(pl.Float64)).write_parquet(file)
    with pytest.raises(DatasetError, match=f"column {column} holds Float64"):
        read_table(file, time="time")


def test_a_folder_is_read_as_one_file(tmp_path: Path) -> None:
    write(tmp_path / "b.csv", "user,basket,item\n1,7,tea\n1,8,milk\n1,8,rum\n")
    write(tmp_path / "a.csv", "user,basket,item\n1,9,milk\n1,8,rum\n")
    shop = read_table(tmp_path)
    expected = [(1, 9, "milk", 1, 1), (1, 8, "rum", 2, 2), (1, 8, "milk", 2, 1), (1, 7, "tea", 3, 1)]
    assert shop.history.select("user", "basket", "item", "time", "quantity").rows() == expected
    assert shop.name == tmp_path.name


def test_a_basket_in_two_files_has_its_earliest_time(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "user,basket,item,time\n1,1,5,30\n1,2,5,25\n")
    write(tmp_path / "b.csv", "user,basket,item,time\n1,1,6,20\n")
    assert rows(read_table(tmp_path, time="time")) == [(1, 1, 5, 20), (1, 1, 6, 20), (1, 2, 5, 25)]


def test_ids_of_csv_files_in_a_folder_are_alike(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", "user,basket,item\n1,1,5\n")
    write(tmp_path / "b.csv", "user,basket,item\nx,1,5\n")
    assert rows(read_table(tmp_path)) == [("1", 1, 5, 1), ("x", 1, 5, 1)]
    pl.DataFrame({"user": [1], "basket": [1], "item": [1]}).write_parquet(tmp_path / "c.parquet")
    with pytest.raises(DatasetError, match=r"c\.parquet: a user is of type Int64 here, but String in .*a\.csv"):
        read_table(tmp_path)


def test_a_folder_counts_the_rows_of_all_its_files(tmp_path: Path) -> None:
    for name in "abc":
        pl.DataFrame({"user": [1] * 100, "basket": range(100), "item": [1] * 100}).write_parquet(
            tmp_path / f"{name}.parquet"
        )
    calls: list[tuple[int, int | None]] = []
    read_table(tmp_path, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1] == (300, 300)
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)


def test_a_folder_without_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"no file in it has one of the endings \.csv"):
        read_table(tmp_path)
