"""The topics of a consumer: whether brokers answer and have them."""

import time
from threading import Event as Flag

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from unbasket.errors import KafkaError
from unbasket.kafka.settings import ConsumerSettings

_POLL = 0.5  # seconds between two attempts
_TIMEOUT = 30.0  # seconds for brokers that are being started


def check_topics(settings: ConsumerSettings, stop: Flag | None = None) -> None:
    """Check that the brokers answer and the topics exist: a mistyped name must not wait for ever."""
    topics = _find_topics(settings, stop or Flag())
    for name in (settings.topic, *settings.output_topics):
        if name not in topics:
            raise KafkaError(f"topic {name} does not exist at {settings.brokers}. Create it, or check its name")


def _find_topics(settings: ConsumerSettings, stop: Flag) -> set[str]:
    """Return the topics that exist; an error if no broker answers in time, or before `stop` is set."""
    client, deadline = AdminClient(settings.client_options()), time.monotonic() + _TIMEOUT
    while True:
        try:
            return set(client.list_topics(timeout=_TIMEOUT).topics)
        except KafkaException as error:
            if time.monotonic() > deadline or stop.wait(_POLL):
                raise KafkaError(
                    f"no broker answers at {settings.brokers}: {error.args[0].str()}. Check the address and, with "
                    "--client-config, the security settings"
                ) from error
