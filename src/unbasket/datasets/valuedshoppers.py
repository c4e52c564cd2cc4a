"""Kaggle's Acquire Valued Shoppers Challenge as downloaded: transactions.csv, 22 GB."""

from dataclasses import replace
from pathlib import Path

from unbasket.datasets.dataset import Dataset
from unbasket.datasets.purchases import day_number, drop_ones, purchases, sampled, seconds, whole_number
from unbasket.datasets.source import open_source
from unbasket.domain.progress import ReadingProgress
from unbasket.params import Params

VALUED_SHOPPERS_COLUMNS = ("id", "category", "date")
_DATE = "%Y-%m-%d"


def read_valued_shoppers(
    path: str | Path, *, sample: float = 1.0, skip_bad: bool = False, progress: ReadingProgress | None = None
) -> Dataset:
    """Read transactions.csv (or transactions.csv.gz), streaming.

    The preprocessing: a basket is all that a customer bought on one day, with the day as its id, YYYYMMDD; an
    item is a category; rows of the same category on the same day become one, with a quantity. Returned goods
    are not told apart from bought ones. `sample` is the share of the customers to keep, always the same ones:
    the result must fit in memory, and the paper uses 10,000 of some 300,000 customers, which is about 0.03.
    """
    source = open_source(path, VALUED_SHOPPERS_COLUMNS, narrow=True, progress=progress)
    user = whole_number("id")
    # a row without a customer must stay, to be complained about
    source = replace(source, rows=source.rows.filter(sampled(user, sample).fill_null(value=True)))
    columns = {
        "user": user,
        "basket": day_number("date", _DATE),
        "item": whole_number("category"),
        "time": seconds("date", _DATE),
    }
    history, skipped = purchases(source, columns, skip_bad=skip_bad)
    [history] = drop_ones([history])
    notes = (
        f"Valued Shoppers, raw file, {sample:g} of the customers: a basket is a customer's day, an item is a "
        "category. Parameters: the paper's, for its subset."
    )
    return Dataset("valuedshopper", history, params=Params.paper("valuedshopper"), notes=notes, skipped=skipped)
