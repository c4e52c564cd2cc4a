"""Files of all kinds, read as tables: columns, encodings and damaged lines, which `lines` finds."""

import gzip
from pathlib import Path

import polars as pl
import pytest
from tests.datasets.tables import rows, write

from unbasket.datasets import DatasetError, read_table
from unbasket.datasets.source import Text


def test_separator_byte_order_mark_quotes_and_gzip(tmp_path: Path) -> None:
    file = tmp_path / "shop.csv.gz"
    with gzip.open(file, "wt", encoding="utf-8-sig") as stream:
        stream.write('user;basket;item\n1;1;"milk; whole"\n')
    assert rows(read_table(file, separator=";")) == [(1, 1, "milk; whole", 1)]


def test_blank_lines_are_no_rows(tmp_path: Path) -> None:
    shop = read_table(write(tmp_path / "shop.csv", "user,basket,item\n1,1,5\n\n1,2,6\n\n"))
    assert rows(shop) == [(1, 1, 5, 1), (1, 2, 6, 2)]
    assert shop.skipped == 0


def test_a_missing_column_is_named_with_the_columns_found(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,order,item\n1,1,5\n")
    with pytest.raises(DatasetError, match=r"shop\.csv: no column basket\. Columns found: user, order, item"):
        read_table(file)


def test_a_line_with_too_many_fields_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.csv", "user,basket,item,price\n1,1,5,9\n1,2,milk, whole,9\n")
    with pytest.raises(DatasetError, match=r"shop\.csv: line 3 has 5 fields, the header has 4"):
        read_table(file)


def test_a_line_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    file = tmp_path / "shop.csv"
    file.write_bytes(b"user,basket,item\n1,1,5\n1,2,caf\xe9\n")
    with pytest.raises(DatasetError, match="line 3 is not UTF-8"):
        read_table(file)


def test_a_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.ndjson", '{"user": 1, "basket": 1, "item": 1}\n\n{"user": 1, \n')
    with pytest.raises(DatasetError, match="line 3 is not a JSON object"):
        read_table(file)


def test_a_bad_ndjson_row_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "shop.jsonl", '{"user": 1, "basket": 1, "item": 1}\n\n{"user": 1, "basket": 2}\n')
    with pytest.raises(DatasetError, match=r"line 3: no usable item in .*'basket': 2"):
        read_table(file)


def test_a_bad_parquet_row_is_named(tmp_path: Path) -> None:
    file = tmp_path / "shop.parquet"
    pl.DataFrame({"user": [1, None], "basket": [1, 2], "item": [1, 2]}).write_parquet(file)
    with pytest.raises(DatasetError, match="row 2: no usable user"):
        read_table(file)


@pytest.mark.parametrize("name", ["shop.csv", "shop.ndjson"])
def test_an_empty_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match="the file is empty"):
        read_table(write(tmp_path / name, ""))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"shop\.parquet: .*parquet"):
        read_table(write(tmp_path / "shop.parquet", "user,basket,item\n"))


def test_an_absent_or_unknown_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"absent\.csv: no such file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(DatasetError, match=r"Known endings: \.csv"):
        read_table(write(tmp_path / "shop.xlsx", "x"))


@pytest.mark.parametrize("ending", ["csv", "parquet", "ndjson"])
def test_progress_counts_rows_to_the_end(tmp_path: Path, ending: str) -> None:
    frame = pl.DataFrame({"user": [1] * 500, "basket": range(500), "item": [1] * 500})
    file = tmp_path / f"shop.{ending}"
    getattr(frame, f"write_{ending}")(file)
    calls: list[tuple[int, int | None]] = []
    read_table(file, progress=lambda done, total: calls.append((done, total)))
    assert calls[-1][0] == 500
    assert [done for done, _ in calls] == sorted(done for done, _ in calls)
    assert all(total is not None and 400 < total < 600 for _, total in calls)


def test_a_text_in_memory() -> None:
    text = Text("standard input", "csv", b"user,basket,item\n1,1,5\n1,2,\n")
    with pytest.raises(DatasetError, match=r"^standard input, line 3: no usable item"):
        read_table(text)
    assert rows(read_table(text, skip_bad=True)) == [(1, 1, 5, 1)]
    with pytest.raises(DatasetError, match=r"^standard input: line 2 is not a JSON object"):
        read_table(Text("standard input", "ndjson", b'{"user": 1, "basket": 1, "item": 1}\n{\n'))
