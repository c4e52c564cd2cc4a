"""The same model on Spark, for shops that outgrow one machine (paper, section 5).

    events -> batch -> histories of each shard -> vectors -> recommendations
    sources   batch    shard, updates             catalog    prediction, pooling

The state is a folder of Arrow files with the users' histories and nothing derived from them: `storage` reads and writes
files, `manifest` names those that count and commits a batch, and `history_rows` are what they hold. `updates` applies
events with the engine's own code, so a vector from Spark equals the engine's, bit for bit. `stream` starts and watches
all this, `bulk` loads and reads the state, `kafka` reads and writes topics, `settings` configure a session, and
`residue` searches files for forgotten data.
"""

from unbasket.spark.batch import BatchReport
from unbasket.spark.bulk import histories, into_table, load, vectors
from unbasket.spark.history_rows import history_row, history_schema
from unbasket.spark.kafka import Kafka, parse_messages
from unbasket.spark.manifest import State
from unbasket.spark.prediction import recommend, recommending
from unbasket.spark.residue import Finding, audit
from unbasket.spark.settings import session
from unbasket.spark.sources import event_schema, read_files
from unbasket.spark.stream import Stream, maintain, settle, watch

__all__ = [
    "BatchReport",
    "Finding",
    "Kafka",
    "State",
    "Stream",
    "audit",
    "event_schema",
    "histories",
    "history_row",
    "history_schema",
    "into_table",
    "load",
    "maintain",
    "parse_messages",
    "read_files",
    "recommend",
    "recommending",
    "session",
    "settle",
    "vectors",
    "watch",
]
