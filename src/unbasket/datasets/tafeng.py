"""Ta-Feng as downloaded: ta_feng_all_months_merged.csv."""

from pathlib import Path

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import day_number, drop_ones, narrow_ids, purchases, seconds, text_id
from unbasket.datasets.source import open_source
from unbasket.domain.progress import ReadingProgress
from unbasket.params import Params

TAFENG_COLUMNS = ("TRANSACTION_DT", "CUSTOMER_ID", "PRODUCT_ID")
_DATE = "%m/%d/%Y"


def read_tafeng(path: str | Path, *, skip_bad: bool = False, progress: ReadingProgress | None = None) -> Dataset:
    """Read the merged file of four months, November 2000 to February 2001.

    The preprocessing: a basket is all that a customer bought on one day (the source has no time of day), with
    the day as its id, YYYYMMDD; an item is a PRODUCT_ID; rows of the same product on the same day become one,
    with a quantity. Nothing is filtered, so there are more users and items than in the paper's subset.
    """
    source = open_source(path, TAFENG_COLUMNS, progress=progress)
    columns = {
        "user": text_id("CUSTOMER_ID"),
        "basket": day_number("TRANSACTION_DT", _DATE),
        "item": text_id("PRODUCT_ID"),
        "time": seconds("TRANSACTION_DT", _DATE),
    }
    history, skipped = purchases(source, columns, skip_bad=skip_bad)
    [history] = drop_ones(narrow_ids([history]))
    notes = "Ta-Feng, raw file, unfiltered: a basket is a customer's day. Parameters: the paper's."
    return Dataset("tafeng", history, params=Params.paper("tafeng"), notes=notes, skipped=skipped)
