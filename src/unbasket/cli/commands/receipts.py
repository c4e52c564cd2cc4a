"""`unbasket receipts`: the signed list of what was forgotten."""

import json
from contextlib import closing
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from unbasket import verifier
from unbasket.cli._shared.database import Db, OptionalDb, check_exists, open_to_read, open_to_write
from unbasket.cli._shared.terminal import (
    AsJson,
    Group,
    complain,
    counted,
    progress_bar,
    say,
    say_json,
    say_table,
    subcommand,
    to_json,
    warn,
    write_file,
)
from unbasket.domain.id_text import parse_id
from unbasket.errors import InvalidReceiptError, InvalidRequestError, StoreError
from unbasket.store import Receipt, audit
from unbasket.store import timestamp as timestamps
from unbasket.store.receipt_tree import ReceiptTree
from unbasket.store.receipts import read_receipts
from unbasket.store.signing import SigningKeys, signing_keys_of
from unbasket.store.writer import Database

_OUTPUT = typer.Option(help="Write it to this file instead of printing it.", metavar="FILE")

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
    since: Annotated[
        Path | None,
        typer.Option(
            help="An older checkpoint: the receipts of the database must begin with those of that time.", metavar="FILE"
        ),
    ] = None,
    every_signature: Annotated[
        bool,
        typer.Option(
            "--every-signature",
            help="Check each signature. Without this, one that the next receipt covers by its hash is taken for right: "
            "a tenth of the time.",
        ),
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
    receipts = _receipts_in(file) if in_database else _read(file)
    with progress_bar("verifying receipts"):
        result = audit(receipts, key, whole=whole or in_database, every_signature=every_signature)
        if since is not None:
            result = msgspec.structs.replace(result, faults=(*result.faults, *_faults_since(since, receipts)))
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
def checkpoint(
    db: Db,
    output: Annotated[Path | None, _OUTPUT] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            help="Put it before this witness: a folder that the shop can only add to, or the address of a C2SP "
            "tlog-witness. The exit code is 2 if the witness has a newer one.",
            metavar="FOLDER_OR_URL",
        ),
    ] = None,
    accept_rollback: Annotated[
        str | None,
        typer.Option(
            help="Go on although the witness has a newer checkpoint. The reason becomes a receipt.", metavar="REASON"
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            help="Have this authority (RFC 3161) timestamp it; the timestamp is written to FILE.tsr.", metavar="URL"
        ),
    ] = None,
) -> None:
    """Sign a checkpoint: the roots of the trees over all receipts and all users, for an auditor to keep.

    It is a signed note (C2SP tlog-checkpoint). An auditor who keeps it can tell later that no receipt was cut, changed
    or rolled back: `unbasket receipts verify --since`.
    """
    if timestamp is not None and output is None:
        raise InvalidRequestError("--timestamp needs --output FILE: the timestamp is written to FILE.tsr")
    if witness is None:
        text = open_to_read(db).checkpoint()
    else:
        with open_to_write(db, witness=witness, accept_rollback=accept_rollback) as rec:
            text = rec.publish_checkpoint()
    stamp = None if timestamp is None else timestamps.timestamp(text, timestamp)  # first: it may fail
    _write(text, output)
    if stamp is not None and output is not None:
        write_file(timestamps.timestamp_of(output), stamp)


@subcommand(app)
def prove(
    db: Db,
    number: Annotated[int | None, typer.Argument(metavar="NUMBER", help="The number of a receipt.")] = None,
    since: Annotated[
        Path | None, typer.Option(help="An older checkpoint, which the log is proven to extend.", metavar="FILE")
    ] = None,
    output: Annotated[Path | None, _OUTPUT] = None,
    user: Annotated[
        str | None, typer.Option(help="Also prove whom it is about; needs --secret.", metavar="USER")
    ] = None,
    secret: Annotated[str | None, typer.Option(help="The secret that came with the receipt.", metavar="SECRET")] = None,
) -> None:
    """Prove that a receipt is in the log: one file with the receipt, the path to it and a checkpoint.

    With --since instead of a number, prove that the log begins with the receipts of an older checkpoint. Anyone can
    check it offline: `python -m unbasket.verifier FILE`.
    """
    if (user is None) != (secret is None):
        raise InvalidRequestError("--user and --secret belong together: the secret came with the receipt")
    if number is not None and since is None:
        proof = open_to_read(db).prove_receipt(number)
        if user is not None:
            proof |= {"user": parse_id(user), "secret": secret}
    elif number is None and since is not None and user is None:
        proof = open_to_read(db).prove_consistency(_checkpoint_in(since).note)
    else:
        raise InvalidRequestError("say what to prove: the NUMBER of a receipt, or --since FILE")
    _write(to_json(proof) + "\n", output)


@subcommand(app, "rotate-key")
def rotate_key(
    db: Db,
    lost: Annotated[
        str | None,
        typer.Option(
            help="The old key is gone: make a new one without its signature. The reason becomes a receipt, and "
            "auditors see that the old key has not signed the new one.",
            metavar="REASON",
        ),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Replace the key that signs receipts and checkpoints: the old key signs the new one, in a receipt.

    Publish the new public key, which is printed.
    """
    check_exists(db)
    if not yes:
        typer.confirm(f"{db} gets a new key for its receipts. Go on?", abort=True)
    with open_to_write(db, lost_keys=lost) as rec:
        public = rec.rotate_key() if lost is None else SigningKeys.of(signing_keys_of(db)).public
    say(f"{db}: new receipts are signed with {public}")


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text, nl=False)
    else:
        write_file(output, text)
        say(f"{output}: check it with `python -m unbasket.verifier {output}`")


def _receipts_in(db: Path) -> list[Receipt]:
    """Read the receipts of a database without opening it as an engine, which would build the model first."""
    with closing(Database(db, read_only=True)) as database:
        return list(database.reader.receipts())


def _faults_since(since: Path, receipts: list[Receipt]) -> list[str]:
    """Return what was cut or rewritten since an older checkpoint."""
    old = _checkpoint_in(since)
    before, now = counted(old.size, "receipt"), len(receipts)
    if now < old.size:
        return [f"the log was cut or rolled back: it had {before} on {old.time}, and has {now} now"]
    if receipts and old.key not in {receipt.key for receipt in receipts}:
        return [f"the checkpoint is of another log, or its key was lost: {old.key} signed it, and no receipt here"]
    tree = ReceiptTree()
    for receipt in receipts[: old.size]:
        tree.append(receipt.to_json())
    if tree.root(old.size) != old.root:
        return [f"the log was rewritten: it no longer begins with the {before} of {old.time}"]
    return []


def _checkpoint_in(file: Path) -> verifier.Checkpoint:
    try:
        return verifier.read_checkpoint(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, verifier.ProofError) as error:
        raise InvalidReceiptError(f"{file}: {error}") from error


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
