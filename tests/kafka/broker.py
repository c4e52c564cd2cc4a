"""Apache Kafka as a process: one node in KRaft mode, from the jars that `make test-kafka` fetches."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import confluent_kafka
from confluent_kafka import admin
from kafka.structs import TopicPartition

import kafka
from unbasket.residue import audit

ROOT = Path(__file__).parents[2]
JARS = ROOT / "build" / "kafka"
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_PROPERTIES = """
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={data}
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=2
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=2
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
log.cleaner.backoff.ms=200
log.retention.check.interval.ms=500
log.initial.task.delay.ms=100
"""


class Broker:
    """A broker, its files, and its clients. It can be killed and started again on the same files."""

    def __init__(self, folder: Path) -> None:
        assert JARS.is_dir(), "the jars of Kafka are missing: run `make test-kafka`, which fetches them"
        self.folder, self.data = folder, folder / "data"
        self._port, controller = free_port(), free_port()
        self.address = f"127.0.0.1:{self._port}"
        self._properties = folder / "broker.properties"
        self._properties.write_text(_PROPERTIES.format(port=self._port, controller=controller, data=self.data))
        self._java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", self._properties).wait()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def _java(self, *arguments: object) -> subprocess.Popen[bytes]:
        command = ["java", "-Xmx400m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", f"{JARS}/*"]
        with (self.folder / "broker.log").open("ab") as log:
            return subprocess.Popen([*command, *map(str, arguments)], stdout=log, stderr=log, start_new_session=True)

    def start(self) -> None:
        """Start the broker, and wait until it answers."""
        self._process = self._java("kafka.Kafka", self._properties)
        wait_until(self._answers, 60)
        self.admin = admin.AdminClient({"bootstrap.servers": self.address, "log_level": 2})
        wait_until(lambda: len(self.admin.list_topics(timeout=10).brokers) == 1, 60)

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self._port)) == 0

    def kill(self) -> None:
        """Kill the broker, as a crash would."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def create(self, *names: str, partitions: int = 1, config: Mapping[str, str] | None = None) -> None:
        """Create topics."""
        topics = [admin.NewTopic(name, partitions, 1, config=dict(config or {})) for name in names]
        for created in self.admin.create_topics(topics).values():
            created.result(30)

    def set_config(self, topic: str, config: Mapping[str, str]) -> None:
        """Change the configuration of a topic."""
        set_to = admin.AlterConfigOpType.SET
        entries = [admin.ConfigEntry(name, value, incremental_operation=set_to) for name, value in config.items()]
        resource = admin.ConfigResource("topic", topic, incremental_configs=entries)
        self.admin.incremental_alter_configs([resource])[resource].result(30)

    def delete(self, name: str) -> None:
        """Delete a topic."""
        self.admin.delete_topics([name])[name].result(30)
        wait_until(lambda: name not in self.admin.list_topics(timeout=10).topics, 30)

    def delete_records(self, topic: str, offset: int) -> None:
        """Delete the messages of partition 0 before an offset."""
        [deleted] = self.admin.delete_records([confluent_kafka.TopicPartition(topic, 0, offset)]).values()
        deleted.result(30)

    def residue(self, topic: str, markers: Sequence[str]) -> list[str]:
        """Return the markers that are in files of a topic."""
        _, findings = audit(self.data.glob(f"{topic}-*"), markers)
        return [marker for marker in markers if any(finding.marker == marker for finding in findings)]

    def read(self, topic: str) -> list[Any]:
        """Read a whole topic, with a client of another implementation than the consumer's."""
        with closing(kafka.KafkaConsumer(bootstrap_servers=self.address, consumer_timeout_ms=20_000)) as reader:
            partitions = [TopicPartition(topic, number) for number in sorted(reader.partitions_for_topic(topic))]
            ends = reader.end_offsets(partitions)
            reader.assign(partitions)
            reader.seek_to_beginning(*partitions)
            records = []
            while any(reader.position(partition) < ends[partition] for partition in partitions):
                for batch in reader.poll(timeout_ms=500).values():
                    records += batch
        return records


def free_port() -> int:
    """Return a port that is free now."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    """Wait until a condition holds; an error if it does not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.05)
