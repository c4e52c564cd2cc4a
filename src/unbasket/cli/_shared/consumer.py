"""The options of a consumer of Kafka's events, which `consume` and `serve --consume` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from unbasket.cli._shared.client_options import read_client_options
from unbasket.cli._shared.terminal import needing

if TYPE_CHECKING:
    from unbasket.kafka import ConsumerSettings

_KAFKA = "Events from Kafka"


def option(text: str, *names: str, **more: Any) -> Any:
    """Return an option in the panel of Kafka."""
    return typer.Option(*names, help=text, rich_help_panel=_KAFKA, **more)


BROKERS = option("Some brokers.", envvar="UNBASKET_BROKERS", metavar="HOST:PORT,...")
TOPIC = option("The topic of the events, with users as keys.", metavar="NAME")


def check_before_creating(db: Path, settings: "ConsumerSettings") -> None:
    """Check brokers and topics if a database is about to be created: a mistyped name must leave none behind."""
    if not db.exists():
        from unbasket.kafka import check_topics

        check_topics(settings)


class ConsumerOptions(NamedTuple):
    """The options of a consumer that need not be given."""

    group: Annotated[
        str | None,
        option(
            "A consumer group that shares the partitions among databases. By default, this one reads all of them.",
            metavar="NAME",
        ),
    ] = None
    receipts_topic: Annotated[
        str | None, option("Write the receipts of all forgets to this topic.", metavar="NAME")
    ] = None
    dead_letter_topic: Annotated[
        str | None, option("Write messages that are no events to this topic.", metavar="NAME")
    ] = None
    tombstone: Annotated[
        bool,
        option("Write a tombstone for each forgotten user's key into the topic, which is compacted.", "--tombstone"),
    ] = False
    batch: Annotated[int, option("Messages in a transaction, at most.")] = 1000
    client_config: Annotated[
        Path | None,
        option("Options of librdkafka, such as those of TLS and SASL: name=value lines.", metavar="FILE"),
    ] = None
    accept_loss: Annotated[
        bool, option("Go on if messages are gone from the topic before they were read.", "--accept-loss")
    ] = False

    def settings(self, brokers: str, topic: str, *, until_end: bool = False) -> "ConsumerSettings":
        """Return the settings of a consumer."""
        with needing("kafka"):  # no other command needs it
            from unbasket.kafka import ConsumerSettings

        given = self._asdict()
        file = given.pop("client_config")
        client = {} if file is None else read_client_options(file)
        return ConsumerSettings(brokers=brokers, topic=topic, until_end=until_end, client=client, **given)
