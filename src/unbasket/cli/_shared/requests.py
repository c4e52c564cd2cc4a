"""Requests to forget, as people make them: one on the command line, or many in a CSV file."""

from pathlib import Path
from typing import NamedTuple

import polars as pl

from unbasket.datasets import DatasetError
from unbasket.datasets.lines import shown_list
from unbasket.datasets.source import ROW, columns_of, open_source
from unbasket.domain.events import Forget
from unbasket.domain.id_text import IdReader


class Request(NamedTuple):
    """What is to be forgotten, as it was typed."""

    user: str
    basket: str | None
    item: str | None

    def event(self, ids: IdReader) -> Forget:
        """What that means in a database."""
        user = ids.user(self.user)
        basket = None if self.basket is None else ids.basket(user, self.basket)
        return Forget.checked(user, basket, None if self.item is None else ids.item(self.item))


def read_requests(file: Path) -> list[Request]:
    """The requests in a file, which must not leave a doubt about what to forget."""
    columns = columns_of(file)
    strange = [column for column in columns if column not in Request._fields]
    if strange:  # a misspelled `basket` would forget the user
        raise DatasetError(
            f"{file}: the columns may be user, basket and item, separated by commas, not {shown_list(strange)}"
        )
    source = open_source(file, ["user"], keep_blank=True)
    if source.kind != "csv":
        raise DatasetError(f"{file}: requests must be in a CSV file")
    texts = source.collect(source.rows.select(ROW, *(_text(name, columns) for name in Request._fields)))
    rows = texts.drop(ROW).rows()
    while rows and not any(rows[-1]):  # blank lines at the end are nobody's mistake
        rows.pop()
    for number, (user, _, _) in enumerate(rows):
        if user is None:
            raise DatasetError(f"{file}, {source.place(number)}: no user. Take the line out, or say whom to forget")
    if not rows:
        raise DatasetError(f"{file}: there is no request in it")
    return [Request(*fields) for fields in rows]


def events_of(requests: list[Request], ids: IdReader) -> list[Forget]:
    """What to forget in a database, each thing once: what is part of another request is not a request of its own."""
    events = dict.fromkeys(request.event(ids) for request in requests)
    return [event for event in events if not any(wider in events for wider in _wider(event))]


def _wider(event: Forget) -> list[Forget]:
    """The requests that this one would be part of."""
    wider = [event._replace(basket=None, item=None), event._replace(basket=None), event._replace(item=None)]
    return [other for other in dict.fromkeys(wider) if other != event]


def _text(column: str, columns: list[str]) -> pl.Expr:
    """A column; None where it is empty, and everywhere if it is not there."""
    if column not in columns:
        return pl.lit(None, pl.String).alias(column)
    return pl.when(pl.col(column) != "").then(column).alias(column)
