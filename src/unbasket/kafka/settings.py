"""The settings of a consumer, and what they mean for the client library."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unbasket.errors import SettingsError

_TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_MOST = 100_000  # messages in a batch: the model is locked for other writers meanwhile
_CRITICAL = 2  # syslog's level: all else comes as an error that is handled, or is a retry
_OURS = ("bootstrap.servers", "group.id", "enable.auto.commit", "auto.offset.reset", "enable.partition.eof")


@dataclass(frozen=True)
class ConsumerSettings:
    """Where events come from and what is written back.

    `client` has further options of librdkafka, such as those of TLS and SASL, for reading and writing.
    """

    brokers: str
    topic: str
    group: str | None = None  # one for this database alone
    batch: int = 1000
    receipts_topic: str | None = None
    dead_letter_topic: str | None = None
    tombstone: bool = False
    until_end: bool = False
    accept_loss: bool = False
    client: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        topics = [self.topic, self.receipts_topic, self.dead_letter_topic]
        named = [name for name in topics if name is not None]
        for name in named:
            if not _TOPIC.fullmatch(name):
                raise SettingsError(f"a topic has 1 to 249 letters, digits, dots, dashes and underscores, not {name!r}")
        if len(set(named)) < len(named):
            raise SettingsError(f"events, receipts and rejected messages need topics of their own, not {named}")
        for setting in ("brokers", "group"):
            if getattr(self, setting) == "":
                raise SettingsError(f"{setting} must not be empty")
        if not 1 <= self.batch <= _MOST:
            raise SettingsError(f"a batch has 1 to {_MOST:,} messages, not {self.batch}")
        ours = sorted(set(self.client) & set(_OURS))
        if ours:
            raise SettingsError(f"{ours[0]} is set by unbasket. Leave it out")

    @property
    def output_topics(self) -> list[str]:
        """The topics that are written to, besides that of the events."""
        return [name for name in (self.receipts_topic, self.dead_letter_topic) if name is not None]

    def client_options(self) -> dict[str, Any]:
        """Return the options of any client."""
        return {"log_level": _CRITICAL, **self.client, "bootstrap.servers": self.brokers}

    def consumer_options(self, signing_key: str) -> dict[str, Any]:
        """Return the options of the client that reads.

        Offsets in the database count. The group's are written for tools that show a group's lag, and never read. The
        signing key of a database names it as a member: after a crash it has its partitions back at once, and a second
        copy of the database is refused.
        """
        name = f"unbasket-{signing_key[:32]}"
        return {
            "group.instance.id": name,
            "queued.max.messages.kbytes": 16 * 1024,  # of a partition: then fetching waits until some are applied
            "fetch.queue.backoff.ms": 10,  # and for no longer: by default, it would pause for a second
            **self.client_options(),
            "group.id": self.group or name,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "enable.partition.eof": True,
        }

    def producer_options(self) -> dict[str, Any]:
        """Return the options of the client that writes: in order, each message once, for as long as it takes."""
        return {
            "compression.type": "gzip",  # which every client reads without further libraries
            "linger.ms": 2,
            "message.max.bytes": 100_000_000,  # the broker decides, and a message that it refuses is shortened
            **self.client_options(),
            "enable.idempotence": True,
            "message.timeout.ms": 0,
        }
