"""Preparation of published datasets: from a raw download to the Parquet file that `load` finds by its name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl

from unbasket.datasets import raw
from unbasket.datasets.dataset import Dataset, hold_out_last
from unbasket.datasets.published import PREPARED, data_folders, write_published
from unbasket.datasets.purchases import one_future
from unbasket.datasets.source import columns_of
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError
from unbasket.files import replacing

_READERS: dict[
    str, Callable[..., Dataset]
] = {  # with about the paper's share of the users, where it uses a part of them
    "tafeng": raw.read_tafeng,
    "instacart": partial(raw.read_instacart, sample=0.1),
    "valuedshopper": partial(raw.read_valued_shoppers, sample=0.03),
    "coop100": raw.read_coop,
}


def prepare(
    name: str, download: str | Path, output: str | Path | None = None, *, progress: ReadingProgress | None = None
) -> Path:
    """Make the prepared file of a dataset from its raw download, and return its path.

    The download is the raw file, or Instacart's folder, or the history of a CSV pair of the TIFU-kNN release, whose
    later baskets are kept. Without any, each user's last basket becomes the future. By default, the file is written to
    the folder that UNBASKET_DATA names, or else to `data/` of a checkout, or else to the current folder.
    """
    if name not in PREPARED:
        raise DatasetError(f"the datasets to prepare are {', '.join(PREPARED)}, not {name!r}")
    dataset, later = _read(name, Path(download), progress)
    path = Path(output) if output is not None else next(iter(data_folders()), Path()) / f"{name}.parquet"
    try:
        with replacing(path) as partial_file:
            write_published(dataset, partial_file, later=later)
    except OSError as error:
        raise DatasetError(f"cannot write {path}: {error.strerror}") from error
    return path


def _read(name: str, download: Path, progress: ReadingProgress | None) -> tuple[Dataset, pl.DataFrame | None]:
    """Return the dataset, and the baskets after its future if there are any."""
    if download.suffix == ".csv" and set(columns_of(download)).issuperset(raw.TIFUKNN_COLUMNS):
        past, later, _ = raw.read_release(download, raw.future_beside(download), progress=progress)
        future = one_future(later, "next")
        rest = later.join(future, on=["user", "basket"], how="anti", maintain_order="left")
        return Dataset(name, past, future), rest
    dataset = _READERS[name](download, progress=progress)
    return (dataset if dataset.future is not None else hold_out_last(dataset)), None
