"""The same model on Spark, for shops that outgrow one machine (paper, section 5).

    events -> batch -> histories of each shard -> vectors -> recommendations
    sources   batch    shard, updates             prediction

The state is a folder of Arrow files with the users' histories and nothing derived from them: `storage` reads and writes
files, and `state` names those that count and commits a batch. `updates` applies events with the engine's own code, so a
vector from Spark equals the engine's, bit for bit. `stream` loads a history, and starts and watches all this; `kafka`
reads and writes topics, and `settings` configure a session.
"""

from unbasket.spark.batch import BatchReport
from unbasket.spark.kafka import Kafka, parse_messages
from unbasket.spark.prediction import histories, into_table, recommend, vectors
from unbasket.spark.settings import session
from unbasket.spark.sources import event_schema, read_files
from unbasket.spark.state import State
from unbasket.spark.stream import Stream, load, maintain, settle, watch

__all__ = [
    "BatchReport",
    "Kafka",
    "State",
    "Stream",
    "event_schema",
    "histories",
    "into_table",
    "load",
    "maintain",
    "parse_messages",
    "read_files",
    "recommend",
    "session",
    "settle",
    "vectors",
    "watch",
]
