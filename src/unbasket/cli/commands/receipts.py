"""`unbasket receipts`: the signed list of what was forgotten."""

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, OptionalDb, open_to_write
from unbasket.cli._shared.terminal import (
    AsJson,
    Group,
    complain,
    counted,
    say,
    say_json,
    say_table,
    subcommand,
    warn,
    write_file,
)
from unbasket.errors import InvalidReceiptError, InvalidRequestError, StoreError
from unbasket.store import Receipt, audit
from unbasket.store.receipts import read_receipts
from unbasket.store.signing import SigningKeys, signing_keys_of
from unbasket.store.writer import Database

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def receipts() -> None:
    """List, export and verify the signed receipts of what was forgotten. They name no person."""


@subcommand(app, "list")
def list_receipts(db: Db, as_json: AsJson = False) -> None:
    """List all receipts, oldest first."""
    found = _receipts_in(db)
    if as_json:
        say_json([json.loads(receipt.to_json()) for receipt in found])
        return
    say_table(
        ("no", "time", "forgotten", "purchases", "baskets", "users", "request"),
        [
            (r.number, r.time[:19].replace("T", " "), r.scope, r.purchases, r.baskets, r.users, r.request[:8])
            for r in found
        ],
    )


@subcommand(app)
def export(
    db: Db,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="The file to write; without it, they are printed.")
    ] = None,
) -> None:
    """Print or write all receipts, one JSON object per line, for an auditor: `unbasket receipts verify FILE`."""
    found = _receipts_in(db)
    text = "".join(receipt.to_json().decode() + "\n" for receipt in found)
    if file is None:
        typer.echo(text, nl=False)
        return
    write_file(file, text)
    say(f"{file}: {counted(len(found), 'receipt')}")


@subcommand(app)
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE_OR_DB",
            help="Receipts, as exported or downloaded (JSON, or lines of it), or a database. Without it, that of --db.",
        ),
    ] = None,
    db: OptionalDb = None,
    key: Annotated[
        str | None,
        typer.Option(help="The public key that must have signed them: `unbasket receipts key`.", metavar="PUBLIC_KEY"),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--whole", help="Count receipts that are missing from a file before its last as faults.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Check that receipts are as they were signed, and that each follows the one before it.

    A file may hold a part of the chain; the missing receipts are listed. In a database, none may be missing. This needs
    no secret and no network. The exit code is 1 if something is wrong.
    """
    file = file or db
    if file is None:
        raise InvalidRequestError("say what to verify: FILE, or a database by --db")
    in_database = _is_database(file)
    result = audit(_receipts_in(file) if in_database else _read(file), key, whole=whole or in_database)
    if as_json:
        facts = ("ok", "receipts", "keys", "faults", "warnings", "chained", "missing")
        say_json({name: getattr(result, name) for name in facts})
    else:
        for fault in result.faults:
            complain(f"{file}: {fault}")
        for warning in result.warnings:
            warn(f"{file}: {warning}")
        keys = ", ".join(result.keys) or "no key"
        faults = counted(len(result.faults), "fault")
        say(f"{file}: {counted(result.receipts, 'receipt')}, {faults}. Signed with {keys}")
        say(result.summary("in this database" if in_database else "in this file"))
    if not result.ok:
        raise typer.Exit(1)


@subcommand(app)
def key(db: Db, as_json: AsJson = False) -> None:
    """Print the public key that receipts are verified with. Publish it: the receipts alone don't tell whose it is."""
    public = SigningKeys.of(_existing_keys(db)).public
    say_json({"database": str(db), "key": public}) if as_json else say(public)


@subcommand(app)
def anonymize(db: Db, yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False) -> None:
    """Destroy the key that links receipts to users: no receipt can be traced to a person any more.

    Receipts stay valid. This can't be undone.
    """
    keys = _existing_keys(db)
    if not yes:
        typer.confirm(f"The receipts of {db} can't be traced to their users any more after this. Go on?", abort=True)
    with open_to_write(db):  # fails while a service, which would go on with the old key, has it open
        SigningKeys.destroy_subjects(keys)
    say(f"{db}: all receipts are anonymous now")


def _receipts_in(db: Path) -> list[Receipt]:
    """Read the receipts of a database without opening it as an engine, which would build the model first."""
    with closing(Database(db, read_only=True)) as database:
        return [Receipt.from_json(payload) for _, payload in database.reader.payloads("receipts")]


def _is_database(file: Path) -> bool:
    try:
        with file.open("rb") as stream:
            return stream.read(16) == b"SQLite format 3\0"
    except OSError as error:
        raise StoreError(f"cannot read {file}: {error.strerror}") from error


def _read(file: Path) -> list[Receipt]:
    try:
        return read_receipts(file.read_bytes())
    except InvalidReceiptError as error:
        raise InvalidReceiptError(f"{file}: {error}") from error


def _existing_keys(db: Path) -> Path:
    keys = signing_keys_of(db)
    if not keys.exists():
        raise StoreError(f"{keys} does not exist, though it is made beside every database. Check the name {db}")
    return keys
