"""The CSV pairs of the original TIFU-kNN release."""

from pathlib import Path

import pytest

from unbasket.datasets import DatasetError, load, read_tifuknn

HEADER = "CUSTOMER_ID,ORDER_NUMBER,MATERIAL_NUMBER\n"


def pair(folder: Path, history: str, future: str) -> Path:
    (folder / "VS_history_order.csv").write_text(HEADER + history)
    (folder / "VS_future_order.csv").write_text(HEADER + future)
    return folder / "VS_history_order.csv"


def test_a_pair_in_the_order_of_the_file(tmp_path: Path) -> None:
    dataset = load(pair(tmp_path, "1,8,30\n1,8,20\n1,2,30\n2,1,20\n", "1,9,20\n2,2,40\n"))
    assert dataset.history.rows() == [(1, 8, 30, 1), (1, 8, 20, 1), (1, 2, 30, 2), (2, 1, 20, 1)]
    assert dataset.future is not None
    assert dataset.future.rows() == [(1, 9, 20, 3), (2, 2, 40, 2)]


def test_several_future_baskets_next_and_union(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n1,3,20\n1,3,30\n")
    following, union = read_tifuknn(history), read_tifuknn(history, future="union")
    assert following.future is not None
    assert following.future.rows() == [(1, 2, 20, 2)]
    assert union.future is not None
    assert union.future.rows() == [(1, 2, 20, 2, 2), (1, 2, 30, 2, 1)]


def test_ids_are_integers_in_both_files_or_in_none(tmp_path: Path) -> None:
    dataset = read_tifuknn(pair(tmp_path, "1,1,30\n", "1,2,x30\n"))
    assert dataset.future is not None
    assert dataset.history.rows() == [(1, 1, "30", 1)]
    assert dataset.future.rows() == [(1, 2, "x30", 2)]


def test_a_bad_line_of_either_file_is_named_or_counted(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n1,,30\n", "1,2,20\n,2,20\n")
    with pytest.raises(DatasetError, match=r"VS_history_order\.csv, line 3: no usable basket"):
        read_tifuknn(history)
    assert read_tifuknn(history, skip_bad=True).skipped == 2
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n,2,20\n")
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv, line 3: no usable user"):
        read_tifuknn(history)


def test_a_missing_column_or_partner_is_named(tmp_path: Path) -> None:
    history = pair(tmp_path, "1,1,30\n", "1,2,20\n")
    (tmp_path / "VS_future_order.csv").write_text("CUSTOMER_ID,ORDER_NUMBER\n1,1\n")
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv: no column MATERIAL_NUMBER"):
        read_tifuknn(history)
    (tmp_path / "VS_future_order.csv").unlink()
    with pytest.raises(DatasetError, match=r"VS_future_order\.csv: no such file"):
        read_tifuknn(history)
    with pytest.raises(DatasetError, match="the future file must be given"):
        read_tifuknn(history.rename(tmp_path / "VS.csv"))
