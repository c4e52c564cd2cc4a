"""`unbasket serve`: the HTTP API and the page."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from unbasket.cli._shared.consumer import BROKERS, TOPIC, ConsumerOptions, check_before_creating
from unbasket.cli._shared.options import with_options
from unbasket.cli._shared.terminal import counted, errors, needing, progress_bar, say
from unbasket.errors import SettingsError
from unbasket.store import DurableRecommender

if TYPE_CHECKING:
    from collections.abc import Iterable

    from prometheus_client import Metric

    from unbasket.kafka import ConsumerSettings, EventConsumer


@with_options(options=ConsumerOptions)
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
    tls_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Serve HTTPS with this certificate, in PEM, with its chain.")
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(metavar="FILE", help="The certificate's private key, in PEM.")] = None,
    client_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Accept only callers that show a certificate of this authority, in PEM."),
    ] = None,
    witness: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER_OR_URL",
            help="Put checkpoints before this witness: a folder that the shop can only add to, or the address of a "
            "C2SP tlog-witness. A database that is older than its witness knows is refused.",
        ),
    ] = None,
    timestamp: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Have this authority (RFC 3161) timestamp each checkpoint in the folder of the witness.",
        ),
    ] = None,
    accept_rollback: Annotated[
        str | None,
        typer.Option(
            metavar="REASON", help="Go on although the witness has a newer checkpoint. The reason becomes a receipt."
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
    default_time: Annotated[
        str | None, typer.Option(metavar="now|none", help="The time of a new basket without one: the clock's.")
    ] = None,
    privacy_threshold: Annotated[
        int | None,
        typer.Option(metavar="PEOPLE", help="What shoppers and visitors learn rests on so many others: 10; 0 is off."),
    ] = None,
    consume: Annotated[
        bool, typer.Option("--consume", help="Also apply the events of a topic of Kafka, as `unbasket consume` does.")
    ] = False,
    brokers: Annotated[str | None, BROKERS] = None,
    topic: Annotated[str | None, TOPIC] = None,
    config: Annotated[
        Path | None,
        typer.Option(envvar="UNBASKET_CONFIG", metavar="FILE", help="A TOML file with settings of the same names."),
    ] = None,
    *,
    options: ConsumerOptions,
) -> None:
    """Serve the HTTP API and the page from a database, until SIGTERM or Ctrl-C.

    A flag overrides an environment variable (UNBASKET_PORT), and that the file of --config. On SIGHUP, the file,
    the keys and the certificates are read again.
    """
    flags = dict(locals())
    with needing("service"):  # slow to import, and no other command needs it
        from unbasket.service.server import free_address, run
        from unbasket.service.settings import Settings

    gather = partial(Settings.gathered, flags, file=config)
    settings = gather()
    beside = []
    if consume:
        if brokers is None or topic is None:
            raise SettingsError("--consume needs --brokers and --topic: where events come from")
        source = options.settings(brokers, topic)
        check_before_creating(settings.db, source)
        beside.append(_Consuming(source))
    elif topic is not None:
        raise SettingsError(f"--topic {topic} has no effect without --consume")
    welcome = partial(_welcome, settings.db)
    address = free_address(settings.host, settings.port)
    run(
        settings,
        address,
        bar=progress_bar,
        ready=welcome,
        log=sys.stderr.buffer,
        reload=gather,
        beside=beside,
        accept_rollback=accept_rollback,
    )


class _Consuming:
    """The consumer of Kafka's events beside the requests: a `BackgroundTask` of the service."""

    def __init__(self, settings: "ConsumerSettings") -> None:
        self._settings = settings
        self._consumer: EventConsumer | None = None
        self._is_stopped = False

    def run(self, rec: DurableRecommender) -> None:
        """Apply events until `stop`, and finish the batch then."""
        from unbasket.kafka import EventConsumer
        from unbasket.service import logs

        self._consumer = EventConsumer(rec, self._settings, warn=lambda text: logs.get().warning(text))
        if not self._is_stopped:
            self._consumer.run()

    def stop(self) -> None:
        """Let `run` return."""
        self._is_stopped = True
        if self._consumer is not None:
            self._consumer.stop()

    def collect(self) -> "Iterable[Metric]":
        """Return the consumer's counters."""
        from unbasket.kafka import Counters, CountersCollector

        return CountersCollector(Counters() if self._consumer is None else self._consumer.counters).collect()


def _welcome(db: Path, address: str, rec: DurableRecommender) -> None:
    """Greet a person at a terminal; programs read the log."""
    if errors.is_terminal:
        say(f"{db}, {counted(len(rec), 'user')}, is served at {address}. Ctrl-C ends it.")
