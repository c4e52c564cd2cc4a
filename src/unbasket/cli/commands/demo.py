"""`unbasket demo`: the service on real purchases."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from unbasket.cli._shared.terminal import counted, needing, progress_bar, say
from unbasket.domain.ids import Id
from unbasket.store import DurableRecommender

# Categories of the generated shop, and of The Complete Journey
_SENSITIVE = {
    "Alcohol",
    "Baby",
    "Health",
    "Intimate",
    "GROCERY / BEERS/ALES",
    "DRUG GM / CIGARETTES",
    "SPIRITS / LIQUOR",
}


def demo(
    offline: Annotated[
        bool, typer.Option("--offline", help="Use a generated shop, which needs no package with real purchases.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on; 0 for a free one.")] = 8000,
    folder: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Keep the database here, and go on with one that is there already."),
    ] = None,
) -> None:
    """Serve a shop to play with, to this machine only: households of The Complete Journey and what they bought.

    Without --folder, everything is gone when it ends.
    """
    with needing("service"):  # slow to import, and no other command needs it
        from unbasket.service.server import free_address, run
        from unbasket.service.settings import Settings

    address = free_address("127.0.0.1", port)  # a port in use is reported at once
    with _folder(folder) as data:
        settings = Settings(db=data / "demo.db", port=port)
        _fill(settings.db, offline=offline)
        with (data / "demo.log").open("ab") as log:
            run(settings, address, bar=progress_bar, ready=_welcome, log=log)


@contextmanager
def _folder(given: Path | None) -> Iterator[Path]:
    """Provide the folder of the demo's data: the given one, or one that is deleted at the end."""
    if given is not None:
        given.mkdir(parents=True, exist_ok=True)
        try:
            yield given
        finally:
            say(f"The demo has ended. Its data are in {given}; the same command goes on with them.")
        return
    try:
        with tempfile.TemporaryDirectory(prefix="unbasket-demo-") as folder:
            yield Path(folder)
    finally:
        say("The demo has ended, and its data are gone. To keep them next time, use --folder.")


def _fill(db: Path, *, offline: bool) -> None:
    """Fill an empty database in another process: reading a shop takes hundreds of megabytes, which stay allocated."""
    program = [sys.executable, "-m", "unbasket.cli._shared.demo_shop", str(db)]
    filled = subprocess.run([*program, *(["--offline"] if offline else [])], check=False)
    if filled.returncode:  # it has said why
        raise typer.Exit(filled.returncode)


def _welcome(address: str, rec: DurableRecommender) -> None:
    user, item = _example(rec)
    name, page = rec.catalog.name(item), f"{address}/#/shopper/{quote(str(user))}"
    size = f"{counted(len(rec), 'household')} and {counted(len(rec.items()), 'product')}"
    say()
    say(f"{size} are at {address}. Three things to try:")
    say(f"1. {page}: ask why household {user} is offered {name!r}, and take it out of all baskets.")
    say(f"2. {address}/#/officer: find a household, see what is held about it, forget it, verify the receipts.")
    say(f"3. curl -X DELETE {address}/v1/users/{quote(str(user))}/items/{quote(str(item))}")
    say("Ctrl-C ends the demo.")


def _example(rec: DurableRecommender) -> tuple[Id, Id]:
    """Return a household and an item that it has bought and is offered, if possible a sensitive one."""
    users = rec.users()
    for user in users[:200]:
        own = {item for basket in rec.history(user) for item in basket.items}
        for item, _ in rec.recommend(user):
            if item in own and rec.catalog[item].category in _SENSITIVE:
                return user, item
    return users[0], rec.recommend(users[0])[0].item
