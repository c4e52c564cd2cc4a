"""Datasets: readers that turn every source into the same type.

    file, folder, package, seed -> reader -> Dataset(history, future, items, params)

`load` takes the name of a published dataset or a path and finds the reader; readers can be called directly. Files are
streamed. A file in an unknown format raises a `DatasetError` that names the missing column or the bad line.
"""

from unbasket.datasets.dataset import Dataset, Statistics, hold_out_last, statistics
from unbasket.datasets.generated import SENSITIVE_CATEGORIES, generate
from unbasket.datasets.preparation import prepare
from unbasket.datasets.published import published_path, read_published, write_published
from unbasket.datasets.raw import (
    read_complete_journey,
    read_coop,
    read_instacart,
    read_tafeng,
    read_tifuknn,
    read_valued_shoppers,
)
from unbasket.datasets.registry import PUBLISHED, Location, load, locate
from unbasket.datasets.table import read_table
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError, MissingDatasetError

__all__ = [
    "PUBLISHED",
    "SENSITIVE_CATEGORIES",
    "Dataset",
    "DatasetError",
    "Location",
    "MissingDatasetError",
    "ReadingProgress",
    "Statistics",
    "generate",
    "hold_out_last",
    "load",
    "locate",
    "prepare",
    "published_path",
    "read_complete_journey",
    "read_coop",
    "read_instacart",
    "read_published",
    "read_table",
    "read_tafeng",
    "read_tifuknn",
    "read_valued_shoppers",
    "statistics",
    "write_published",
]
