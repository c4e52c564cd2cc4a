"""`unbasket keys`: the API keys of the service."""

from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.terminal import AsJson, Group, say, say_json, say_table, subcommand, warn
from unbasket.errors import SettingsError
from unbasket.service.api_keys import KeyFile, Role
from unbasket.service.settings import access_of

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="markdown")

Db = Annotated[
    Path | None,
    typer.Option(
        "--db", envvar="UNBASKET_DB", metavar="FILE", help="The database whose service it is.", dir_okay=False
    ),
]
File = Annotated[
    Path | None,
    typer.Option(
        "--access", envvar="UNBASKET_ACCESS", metavar="FILE", help="The file of keys, if it is not beside the database."
    ),
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the key.")]


@app.callback()
def keys() -> None:
    """Make, list and remove the keys that callers of the service show. A running service notices."""


@subcommand(app)
def add(
    name: Name,
    role: Annotated[
        list[Role],
        typer.Option(help="read: recommendations; write: learn; privacy: forget, export, receipts; admin: all."),
    ],
    db: Db = None,
    access: File = None,
    as_json: AsJson = False,
) -> None:
    """Make a key and print it, this once: only a hash of it is stored. Repeat --role for several roles."""
    file = _file(db, access)
    with KeyFile.changing(file) as access_file:
        text = access_file.add(name, role)
    if as_json:
        say_json({"name": name, "roles": role, "key": text})
    else:
        warn(f"Keep it: only a hash is stored in {file}")
        say(text)


@subcommand(app, "list")
def list_keys(db: Db = None, access: File = None, as_json: AsJson = False) -> None:
    """List the names and roles of all keys."""
    known = KeyFile.read(_file(db, access)) or KeyFile.new()
    if as_json:
        say_json([{"name": key.name, "roles": key.roles} for key in known.key])
    else:
        say_table(["name", "roles"], [(key.name, ", ".join(key.roles)) for key in known.key])


@subcommand(app)
def remove(name: Name, db: Db = None, access: File = None) -> None:
    """Remove a key: a running service refuses it from the next second on."""
    file = _file(db, access)
    with KeyFile.changing(file) as access_file:
        access_file.remove(name)
    say(f"{file}: removed key {name}")


def _file(db: Path | None, access: Path | None) -> Path:
    if access is not None:
        return access
    if db is None:
        raise SettingsError("whose keys? Give --db shop.db, or the file of keys with --access")
    return access_of(db)
