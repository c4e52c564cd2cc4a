"""The CSV pairs of the original TIFU-kNN release: *_history*.csv and *_future*.csv."""

from pathlib import Path

import polars as pl

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import FutureChoice, drop_ones, narrow_ids, one_future, sorted_purchases, text_id
from unbasket.datasets.source import open_source
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError

TIFUKNN_COLUMNS = ("CUSTOMER_ID", "ORDER_NUMBER", "MATERIAL_NUMBER")


def read_tifuknn(
    history_csv: str | Path,
    future_csv: str | Path | None = None,
    *,
    future: FutureChoice = "next",
    skip_bad: bool = False,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Read a pair of CSV files. The future file defaults to the history's name with "future" for "history".

    Baskets are in the order of the file, as the release's own code reads them; time is the basket's position among
    the user's baskets, and continues into the future. Where the future file has several baskets of a user, `future`
    chooses the next one or the union of all as one.
    """
    history_path = Path(history_csv)
    future_path = Path(future_csv) if future_csv is not None else _partner(history_path)
    past, skipped_past = _read(history_path, skip_bad, progress)
    later, skipped_later = _read(future_path, skip_bad, progress)
    past, later = narrow_ids([past, later])
    lengths = past.group_by("user").agg(length=pl.col("time").max())
    later = later.join(lengths, on="user", how="left").with_columns(time=pl.col("time") + pl.col("length").fill_null(0))
    later = one_future(later.drop("length"), future)
    past, later = drop_ones([past, later])
    notes = f"TIFU-kNN release: {history_path.name} and {future_path.name}, future: {future}."
    return Dataset(history_path.stem, past, later, notes=notes, skipped=skipped_past + skipped_later)


def _partner(history: Path) -> Path:
    if "history" not in history.name:
        raise DatasetError(f'{history}: no "history" in the name, so the future file must be given')
    return history.with_name(history.name.replace("history", "future"))


def _read(path: Path, skip_bad: bool, progress: ReadingProgress | None) -> tuple[pl.DataFrame, int]:
    source = open_source(path, TIFUKNN_COLUMNS, progress=progress)
    columns = {name: text_id(column) for name, column in zip(("user", "basket", "item"), TIFUKNN_COLUMNS, strict=True)}
    return sorted_purchases(source, columns, skip_bad=skip_bad)
