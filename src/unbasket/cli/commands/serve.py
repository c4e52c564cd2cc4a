"""`unbasket serve`: the HTTP API and the page."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from unbasket.cli._shared.terminal import counted, errors, needing, progress_bar, say
from unbasket.store import DurableRecommender


def serve(
    db: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The shop's database, which is created if it does not exist.")
    ] = None,
    host: Annotated[
        str | None, typer.Option(help="The address to listen on: 127.0.0.1 by default. Others need keys.")
    ] = None,
    port: Annotated[int | None, typer.Option(help="The port: 8000 by default; 0 for a free one.")] = None,
    access: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="The keys of callers (`unbasket keys`): FILE-access.toml beside the database."
        ),
    ] = None,
    connections: Annotated[int | None, typer.Option(help="Connections open at a time: 1000.")] = None,
    threads: Annotated[int | None, typer.Option(help="Requests processed at a time: 16.")] = None,
    max_body: Annotated[int | None, typer.Option(metavar="BYTES", help="The largest request: 8 MiB.")] = None,
    max_id_bytes: Annotated[int | None, typer.Option(metavar="BYTES", help="The longest id, in UTF-8: 256.")] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests per second of one key: 1000 where there are keys; 0 is no limit.")
    ] = None,
    public_rate: Annotated[
        float | None, typer.Option(help="The same for one shopper, or for one address without a key: 50.")
    ] = None,
    timeout: Annotated[float | None, typer.Option(metavar="SECONDS", help="How long a request may take: 30.")] = None,
    grace: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="How long running requests have to finish at the end: 10.")
    ] = None,
    fallback: Annotated[
        str | None, typer.Option(metavar="popular|nothing", help="Recommendations for unknown users: popular items.")
    ] = None,
    fallback_days: Annotated[int | None, typer.Option(help="Popular in this number of past days only.")] = None,
    fallback_category: Annotated[str | None, typer.Option(help="Popular in this category only.")] = None,
    time_unit: Annotated[
        str | None, typer.Option(metavar="s|ms|us|day", help="The unit of the shop's times since 1970: s.")
    ] = None,
    privacy_threshold: Annotated[
        int | None,
        typer.Option(metavar="PEOPLE", help="What shoppers and visitors learn rests on so many others: 10; 0 is off."),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar="UNBASKET_CONFIG", metavar="FILE", help="A TOML file with settings of the same names."),
    ] = None,
) -> None:
    """Serve the HTTP API and the page from a database, until SIGTERM or Ctrl-C.

    A flag overrides an environment variable (UNBASKET_PORT), and that the file of --config. On SIGHUP, the file
    and the keys are read again.
    """
    flags = dict(locals())
    with needing("service"):  # slow to import, and no other command needs it
        from unbasket.service.server import listening, run
        from unbasket.service.settings import Settings

    gather = partial(Settings.gathered, flags, file=config)
    settings = gather()
    welcome = partial(_welcome, settings.db)
    with listening(settings.host, settings.port) as listener:
        run(settings, listener, bar=progress_bar, ready=welcome, log=sys.stderr.buffer, reload=gather)


def _welcome(db: Path, address: str, rec: DurableRecommender) -> None:
    """Greet a person at a terminal; programs read the log."""
    if errors.is_terminal:
        say(f"{db}, {counted(len(rec), 'user')}, is served at {address}. Ctrl-C ends it.")
