"""The options of `spark run --kafka`: the topic of the events, and topics that are written to.

Options that `consume` has too have the same names there.
"""

from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple

from unbasket.cli._shared.client_options import read_client_options
from unbasket.cli._shared.consumer import BROKERS, TOPIC, option
from unbasket.errors import SettingsError

_MOST = 100_000  # messages in a batch, which must fit into the memory of the tasks


class TopicOptions(NamedTuple):
    """Topics of Kafka in place of a folder with files."""

    kafka: Annotated[bool, option("Read events from a topic instead of a folder.", "--kafka")] = False
    brokers: Annotated[str | None, BROKERS] = None
    topic: Annotated[str | None, TOPIC] = None
    start: Annotated[
        str,
        option("Where a new checkpoint starts: earliest, latest, or Spark's JSON of offsets.", metavar="OFFSETS"),
    ] = "earliest"
    batch: Annotated[int, option("Messages in a batch, at most.")] = _MOST
    dead_letter_topic: Annotated[
        str | None, option("Write messages that are no events to this topic.", metavar="NAME")
    ] = None
    recommendations_topic: Annotated[
        str | None, option("Write recommendations for each user who changed to this topic.", metavar="NAME")
    ] = None
    n: Annotated[int, option("Items in these recommendations.", "-n")] = 10
    client_config: Annotated[
        Path | None,
        option("Options of Kafka's Java client, such as those of TLS: name=value lines.", metavar="FILE"),
    ] = None
    accept_loss: Annotated[
        bool, option("Go on if messages are gone from the topic before they were read.", "--accept-loss")
    ] = False
    jars: Annotated[Path | None, option("A folder with the jars of Spark's connector for Kafka.", metavar="FOLDER")] = (
        None
    )

    def check(self, folder: str | None) -> None:
        """Check that events come from one place, and that no topic is read and written."""
        if self.kafka == (folder is not None):
            raise SettingsError("events come from a FOLDER or, with --kafka, from a topic: give one of them")
        if self.kafka and (self.brokers is None or self.topic is None):
            raise SettingsError("--kafka needs --brokers and --topic: where events come from")
        if not self.kafka and self.topic is not None:
            raise SettingsError(f"--topic {self.topic} has no effect without --kafka")
        named = [name for name in (self.topic, self.dead_letter_topic, self.recommendations_topic) if name is not None]
        if len(set(named)) < len(named):
            raise SettingsError(f"events, recommendations and rejected messages need topics of their own, not {named}")

    def spark_settings(self) -> dict[str, str]:
        """Return the settings with which Spark has its connector."""
        if self.jars is None:
            return {}
        found = sorted(map(str, self.jars.glob("*.jar")))
        if not found:
            raise SettingsError(f"{self.jars} has no jars")
        return {"spark.jars": ",".join(found)}

    def connect(self, lib: ModuleType, session: Any, schema: Any, checkpoint: str) -> tuple[Any, dict[str, Any]]:
        """Return the frame of events, and the sinks of a stream."""
        client = {} if self.client_config is None else read_client_options(self.client_config)
        kafka, sinks = lib.Kafka(self.brokers, client), {}
        if self.dead_letter_topic is not None:
            sinks["rejected"] = partial(kafka.write_rejected, self.dead_letter_topic)
        if self.recommendations_topic is not None:
            sinks["sink"] = partial(kafka.write_recommendations, self.recommendations_topic, checkpoint, self.n)
        offsets = {"start": self.start, "most": self.batch, "accept_loss": self.accept_loss}
        return kafka.read(session, self.topic, schema, **offsets), sinks
