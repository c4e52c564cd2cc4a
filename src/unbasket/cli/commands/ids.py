"""`unbasket ids`: the types of a shop's ids."""

from typing import Annotated

import typer

from unbasket.cli._shared.database import Db, open_to_read, open_to_write
from unbasket.cli._shared.terminal import AsJson, Group, reply, subcommand
from unbasket.domain.ids import KINDS
from unbasket.errors import InvalidRequestError
from unbasket.store import DurableRecommender

app = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="markdown")


@app.callback()
def ids() -> None:
    """Show whether ids are numbers or texts, and change numbers into texts."""


@subcommand(app)
def show(db: Db, as_json: AsJson = False) -> None:
    """Show the type of each kind of id. A kind that a database holds none of gets the type of the first that comes."""
    rec = open_to_read(db)
    reply(as_json, _facts(rec), f"{db}: {_summary(rec)}")


@subcommand(app)
def to_text(
    db: Db,
    kind: Annotated[list[str], typer.Option(help="Ids to change; may be repeated.", metavar="user|basket|item")],
    as_json: AsJson = False,
) -> None:
    """Change numbers into texts: 17 becomes the text 17, in the whole database and in one step. A receipt says so.

    Then ids such as A-5 are accepted. Every way to write an id stays valid. In a database of an earlier version that
    holds both, each pair such as 17 and "17" becomes one. A running service changes ids by PUT /v1/ids.
    """
    unknown = next((name for name in kind if name not in KINDS), None)
    if unknown is not None:
        raise InvalidRequestError(f"--kind must be {', '.join(KINDS[:-1])} or {KINDS[-1]}, not {unknown!r}")
    with open_to_write(db, to_text=[each for each in KINDS if each in kind]) as rec:
        facts, summary = _facts(rec), _summary(rec)
    reply(as_json, facts, f"{db}: {summary}")


def _facts(rec: DurableRecommender) -> dict[str, str | None]:
    return {kind: held for kind, held in rec.id_types().items()}  # noqa: C416 - of a wider type


def _summary(rec: DurableRecommender) -> str:
    shown = {"number": "numbers", "text": "texts", None: "not held yet"}
    return ", ".join(f"{kind} ids are {shown[held]}" for kind, held in rec.id_types().items())
