"""The state in an object store: moto's S3 server, in a process of its own."""

import os
import random
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs
from pyspark.sql import SparkSession
from tests.laws import apply
from tests.spark.scoring import vectors_in
from tests.spark.shop import random_shop_events
from tests.spark.test_batch import KINDS, PARAMS, frame_of

from unbasket import Recommender
from unbasket.errors import SparkError
from unbasket.spark import State, histories
from unbasket.spark.batch import Maintainer
from unbasket.spark.storage import Folder


@pytest.fixture(scope="module")
def bucket() -> Iterator[str]:
    """Start the server; yield the address of a new bucket, as Spark writes it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        endpoint = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", endpoint.partition(":")[2]]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_for(endpoint, server)
        keys = {"access_key": "any", "secret_key": "any", "region": "us-east-1", "scheme": "http"}
        fs.S3FileSystem(endpoint_override=endpoint, allow_bucket_creation=True, **keys).create_dir("shop")
        yield f"s3a://any:any@shop/{{}}?region=us-east-1&scheme=http&endpoint_override={endpoint}"
    finally:
        server.kill()
        server.wait()


def wait_for(endpoint: str, server: subprocess.Popen[bytes]) -> None:
    host, _, port = endpoint.partition(":")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert server.poll() is None
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) == 0:
                return
        time.sleep(0.1)
    raise AssertionError("the server did not start")


def test_batches_on_an_object_store(spark: SparkSession, bucket: str) -> None:
    """Executors read and write the state there; Spark's own checkpoint is no part of it. A second driver is refused."""
    events = random_shop_events(random.Random(6), [f"user {i}" for i in range(30)], ["a", "b", "c"], ["p", "q", "r"])
    rec, checkpoint = Recommender(PARAMS), bucket.format("checkpoint")
    State.create(checkpoint, PARAMS, KINDS, shards=2, stripes=3)
    maintainer = Maintainer(State.take_over(checkpoint), lambda changes, _: changes.count())
    for batch in range(4):
        own = list(islice(events, 60))
        apply(rec, own)
        maintainer(frame_of(spark, own), batch)
    assert vectors_in(histories(spark, checkpoint), PARAMS) == {user: rec.vector(user) for user in rec.users()}
    state = State.read(checkpoint)
    assert set(state.folder.names()) == {state.manifest, *state.files}
    State.take_over(checkpoint)
    with pytest.raises(SparkError, match="another driver has taken over"):
        maintainer(frame_of(spark, []), 4)


@pytest.mark.parametrize("place", ["local", "address", "s3"])
def test_a_folder(tmp_path: Path, bucket: str, place: str) -> None:
    """The same on each kind of file system, and by each way to write an address."""
    uris = {"local": os.path.relpath(tmp_path), "address": tmp_path.as_uri(), "s3": bucket.format("folder")}
    folder = Folder(uris[place])
    assert folder.names() == []
    folder.make()
    table = pa.table({"user": ["ann", "bob"], "baskets": [[1, 2], []]})
    size = folder.write_table("a.arrow", table)
    read = folder.read_table("a.arrow")
    assert read == table
    assert folder.create("m", b"first", "x")
    assert not folder.create("m", b"second", "x")
    assert folder.read("m").to_pybytes() == b"first"
    assert sorted(folder.names()) == ["a.arrow", "m"]
    folder.remove("a.arrow")
    folder.remove("a.arrow")
    assert folder.names() == ["m"]
    assert read == table, "a file that was opened stays readable"
    with pytest.raises(FileNotFoundError):
        folder.read_table("a.arrow")
    assert size > 100
