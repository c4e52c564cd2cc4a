"""The consumer: it applies the events of a topic to a durable engine, with their offsets in the same transaction."""

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Event as Flag
from typing import Any, ParamSpec, TypeVar

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError

from unbasket.domain.events import Event, Forget, learns_first
from unbasket.domain.rejection import Reason
from unbasket.errors import ErasureBlockedError, InvalidEventError, InvalidIdError, KafkaError
from unbasket.kafka.messages import RejectedError, parse_message
from unbasket.kafka.metrics import Counters
from unbasket.kafka.outbox import Outbox
from unbasket.kafka.settings import ConsumerSettings
from unbasket.kafka.topics import check_topics
from unbasket.store import DurableRecommender

_POLL = 0.5  # seconds that a call waits for messages, and so how long `stop` may take
_TIMEOUT = 30.0  # seconds for the brokers to answer
_PROGRESS_EVERY = 1.0  # seconds
_RECEIPTS = 1000  # that are read at a time
_FATAL = {
    ClientError.UNKNOWN_TOPIC_OR_PART,
    ClientError.TOPIC_AUTHORIZATION_FAILED,
    ClientError.GROUP_AUTHORIZATION_FAILED,
    ClientError._AUTHENTICATION,
}

P = ParamSpec("P")
Result = TypeVar("Result")

_Entry = tuple[Message, Event | None]
"""A message that is new to the database, and its event; None if it has none and only moves the cursor."""


class EventConsumer:
    """A reader of a topic into a durable engine; `run` may be called in a thread of its own.

    A *cursor* of the database is the offset up to which it has applied a partition. It moves in the transaction of the
    events, and alone decides where reading starts and which messages are new. So each event counts once in a database,
    whatever is killed when, and however often a message is delivered.

    Other topics are not part of that transaction. Rejected messages are delivered before the commit, receipts and
    tombstones after it; cursors of their own tell the next start which of them to send again.
    """

    def __init__(
        self,
        rec: DurableRecommender,
        settings: ConsumerSettings,
        *,
        warn: Callable[[str], None] = lambda _: None,
        progress: Callable[[Counters], None] = lambda _: None,
    ) -> None:
        """Prepare for reading. `warn` is called with sentences for the log, `progress` about once a second."""
        self.counters = Counters()
        self._rec, self._settings, self._warn, self._progress = rec, settings, warn, progress
        self._stop = Flag()
        self._outgoing: dict[str, int] = {}  # cursors of messages that were sent, and perhaps not delivered
        self._delivered: dict[str, int] = {}  # and of those that were, for the next transaction
        self._ended: dict[int, bool] = {}  # the partitions of this consumer, and whether all of each was read
        self._troubles: set[int] = set()  # that were warned of
        self._progress_due = 0.0

    def stop(self) -> None:
        """Let `run` finish its batch and return. Safe in signal handlers and from other threads."""
        self._stop.set()

    def run(self) -> None:
        """Apply events until `stop` is called, or with `until_end` until all messages were read."""
        settings = self._settings
        self._outbox = Outbox(settings)
        self._consumer = Consumer({**settings.consumer_options(self._rec.signing_key), "error_cb": self._trouble})
        try:
            check_topics(settings, self._stop)
            self._consumer.subscribe([settings.topic], on_assign=self._assigned)
            while not (self._stop.is_set() or self._is_done()):
                messages = self._consumer.consume(1, _POLL)
                if messages and settings.batch > 1:
                    messages += self._consumer.consume(settings.batch - 1, 0)
                _with_collector(gc.disable, self._apply, messages)
            self._store_delivered()
            self._tell_group()
        finally:
            self._consumer.close()

    def _trouble(self, error: ClientError) -> None:
        """Warn once until the next batch that brokers can't be reached, for instance; the client goes on trying."""
        if error.code() not in self._troubles:
            self._troubles.add(error.code())
            self._warn(f"Kafka: {error.str()}")

    def _is_done(self) -> bool:
        return self._settings.until_end and bool(self._ended) and all(self._ended.values())

    # Partitions -------------------------------------------------------------------------------------------------

    def _cursor(self, partition: int) -> str:
        """Return the cursor up to which the events of a partition were applied."""
        return f"{self._settings.topic}/{partition}"

    def _burials(self, partition: int) -> str:
        """Return the cursor up to which tombstones were written for the forgets of a partition."""
        return f"{self._settings.topic}/{partition}/tombstones"

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        """Take over partitions that the group has assigned."""
        self._ended = {partition.partition: False for partition in partitions}
        self._start()
        elsewhere = [name for name in self._rec.cursors() if self._is_elsewhere(name)]
        if elsewhere:
            self._warn(
                f"this database holds events of {', '.join(elsewhere)}, which another consumer of the group reads now"
                ": what is forgotten there stays here. See docs/kafka.md"
            )

    def _start(self) -> None:
        """Start each partition where this database has stopped, wherever the group is."""
        cursors, starts = self._rec.cursors(), []
        for number in self._ended:
            start = applied = cursors.get(self._cursor(number), 0)
            if self._settings.tombstone:
                buried = self._burials(number)
                self._delivered[buried] = start = cursors.get(buried, applied)
            starts.append(TopicPartition(self._settings.topic, number, start if applied else OFFSET_BEGINNING))
        self._consumer.assign(starts)

    def _is_elsewhere(self, cursor: str) -> bool:
        topic, _, number = cursor.partition("/")
        return topic == self._settings.topic and number.isdecimal() and int(number) not in self._ended

    def _note(self, error: ClientError, number: int) -> None:
        """Note the end of a partition, or raise an error that waiting does not help against.

        The client itself retries after all others.
        """
        if number in self._ended and error.code() == ClientError._PARTITION_EOF:
            self._ended[number] = True
        elif number in self._ended and error.code() == ClientError._AUTO_OFFSET_RESET:
            self._go_on_where_the_topic_starts(number)
        elif error.fatal() or error.code() in _FATAL:
            raise KafkaError(f"topic {self._settings.topic} can't be read: {error.str()}")

    def _go_on_where_the_topic_starts(self, number: int) -> None:
        """Go on at the first message of a partition that is still there; an error if some were not read before."""
        topic, cursor = self._settings.topic, self._cursor(number)
        first, end = self._consumer.get_watermark_offsets(TopicPartition(topic, number), _TIMEOUT)
        applied = self._rec.cursors().get(cursor, 0)
        if not first <= applied <= end:  # otherwise, only messages for which tombstones were due are gone
            if not self._settings.accept_loss:
                raise KafkaError(
                    f"partition {number} of {topic} has messages from offset {first} to {end}, and this database has "
                    f"read up to {applied}: messages are lost, or the topic is another one. To go on at {first}, "
                    "accept the loss: --accept-loss"
                )
            self._warn(f"partition {number} goes on at offset {first} instead of {applied}: the loss was accepted")
            self._rec.apply([], cursors={cursor: first})
        if self._settings.tombstone:
            self._rec.apply([], cursors={self._burials(number): first})
        self._start()

    # Batches ----------------------------------------------------------------------------------------------------

    def _apply(self, messages: Sequence[Message]) -> None:
        """Apply the messages that are new to this database, and send what follows from them."""
        cursors = self._rec.cursors()
        entries = self._new_entries(messages, cursors)
        if entries and self._flush():
            self._commit(entries)
        self._send_receipts()
        if self._outgoing and self._flush():
            self._delivered |= self._outgoing
            self._outgoing = {}
        if not entries:
            self._store_delivered()
        self._report()

    def _new_entries(self, messages: Sequence[Message], cursors: dict[str, int]) -> list[_Entry]:
        """Return the messages that were not applied yet, with their events; those that have none are rejected."""
        entries, applied = [], {number: cursors.get(self._cursor(number), 0) for number in self._ended}
        for message in messages:
            error = message.error()
            number: Any = message.partition()
            offset: Any = message.offset()
            if error is not None:
                self._note(error, number)
            elif number not in applied:  # the partition was revoked while the batch was read
                continue
            elif offset < applied[number]:
                self._skip(message)
            else:
                self._ended[number] = False
                applied[number] = offset + 1
                entries.append((message, self._event_in(message)))
        return entries

    def _event_in(self, message: Message) -> Event | None:
        value = message.value()
        if value is None:  # a tombstone, of this or another program: there is nothing to learn from it
            return None
        try:
            return parse_message(message.key(), value)
        except RejectedError as error:
            self._reject(message, error.reason)
            return None

    def _reject(self, message: Message, reason: Reason) -> None:
        self.counters.rejected[reason] += 1
        self._outbox.reject(message, reason)
        if self._settings.dead_letter_topic is None:
            place = f"partition {message.partition()}, offset {message.offset()}"
            self._warn(f"{place} of {message.topic()} was rejected: {reason}")

    def _commit(self, entries: Sequence[_Entry]) -> bool:
        """Apply events and move cursors in one transaction; return False if `stop` came before that.

        The engine refuses a batch as a whole, so one with an id of another type is divided until that event is alone.
        """
        events = learns_first([event for _, event in entries if event is not None])
        last: dict[Any, Any] = {message.partition(): message.offset() for message, _ in entries}
        cursors = {self._cursor(number): offset + 1 for number, offset in last.items()}
        try:
            self._rec.apply_checked(events, self._delivered | cursors)
        except (InvalidIdError, InvalidEventError):
            if len(entries) > 1:
                half = len(entries) // 2
                return self._commit(entries[:half]) and self._commit(entries[half:])
            self._reject(entries[0][0], Reason.OTHER_TYPE)
            return self._flush() and self._commit([(entries[0][0], None)])
        except ErasureBlockedError as error:  # all was committed
            self.counters.blocked += 1
            self._warn(str(error))
        self._count(events)
        self._bury(entries)
        return True

    def _count(self, events: Sequence[Event]) -> None:
        forgets = Counter(map(type, events))[Forget]
        self.counters.forgets += forgets
        self.counters.learns += len(events) - forgets
        self.counters.batches += 1
        self._troubles.clear()

    def _report(self) -> None:
        """Report the progress, now and then: to the caller and to the group."""
        if time.monotonic() >= self._progress_due:
            self._progress_due = time.monotonic() + _PROGRESS_EVERY
            self._tell_group()
            self._progress(self.counters)

    def _tell_group(self) -> None:
        """Find the lag, and commit offsets to the group, for tools that show it; this consumer never reads them."""
        topic, cursors, lag = self._settings.topic, self._rec.cursors(), 0
        applied = {number: cursors[self._cursor(number)] for number in self._ended if self._cursor(number) in cursors}
        for number, is_at_end in self._ended.items():
            if not is_at_end:
                _, end = self._consumer.get_watermark_offsets(TopicPartition(topic, number), cached=True)
                lag += max(0, end - applied.get(number, 0))
        self.counters.lag = lag
        with suppress(KafkaException):  # the group may have given a partition to another consumer
            offsets = [TopicPartition(topic, number, offset) for number, offset in applied.items()]
            self._consumer.commit(offsets=offsets, asynchronous=True)

    # Messages out -----------------------------------------------------------------------------------------------

    def _flush(self) -> bool:
        """Wait until all messages out are delivered; return False if `stop` was set first."""
        return self._outbox.is_flushed or _with_collector(gc.enable, self._outbox.flush, self._stop)

    def _skip(self, message: Message) -> None:
        """Skip a message that was applied before; the tombstones for it may be missing."""
        self.counters.redelivered += 1
        value = message.value()
        if self._settings.tombstone and value is not None:
            with suppress(RejectedError):
                self._bury([(message, parse_message(message.key(), value))])

    def _bury(self, entries: Sequence[_Entry]) -> None:
        """Send a tombstone for the key of each forget after which nothing is held of the user."""
        if not self._settings.tombstone:
            return
        for message, event in entries:
            number: Any = message.partition()
            offset: Any = message.offset()
            key, cursor = message.key(), self._burials(number)
            if offset < self._delivered.get(cursor, 0):
                continue
            if isinstance(event, Forget) and key is not None and event.user not in self._rec:
                self._outbox.bury(key, number)
                self.counters.tombstones += 1
            self._outgoing[cursor] = offset + 1

    def _send_receipts(self) -> None:
        """Send the receipts of all forgets since the last one that was sent, also of those by other callers."""
        topic = self._settings.receipts_topic
        if topic is None:
            return
        cursor, last = f"receipts/{topic}", self._rec.receipt_count
        sent = self._outgoing.get(cursor, self._delivered.get(cursor, self._rec.cursors().get(cursor, 0)))
        for first in range(sent + 1, last + 1, _RECEIPTS):
            receipts = self._rec.receipts(first, min(first + _RECEIPTS - 1, last))
            self._outbox.send_receipts(receipts)
            self.counters.receipts += len(receipts)
            self._outgoing[cursor] = receipts[-1].number

    def _store_delivered(self) -> None:
        """Store the cursors of delivered messages, unless they are stored: nothing else is being written."""
        cursors = self._rec.cursors()
        if any(cursors.get(name) != position for name, position in self._delivered.items()):
            self._rec.apply([], cursors=self._delivered)


def _with_collector(
    switch: Callable[[], None], function: Callable[P, Result], *arguments: P.args, **named: P.kwargs
) -> Result:
    """Call a function with garbage collection switched on or off.

    It took a tenth of the time of a batch, which has many objects and no cycles; but a wait for brokers may last. This
    is no context manager, which an interrupt could keep from ending.
    """
    switch_back = gc.enable if gc.isenabled() else gc.disable
    try:
        switch()
        return function(*arguments, **named)
    finally:
        switch_back()
