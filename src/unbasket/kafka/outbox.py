"""Messages out: rejected ones to the dead-letter topic, receipts, and tombstones of forgotten users."""

from collections.abc import Callable, Iterable
from functools import partial
from threading import Event as Flag

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import Message, Producer

from unbasket.domain.rejection import Reason
from unbasket.errors import KafkaError
from unbasket.kafka.settings import ConsumerSettings
from unbasket.store import Receipt

_POLL = 0.2  # seconds between two looks at whether to stop

Header = tuple[str, str | bytes | None]


class Outbox:
    """A producer. What was sent is delivered when `flush` says so."""

    def __init__(self, settings: ConsumerSettings) -> None:
        self._settings = settings
        self._producer = Producer(settings.producer_options())
        self._failure: ClientError | None = None
        self._refused: list[Callable[[], None]] = []  # that send shorter messages in place of refused ones

    def reject(self, message: Message, reason: Reason) -> None:
        """Send a message to the dead-letter topic, as it is, with the reason and where it came from as headers."""
        topic = self._settings.dead_letter_topic
        if topic is None:
            return
        value = message.value() or b""
        headers: list[Header] = [
            ("reason", reason),
            ("topic", message.topic()),
            ("partition", str(message.partition())),
            ("offset", str(message.offset())),
        ]
        shortened = partial(self._send, topic, message.key(), b"", [*headers, ("size", str(len(value)))])
        self._send(topic, message.key(), value, headers, if_too_large=shortened)

    def send_receipts(self, receipts: Iterable[Receipt]) -> None:
        """Send receipts, with their numbers as keys."""
        assert self._settings.receipts_topic is not None
        for receipt in receipts:
            self._send(self._settings.receipts_topic, str(receipt.number).encode(), receipt.to_json(), [])

    def bury(self, key: bytes, partition: int) -> None:
        """Send a tombstone for a key into the topic of the events: its compaction removes all messages of the key."""
        self._send(self._settings.topic, key, None, [], partition=partition)

    @property
    def is_flushed(self) -> bool:
        """Whether all that was sent is known to be delivered."""
        return not (len(self._producer) or self._refused) and self._failure is None

    def flush(self, stop: Flag) -> bool:
        """Wait until all that was sent is delivered; return False if `stop` was set first."""
        while len(self._producer) or self._refused:
            self._producer.flush(_POLL)
            for send in self._refused:
                send()
            self._refused = []
            if stop.is_set():
                return False
        if self._failure is not None:
            raise KafkaError(f"a message could not be written: {self._failure.str()}")
        return True

    def _send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: list[Header],
        *,
        partition: int = -1,
        if_too_large: Callable[[], None] | None = None,
    ) -> None:
        """Hand a message to the client; while its queue is full, wait for room."""

        def delivered(error: ClientError | None, _: Message) -> None:
            if error is None:
                return
            if error.code() == ClientError.MSG_SIZE_TOO_LARGE and if_too_large is not None:
                self._refused.append(if_too_large)  # to be sent by `flush`: the client can't be called from here
            else:
                self._failure = error

        while True:
            try:
                self._producer.produce(
                    topic, value=value, key=key, headers=headers, partition=partition, on_delivery=delivered
                )
            except BufferError:
                self._producer.poll(_POLL)
            else:
                self._producer.poll(0)
                return
