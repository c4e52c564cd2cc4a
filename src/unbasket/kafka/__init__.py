"""Events from a topic of Kafka into the durable engine, each of them once.

    topic -> consumer -> messages -> events and offsets -> one transaction of the store
                |            |                                        |
                |     dead-letter topic                     receipts, tombstones
             counters

`consumer` reads batches and applies them. `messages` turns a message into an event, or says why it is none. `outbox`
writes to other topics: rejected messages, receipts, and tombstones of forgotten users. `settings` checks the options of
all this, `topics` that brokers answer, and `metrics` counts, for a progress line and for Prometheus.
"""

from unbasket.kafka.consumer import EventConsumer
from unbasket.kafka.metrics import Counters, CountersCollector
from unbasket.kafka.settings import ConsumerSettings
from unbasket.kafka.topics import check_topics

__all__ = ["ConsumerSettings", "Counters", "CountersCollector", "EventConsumer", "check_topics"]
