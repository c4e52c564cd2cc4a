"""The same model on Spark, for shops that outgrow one machine (paper, section 5).

    events -> batch -> histories of each shard -> vectors -> recommendations
    sources   batch    shard, updates             bulk       prediction

The state is a folder of Arrow files with the users' histories and nothing derived from them: `storage` reads and writes
files, `state` names those that count and commits a batch, and `history_rows` passes their contents to the engine's own
code. `updates` applies events with it, so a vector from Spark equals the engine's, bit for bit. `stream` starts and
watches all this, `bulk` loads and reads the state, `kafka` reads and writes topics, and `settings` configure a session.
"""

from unbasket.residue import Finding, audit
from unbasket.spark.batch import BatchReport
from unbasket.spark.kafka import Kafka, parse_messages
from unbasket.spark.prediction import histories, into_table, recommend, vectors
from unbasket.spark.settings import session
from unbasket.spark.sources import event_schema, read_files
from unbasket.spark.state import State
from unbasket.spark.stream import Stream, load, maintain, settle, watch

__all__ = [
    "BatchReport",
    "Finding",
    "Kafka",
    "State",
    "Stream",
    "audit",
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
