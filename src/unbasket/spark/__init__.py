"""The same model on Spark, for shops that outgrow one machine (paper, section 5).

    events -> state of each user -> changes of vectors -> table -> recommendations
    sources   user_state            stream                table    prediction, pooling

The state store keeps a user's baskets and nothing derived from them. `user_state` applies events to them with the
engine's own code, so a vector from Spark equals the engine's, bit for bit. `bulk` loads and reads states in batch, and
`checkpoint` identifies the parameters of a stream. `settings` configure Spark to erase forgotten data, and `residue`
searches files for it.
"""

from unbasket.spark.bulk import histories, history_row, history_schema, load
from unbasket.spark.checkpoint import DEFAULT_ALPHA, identify
from unbasket.spark.prediction import recommend
from unbasket.spark.residue import Finding, audit
from unbasket.spark.settings import session
from unbasket.spark.sources import event_schema, parse_messages, read_files
from unbasket.spark.stream import ERASED_WITHIN, Stream, events_in, maintain, settle, watch
from unbasket.spark.table import Table

__all__ = [
    "DEFAULT_ALPHA",
    "ERASED_WITHIN",
    "Finding",
    "Stream",
    "Table",
    "audit",
    "event_schema",
    "events_in",
    "histories",
    "history_row",
    "history_schema",
    "identify",
    "load",
    "maintain",
    "parse_messages",
    "read_files",
    "recommend",
    "session",
    "settle",
    "watch",
]
