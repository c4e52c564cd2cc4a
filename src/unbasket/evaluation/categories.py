"""Categories of items, as a JSON file, a mapping, or the catalog of a dataset."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from unbasket.errors import InvalidRequestError


def read_categories(source: Any, like: pl.DataType) -> pl.DataFrame:
    """Return the columns item and category from a JSON file or a mapping of categories to items, or from a catalog.

    `like` is the type of the items in the data: JSON may have texts for numbers. An item has one category.
    """
    if isinstance(source, pl.DataFrame):
        pairs = source.select("item", pl.col("category").cast(pl.String)).drop_nulls()
    else:
        rows = [(item, str(category)) for category, items in _mapping(source).items() for item in items]
        pairs = pl.DataFrame(rows, ["item", "category"], orient="row", strict=False)
    try:
        pairs = pairs.cast({"item": like}).unique()
    except pl.exceptions.PolarsError as error:
        raise InvalidRequestError(f"the items of the categories are not like those of the data: {error}") from error
    twice = pairs.filter(pl.col("item").is_duplicated()).sort("item", "category")
    if twice.height:
        item, first, second = twice["item"][0], *twice["category"][:2]
        raise InvalidRequestError(f"item {item!r} is in the categories {first!r} and {second!r}. Give each item one")
    return pairs


def _mapping(source: Any) -> Mapping[Any, list[Any]]:
    name = str(source) if isinstance(source, str | Path) else "categories"
    try:
        raw = Path(source).read_bytes() if isinstance(source, str | Path) else msgspec.json.encode(source)
        return msgspec.json.decode(raw, type=dict[str, list[str | int]])
    except OSError as error:
        raise InvalidRequestError(f"cannot read the categories {name}: {error.strerror}") from error
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError) as error:
        raise InvalidRequestError(f"{name} has no categories ({error}). Give an object: category -> items") from error
