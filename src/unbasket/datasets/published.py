"""Published datasets in prepared Parquet files: Ta-Feng, Instacart, ValuedShopper and Coop-100."""

import os
from pathlib import Path
from typing import NamedTuple

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


class _Publication(NamedTuple):
    """A dataset of others: its download, the argument of the command that prepares it, and the prepared file."""

    download: str
    argument: str
    rows: int
    """The rows of the history as published, by which a file is recognized: another preparation has others."""
    notes: str


_PUBLICATIONS = {
    "tafeng": _Publication(
        "TaFang_history_NB.csv and TaFang_future_NB.csv from the folder data of github.com/HaojiHu/TIFUKNN",
        "TaFang_history_NB.csv",
        494_017,
        "Ta-Feng as in the paper: its history and its held-out next basket.",
    ),
    "instacart": _Publication(
        "the CSV files of the Kaggle competition instacart-market-basket-analysis into one folder",
        "FOLDER",
        1_411_006,
        "Instacart as in the paper, history only: the paper's future baskets are not available. "
        "hold_out_last hides each user's last basket instead; figures from that do not compare with the paper's.",
    ),
    "valuedshopper": _Publication(
        "transactions.csv.gz of the Kaggle competition acquire-valued-shoppers-challenge",
        "transactions.csv.gz",
        4_935_360,
        "ValuedShopper as in the paper; quantity counts repeats, which the paper's code uses.",
    ),
    "coop100": _Publication(
        "dataset/coop100.json.zip from github.com/GiulioRossetti/tbp-next-basket and unpack it",
        "coop100.json",
        638_315,
        "Coop-100: 100 customers, seven years; not a dataset of the paper.",
    ),
}
PREPARED = tuple(_PUBLICATIONS)


def published_path(name: str) -> Path:
    """Return the Parquet file of a dataset: in the folder that UNBASKET_DATA names, or in `data/` of a checkout."""
    file = f"{name}.parquet"
    for folder in data_folders():
        if (folder / file).is_file():
            return folder / file
    download, argument, *_ = _PUBLICATIONS[name]
    raise MissingDatasetError(
        f"{file} is not here: download {download}, then run: unbasket datasets prepare {name} {argument}. "
        f"Or set {FOLDER_VARIABLE} to a folder that holds {file}"
    )


def data_folders() -> list[Path]:
    """Return the folders of prepared files, in the order of the search: UNBASKET_DATA, and `data/` of a checkout."""
    folders = []
    named = os.environ.get(FOLDER_VARIABLE)
    if named:
        if not Path(named).is_dir():
            raise DatasetError(f"{FOLDER_VARIABLE} names {named}, which is not a folder")
        folders.append(Path(named))
    source = Path(__file__).resolve().parents[2]
    if source.name == "src":
        folders.append(source.parent / "data")
    return folders


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
    known = _PUBLICATIONS.get(name)
    notes = known.notes if known and known.rows == history.height else f"Read from {source.path.name}."
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


def write_published(dataset: Dataset, path: str | Path, *, later: pl.DataFrame | None = None) -> None:
    """Write a dataset as a prepared Parquet file, for `load` to find in the folder that UNBASKET_DATA names.

    Baskets keep their order and lose their times; names and categories of items are not written. `later` holds
    baskets after the future, if there are any: see `read_published`.
    """
    splits = {"history": dataset.history, "future": dataset.future, "future_later": later}
    purchases = pl.concat(
        [frame.with_columns(split=pl.lit(split)) for split, frame in splits.items() if frame is not None]
    )
    if "quantity" not in purchases.columns:
        purchases = purchases.with_columns(quantity=1)
    stage = pl.col("split").replace_strict({split: number for number, split in enumerate(splits)})
    position = pl.struct(stage.alias("stage"), "time", "basket").rle_id().over("user")
    purchases.sort("user", stage, "time", "basket", maintain_order=True).select(
        user_id="user",
        basket_id="basket",
        position=position.cast(pl.Int32) + 1,
        item_id="item",
        quantity=pl.col("quantity").cast(pl.Int32),
        split="split",
    ).write_parquet(path, compression="zstd")
