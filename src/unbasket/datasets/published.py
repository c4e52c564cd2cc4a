"""The datasets of the paper, and two more, as prepared Parquet files."""

import os
from pathlib import Path

import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.errors import DatasetError
from unbasket.datasets.purchases import FutureChoice, drop_ones, one_future
from unbasket.datasets.source import ROW, open_source
from unbasket.params import Params

FOLDER_VARIABLE = "UNBASKET_DATA"
PUBLISHED_COLUMNS = ("user_id", "basket_id", "position", "item_id", "quantity", "split")

# The paper's hyper-parameters, found by its authors for these three datasets.
PAPER_PARAMS = {
    "tafeng": Params(group_size=7, basket_decay=0.9, group_decay=0.7, neighbors=300, alpha=0.7),
    "instacart": Params(group_size=3, basket_decay=0.9, group_decay=0.7, neighbors=900, alpha=0.9),
    "valuedshopper": Params(group_size=7, basket_decay=1.0, group_decay=0.6, neighbors=300, alpha=0.7),
}

_NOTES = {
    "tafeng": "Ta-Feng as in the paper: its history and its held-out next basket.",
    "instacart": "Instacart as in the paper, history only: the paper's future baskets are not available. "
    "hold_out_last hides each user's last basket instead; figures from that do not compare with the paper's.",
    "valuedshopper": "ValuedShopper as in the paper; quantity counts repeats, which the paper's code uses.",
    "completejourney": "The Complete Journey, one year; not a dataset of the paper.",
    "coop100": "Coop-100: 100 customers, seven years; not a dataset of the paper.",
}
PUBLISHED = tuple(_NOTES)


def read_published(path: str | Path, *, future: FutureChoice = "next") -> Dataset:
    """Read a prepared Parquet file, whose columns are `PUBLISHED_COLUMNS`; time is the basket's position.

    `future` matters where several baskets follow the history, as in ValuedShopper: "next" is the real next
    basket, "union" all of them as one, which is the target of TIFU-kNN's first release and of the paper.
    """
    source = open_source(path, PUBLISHED_COLUMNS)
    frame = source.collect(source.rows)
    incomplete = frame.filter(pl.any_horizontal(pl.all().is_null()))
    if incomplete.height:
        raise DatasetError(f"{path}, {source.place(incomplete[ROW][0])}: a value is missing")
    name = source.path.stem
    history = _part(frame, ["history"])
    later = one_future(_part(frame, ["future", "future_later"]), future)
    history, later = drop_ones([history, later])
    notes = _NOTES.get(name, f"Read from {source.path.name}.")
    if (frame["split"] == "future_later").any():
        meaning = {"next": "the next basket", "union": "the union of the baskets after the history, as one"}
        notes = f"{notes} Future: {meaning[future]}."
    return Dataset(name, history, later if later.height else None, None, PAPER_PARAMS.get(name), notes)


def _part(frame: pl.DataFrame, splits: list[str]) -> pl.DataFrame:
    return frame.filter(pl.col("split").is_in(splits)).select(
        user=pl.col("user_id").cast(pl.Int64),
        basket=pl.col("basket_id").cast(pl.Int64),
        item=pl.col("item_id").cast(pl.Int64),
        time=pl.col("position").cast(pl.Int64),
        quantity=pl.col("quantity").cast(pl.Int64),
    )


def published_path(name: str, folder: str | Path | None = None) -> Path:
    """The Parquet file of a dataset, in `folder` or else the data folder."""
    directory = Path(folder) if folder is not None else data_folder()
    path = directory / f"{name}.parquet"
    if not path.is_file():
        raise DatasetError(f"{path}: no such file. Set {FOLDER_VARIABLE} to the folder that holds it.")
    return path


def data_folder() -> Path:
    """The folder that UNBASKET_DATA names, else ../shared/data from here or from the repository's root."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        return Path(named)
    here = Path.cwd()
    roots = [folder for folder in (here, *here.parents) if (folder / "pyproject.toml").is_file()]
    for folder in (here, *roots):
        candidate = folder.parent / "shared" / "data"
        if candidate.is_dir():
            return candidate
    raise DatasetError(f"no data folder: set {FOLDER_VARIABLE} to the folder with the Parquet files")
