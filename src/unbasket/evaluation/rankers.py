"""What the evaluation asks of a model."""

from typing import Protocol

import polars as pl

from unbasket.evaluation.splits import Split


class Ranker(Protocol):
    """Anything that predicts next baskets: an engine, a baseline, another library.

    `history` has the columns user, basket, item and, if baskets are dated, time. A ranker may use the baskets
    of the split's candidates for all predictions, and a query's own baskets for that query. It answers with
    one row for each query: `user` and `items`, a list of at most n distinct items, best first. A user for
    whom it has no answer keeps the row, with an empty list, and so counts as a miss.
    """

    def __call__(self, history: pl.DataFrame, split: Split, n: int) -> pl.DataFrame: ...
