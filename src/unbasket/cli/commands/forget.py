"""`unbasket forget`: a user, a basket, an item, or a list of such requests; in the database and in its backups."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, cast

import typer

from unbasket.cli._shared.database import Db, open_to_write
from unbasket.cli._shared.progress import progress_bar
from unbasket.cli._shared.requests import Request, events_of, read_requests
from unbasket.cli._shared.terminal import AsJson, complain, counted, message_of, say, say_json
from unbasket.domain.id_text import IdReader
from unbasket.errors import InvalidRequestError, UnbasketError
from unbasket.store import Erased
from unbasket.store.signing import signing_keys_of


class _Outcome(NamedTuple):
    """What happened in one database."""

    database: Path
    erased: list[Erased]
    error: str | None


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
        list[Path] | None,
        typer.Option(help="Forget it in this backup too; may be repeated.", metavar="BACKUP"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Forget a user, one of their baskets, an item of a basket, or an item of all their baskets.

    What is forgotten is gone from the model and, byte for byte, from the database's files. A signed receipt says so;
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


def _requests(user: str | None, basket: str | None, item: str | None, file: Path | None) -> list[Request]:
    if file is not None and (user, basket, item) != (None, None, None):
        raise InvalidRequestError("say what to forget either by USER, --basket and --item, or by --file, not by both")
    if file is not None:
        return read_requests(file)
    if user is None:
        raise InvalidRequestError("say what to forget: a USER, or --file with many requests")
    return [Request(user, basket, item)]


def _forget_in_all(databases: Sequence[Path], requests: list[Request], keys: Path) -> list[_Outcome]:
    """Forget in each database; if that fails in the first, the shop's own, the backups stay as they are."""
    outcomes: list[_Outcome] = []
    for database in databases:
        if outcomes and outcomes[0].error is not None:
            outcomes.append(_Outcome(database, [], f"not tried, since {databases[0]} comes first"))
            continue
        try:
            outcomes.append(_Outcome(database, _forget_in(database, requests, keys), None))
        except UnbasketError as error:
            outcomes.append(_Outcome(database, [], message_of(error)))
    return outcomes


def _forget_in(database: Path, requests: list[Request], keys: Path) -> list[Erased]:
    with open_to_write(database, keys) as rec, progress_bar(f"forgetting in {database.name}"):
        return cast(list[Erased], rec.apply(events_of(requests, IdReader(rec))))


def _facts(outcome: _Outcome) -> dict[str, Any]:
    receipts = [json.loads(erased.receipt.to_json()) for erased in outcome.erased]
    return {"database": str(outcome.database), "receipts": receipts, "error": outcome.error}


def _summary(outcome: _Outcome) -> str:
    purchases, baskets, users = (sum(counts) for counts in zip(*outcome.erased, strict=True))
    vain = sum(not erased for erased in outcome.erased)
    vanished = [counted(number, what) for number, what in ((baskets, "basket"), (users, "user")) if number]
    removed = f"forgot {counted(purchases, 'purchase')}"
    if vanished:
        removed += f", and with that {' and '.join(vanished)}"
    first, last = outcome.erased[0].receipt, outcome.erased[-1].receipt
    if first is last:
        removed = "nothing of this was held" if vain else removed
        return f"{outcome.database}: {removed}. Receipt {first.number}, request {first.request}"
    found = f"; {counted(vain, 'request')} found nothing" if vain else ""
    return f"{outcome.database}: {removed}{found}. Receipts {first.number} to {last.number}"
