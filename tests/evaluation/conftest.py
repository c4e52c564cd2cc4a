"""The real data that some tests measure themselves against."""

import os
from pathlib import Path

import polars as pl
import pytest

from unbasket.evaluation.splits import Holdout


@pytest.fixture(scope="session")
def tafeng() -> Holdout:
    """TaFeng, from the directory UNBASKET_DATA or from beside the repository."""
    repository = Path(__file__).parents[2]
    path = Path(os.environ.get("UNBASKET_DATA", repository.parent / "shared" / "data")) / "tafeng.parquet"
    if not path.exists():
        pytest.skip(f"{path} is not there: set UNBASKET_DATA to the directory of the datasets")
    names = {"user_id": "user", "basket_id": "basket", "item_id": "item", "position": "time"}
    frame = pl.read_parquet(path).rename(names)
    parts = (frame.filter(pl.col("split") == split).select(names.values()) for split in ("history", "future"))
    return Holdout(*parts)
