"""Categories from a file, a mapping, and a catalog."""

import json
from pathlib import Path

import polars as pl
import pytest

from unbasket.errors import InvalidRequestError
from unbasket.evaluation.categories import read_categories

PAIRS = [(1, "dairy"), (2, "dairy"), (3, "wine")]


def pairs(source: object) -> list[tuple[object, ...]]:
    return sorted(read_categories(source, pl.Int64()).rows())


def test_a_file_a_mapping_and_a_catalog_say_the_same(tmp_path: Path) -> None:
    path = tmp_path / "categories.json"
    path.write_text(json.dumps({"dairy": [1, "2"], "wine": ["3"]}))
    assert pairs(path) == PAIRS
    assert pairs({"dairy": [1, 2], "wine": [3]}) == PAIRS
    catalog = pl.DataFrame({"item": [1, 2, 3, 4], "name": "x", "category": ["dairy", "dairy", "wine", None]})
    assert pairs(catalog) == PAIRS


def test_bad_categories_are_named(tmp_path: Path) -> None:
    path = tmp_path / "categories.json"
    with pytest.raises(InvalidRequestError, match="cannot read the categories"):
        read_categories(path, pl.Int64())
    path.write_text('{"dairy": 3}')
    with pytest.raises(InvalidRequestError, match=r"categories.json has no categories .*category -> items"):
        read_categories(path, pl.Int64())
    with pytest.raises(InvalidRequestError, match="not like those of the data"):
        read_categories({"dairy": ["milk"]}, pl.Int64())
    with pytest.raises(InvalidRequestError, match="item 1 is in the categories 'a' and 'b'"):
        read_categories({"a": [1], "b": [1]}, pl.Int64())
