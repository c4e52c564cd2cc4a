"""`unbasket forget`: a user, a basket, an item, or a file of such requests; in the database and in its backups."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import polars as pl
import typer

from unbasket.cli._shared.database import Db, open_to_write
from unbasket.cli._shared.terminal import AsJson, complain, counted, message_of, progress_bar, say, say_json
from unbasket.datasets.lines import shown_list
from unbasket.datasets.source import ROW, columns_of, open_source
from unbasket.domain.events import Forget
from unbasket.domain.id_text import parse_id
from unbasket.domain.ids import Id
from unbasket.errors import DatasetError, InvalidRequestError, UnbasketError
from unbasket.store import Erased
from unbasket.store.signing import signing_keys_of


class _ForgetRequest(NamedTuple):
    """The user, basket and item of a request, as they were typed."""

    user: str
    basket: str | None
    item: str | None

    def event(self) -> Forget:
        """Return the event."""
        return Forget.checked(*(None if text is None else parse_id(text) for text in self))


class _Outcome(NamedTuple):
    """The result in one database, and the users about whom nothing was held there."""

    database: Path
    erased: list[Erased]
    unknown: list[Id]
    error: str | None

    @property
    def in_vain(self) -> int:
        """The number of requests that found nothing."""
        return sum(not erased for erased in self.erased)


def forget(
    db: Db,
    user: Annotated[str | None, typer.Argument(metavar="USER", help="A user's id.")] = None,
    basket: Annotated[str | None, typer.Option(help="Only this basket of the user.", metavar="ID")] = None,
    item: Annotated[
        str | None, typer.Option(help="Only this item: of the basket, or of all the user's baskets.", metavar="ID")
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            help="Instead of USER, many requests: CSV with the column user and, optionally, basket and item. A row "
            "without a basket and an item forgets the user. All of them are forgotten, or none.",
            metavar="FILE",
        ),
    ] = None,
    also_in: Annotated[
        list[Path] | None, typer.Option(help="Forget it in this backup too; may be repeated.", metavar="BACKUP")
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with code 1 if a request found nothing in the database.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Forget a user, one of their baskets, an item of a basket, or an item of all their baskets.

    Forgotten data is gone from the model and, byte for byte, from the database's files. A signed receipt says so;
    see `unbasket receipts`.
    """
    requests = _requests(user, basket, item, file)
    outcomes = _forget_in_all([db, *(also_in or [])], requests, signing_keys_of(db))
    if as_json:
        say_json([_facts(outcome) for outcome in outcomes])
    for outcome in outcomes:
        if outcome.error is not None:
            complain(f"{outcome.database}: not forgotten there: {outcome.error}")
        elif not as_json:
            say(_summary(outcome))
    if any(outcome.error is not None for outcome in outcomes):
        raise typer.Exit(2)
    if strict and outcomes[0].in_vain:
        raise typer.Exit(1)


def _requests(user: str | None, basket: str | None, item: str | None, file: Path | None) -> list[_ForgetRequest]:
    if file is not None and (user, basket, item) != (None, None, None):
        raise InvalidRequestError("say what to forget either by USER, --basket and --item, or by --file, not by both")
    if file is not None:
        return _read_requests(file)
    if user is None:
        raise InvalidRequestError("say what to forget: a USER, or --file with many requests")
    return [_ForgetRequest(user, basket, item)]


def _read_requests(file: Path) -> list[_ForgetRequest]:
    """Read the requests of a CSV file; refuse a file that leaves a doubt about what to forget."""
    columns = columns_of(file)
    unknown = [column for column in columns if column not in _ForgetRequest._fields]
    if unknown:  # a misspelled `basket` would forget the user
        raise DatasetError(
            f"{file}: the columns may be user, basket and item, separated by commas, not {shown_list(unknown)}"
        )
    source = open_source(file, ["user"], keep_blank=True)
    if source.kind != "csv":
        raise DatasetError(f"{file}: requests must be in a CSV file")
    texts = source.collect(source.rows.select(ROW, *(_text(name, columns) for name in _ForgetRequest._fields)))
    rows = texts.drop(ROW).rows()
    while rows and not any(rows[-1]):  # blank lines at the end are no mistake
        rows.pop()
    for number, (user, _, _) in enumerate(rows):
        if user is None:
            raise DatasetError(f"{file}, {source.place(number)}: no user. Take the line out, or say whom to forget")
    if not rows:
        raise DatasetError(f"{file}: there is no request in it")
    return [_ForgetRequest(*fields) for fields in rows]


def _text(column: str, columns: list[str]) -> pl.Expr:
    """Return a column of text; null where it is empty, and everywhere if it is missing."""
    if column not in columns:
        return pl.lit(None, pl.String).alias(column)
    return pl.when(pl.col(column) != "").then(column).alias(column)


def _forget_in_all(databases: Sequence[Path], requests: list[_ForgetRequest], keys: Path) -> list[_Outcome]:
    """Forget in each database; if that fails in the first, the shop's own, the backups stay as they are."""
    outcomes: list[_Outcome] = []
    for database in databases:
        if outcomes and outcomes[0].error is not None:
            outcomes.append(_Outcome(database, [], [], f"not tried, since {databases[0]} comes first"))
            continue
        try:
            outcomes.append(_forget_in(database, requests, keys))
        except UnbasketError as error:
            outcomes.append(_Outcome(database, [], [], message_of(error)))
    return outcomes


def _forget_in(database: Path, requests: list[_ForgetRequest], keys: Path) -> _Outcome:
    with open_to_write(database, keys) as rec, progress_bar(f"forgetting in {database.name}"):
        events = dict.fromkeys(request.event() for request in requests)
        widest = [event for event in events if not any(wider in events for wider in _wider(event))]
        unknown = [rec.canonical_id(user, "user") for user in dict.fromkeys(event.user for event in widest)]
        unknown = [user for user in unknown if user not in rec]
        return _Outcome(database, cast(list[Erased], rec.apply(widest)), unknown, None)


def _wider(event: Forget) -> list[Forget]:
    """Return the events that would include this one."""
    wider = [event._replace(basket=None, item=None), event._replace(basket=None), event._replace(item=None)]
    return [other for other in dict.fromkeys(wider) if other != event]


def _facts(outcome: _Outcome) -> dict[str, Any]:
    receipts = [json.loads(erased.receipt.to_json()) for erased in outcome.erased]
    secrets = [erased.secret for erased in outcome.erased]
    facts = {"database": str(outcome.database), "receipts": receipts, "secrets": secrets, "unknown": outcome.unknown}
    return {**facts, "error": outcome.error}


def _summary(outcome: _Outcome) -> str:
    purchases, baskets, users = (sum(counts) for counts in zip(*outcome.erased, strict=True))
    emptied = [counted(number, noun) for number, noun in ((baskets, "basket"), (users, "user")) if number]
    removed = f"forgot {counted(purchases, 'purchase')}"
    if emptied:
        removed += f", and with that {' and '.join(emptied)}"
    first, last = outcome.erased[0].receipt, outcome.erased[-1].receipt
    if first is last:
        if outcome.in_vain:
            user = f"about user {outcome.unknown[0]}" if outcome.unknown else "of this"
            removed = f"nothing {user} was held"
        secret = outcome.erased[0].secret
        return f"{outcome.database}: {removed}. Receipt {first.number}, request {first.request}, secret {secret}"
    found = f"; {counted(outcome.in_vain, 'request')} found nothing" if outcome.in_vain else ""
    if outcome.unknown:
        found += f". Nothing was held about {shown_list([str(user) for user in outcome.unknown])}"
    return f"{outcome.database}: {removed}{found}. Receipts {first.number} to {last.number}"
