"""Published datasets in prepared Parquet files: Ta-Feng, Instacart, ValuedShopper and Coop-100."""

import os
from pathlib import Path

import polars as pl
import polars.selectors as cs

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import FutureChoice, drop_ones, one_future
from unbasket.datasets.source import ROW, open_source
from unbasket.errors import DatasetError, MissingDatasetError
from unbasket.params import Params

FOLDER_VARIABLE = "UNBASKET_DATA"
PUBLISHED_COLUMNS = ("user_id", "basket_id", "position", "item_id", "quantity", "split")

OF_THE_PAPER = ("tafeng", "instacart", "valuedshopper")

_NOTES = {
    "tafeng": "Ta-Feng as in the paper: its history and its held-out next basket.",
    "instacart": "Instacart as in the paper, history only: the paper's future baskets are not available. "
    "hold_out_last hides each user's last basket instead; figures from that do not compare with the paper's.",
    "valuedshopper": "ValuedShopper as in the paper; quantity counts repeats, which the paper's code uses.",
    "coop100": "Coop-100: 100 customers, seven years; not a dataset of the paper.",
}
PREPARED = tuple(_NOTES)


def published_path(name: str) -> Path:
    """Return the Parquet file of a dataset: in the folder that UNBASKET_DATA names, or in one of the project's own."""
    file = f"{name}.parquet"
    for folder in (*_named_folder(), *_own_folders()):
        if (folder / file).is_file():
            return folder / file
    raise MissingDatasetError(
        f"{file} is not here: it is in the folder data/ of the repository, not in the installed package. "
        f"Set {FOLDER_VARIABLE} to a folder that holds it, or make it from the raw download as docs/datasets.md says."
    )


def _named_folder() -> list[Path]:
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        return []
    if not Path(named).is_dir():
        raise DatasetError(f"{FOLDER_VARIABLE} names {named}, which is not a folder")
    return [Path(named)]


def _own_folders() -> list[Path]:
    """Return the package's data folder and, if the package is in a clone of the repository, the clone's."""
    here = Path(__file__).resolve().parent
    source = here.parents[1]
    clone = [source.parent / "data"] if source.name == "src" else []
    return [here / "data", *clone]


def read_published(path: str | Path, *, future: FutureChoice = "next") -> Dataset:
    """Read a prepared Parquet file, whose columns are `PUBLISHED_COLUMNS`; time is the basket's position.

    The name of the file, without its ending, is the name of the dataset.

    `future` matters where several baskets follow the history, as in ValuedShopper: "next" is the real next basket,
    "union" all of them as one, which is the target of TIFU-kNN's first release and of the paper.
    """
    source = open_source(path, PUBLISHED_COLUMNS)
    frame = source.collect(source.rows)
    incomplete = frame.filter(pl.any_horizontal(pl.all().is_null()))
    if incomplete.height:
        raise DatasetError(f"{path}, {source.place(incomplete[ROW][0])}: a value is missing")
    name = source.path.stem
    history = _split(frame, ["history"])
    later = one_future(_split(frame, ["future", "future_later"]), future)
    history, later = drop_ones([history, later])
    is_own = name in PREPARED and source.path.resolve().parent in _own_folders()
    notes = _NOTES[name] if is_own else f"Read from {source.path.name}."
    if (frame["split"] == "future_later").any():
        meaning = {"next": "the next basket", "union": "the union of the baskets after the history, as one"}
        notes = f"{notes} Future: {meaning[future]}."
    params = Params.paper(name) if name in OF_THE_PAPER else None
    return Dataset(name, history, later if later.height else None, None, params, notes)


def _split(frame: pl.DataFrame, splits: list[str]) -> pl.DataFrame:
    return (
        frame.filter(pl.col("split").is_in(splits))
        .select(user="user_id", basket="basket_id", item="item_id", time="position", quantity="quantity")
        .with_columns(cs.integer().cast(pl.Int64))
    )


def write_published(dataset: Dataset, path: str | Path) -> None:
    """Write a dataset as a prepared Parquet file, for `load` to find in the folder that UNBASKET_DATA names.

    Baskets keep their order and lose their times; names and categories of items are not written.
    """
    splits = [("history", dataset.history), ("future", dataset.future)]
    purchases = pl.concat([frame.with_columns(split=pl.lit(split)) for split, frame in splits if frame is not None])
    if "quantity" not in purchases.columns:
        purchases = purchases.with_columns(quantity=1)
    is_future = pl.col("split") == "future"
    position = pl.struct(is_future.alias("is_future"), "time", "basket").rle_id().over("user")
    purchases.sort("user", is_future, "time", "basket", maintain_order=True).select(
        user_id="user",
        basket_id="basket",
        position=position.cast(pl.Int32) + 1,
        item_id="item",
        quantity=pl.col("quantity").cast(pl.Int32),
        split="split",
    ).write_parquet(path, compression="zstd")
