"""`unbasket consume`: events from a topic of Kafka."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any

import typer

from unbasket.cli._shared.consumer import BROKERS, TOPIC, ConsumerOptions, check_before_creating
from unbasket.cli._shared.database import Db, open_to_write
from unbasket.cli._shared.options import with_options
from unbasket.cli._shared.terminal import errors, printable, say, warn

if TYPE_CHECKING:
    from unbasket.kafka import Counters

_LOG_EVERY = 60.0  # seconds between lines of progress in a log


@with_options(options=ConsumerOptions)
def consume(
    db: Db,
    brokers: Annotated[str, BROKERS],
    topic: Annotated[str, TOPIC],
    options: ConsumerOptions,
    metrics_port: Annotated[
        int | None, typer.Option(metavar="PORT", help="Serve metrics for Prometheus on this port of 127.0.0.1.")
    ] = None,
    until_end: Annotated[
        bool, typer.Option("--until-end", help="Exit when all messages were read, instead of waiting for more.")
    ] = False,
) -> None:
    """Apply the events of a topic of Kafka to a database, until SIGTERM or Ctrl-C.

    Offsets are in the database, in the transactions of the events: each event counts once. A database that does not
    exist is created, and starts at the beginning of the topic.
    """
    settings = options.settings(brokers, topic, until_end=until_end)
    check_before_creating(db, settings)
    from unbasket.kafka import CountersCollector, EventConsumer

    with open_to_write(db, may_create=True) as rec, _progress_line() as progress:
        consumer = EventConsumer(rec, settings, warn=warn, progress=progress)
        if metrics_port is not None:
            _serve_metrics(metrics_port, CountersCollector(consumer.counters))
        with _stopping(consumer.stop):
            consumer.run()
    say(_summary(consumer.counters))


def _summary(counters: "Counters") -> str:
    return (
        f"{counters.learns:,} learns and {counters.forgets:,} forgets applied, {counters.rejected.total():,} messages "
        f"rejected, {counters.redelivered:,} skipped since they were applied before"
    )


@contextmanager
def _progress_line() -> Iterator[Callable[["Counters"], None]]:
    """Yield a function that shows counters: in a line that changes, or in a log as a line each minute."""
    from unbasket.kafka.metrics import Rate, progress_line

    rate, due = Rate(), monotonic()
    if errors.is_terminal:
        with errors.status("waiting for the brokers") as status:
            yield lambda counters: status.update(progress_line(counters, rate.now(counters.events)))
        return

    def log(counters: "Counters") -> None:
        nonlocal due
        if monotonic() >= due:
            due = monotonic() + _LOG_EVERY
            errors.print(printable(progress_line(counters, rate.now(counters.events))), highlight=False, soft_wrap=True)

    yield log


def _serve_metrics(port: int, collector: Any) -> None:
    from prometheus_client import CollectorRegistry, start_http_server

    registry = CollectorRegistry()
    registry.register(collector)
    start_http_server(port, addr="127.0.0.1", registry=registry)


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Let signals call `stop`, once: a second Ctrl-C interrupts."""
    before: dict[int, Any] = {
        number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    }

    def stop_once(number: int, _: object) -> None:
        signal.signal(number, before[number])
        stop()

    try:
        for number, handler in before.items():
            if handler != signal.SIG_IGN:
                signal.signal(number, stop_once)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
