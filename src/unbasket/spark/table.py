"""A table of all users' current vectors, in Parquet files, to which every batch is applied exactly once.

Users are divided into buckets, one file each. A batch writes new files for the buckets that it changes. Then it
replaces the manifest, which names the files of the table and the last batch: this commits the whole batch. A batch that
is repeated after a crash is recognized by its number. Replaced files stay for one more batch, for concurrent readers.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sql
from pyspark.sql.types import StructType

from unbasket.errors import SparkError
from unbasket.files import replacing, write
from unbasket.params import Params
from unbasket.spark.checkpoint import Identity
from unbasket.spark.sources import item_type

UPDATED, REMOVED, REJECTED = "updated", "removed", "rejected"
"""The kinds of changes."""

_MANIFEST = "table.json"
_COLUMNS = ["user", "items", "weights"]
_WRITTEN = "bucket int, file string, users long, rejected long"


class Manifest(NamedTuple):
    """The content of the table after a batch."""

    stream: str
    params: dict[str, Any]
    batch: int
    user: str
    item: str
    buckets: int
    files: dict[str, str]
    users: dict[str, int]
    rejected: int


class Table:
    """A folder with the files and the manifest, on a file system that all executors share."""

    def __init__(self, path: str) -> None:
        self.path = Path(path).absolute()
        try:
            self.manifest = Manifest(**json.loads((self.path / _MANIFEST).read_text()))
        except OSError as error:
            raise SparkError(f"{path} is not a table of vectors: {_MANIFEST}: {error.strerror}") from error

    @classmethod
    def open_or_create(cls, path: str, identity: Identity, schema: StructType, buckets: int) -> Self:
        """Open the table of a stream or create it; refuse the table of another stream."""
        folder = Path(path).absolute()
        if not (folder / _MANIFEST).exists():
            folder.mkdir(parents=True, exist_ok=True)
            user, item = schema["user"].dataType.simpleString(), item_type(schema).simpleString()
            _replace(folder, Manifest(identity.name, asdict(identity.params), -2, user, item, buckets, {}, {}, 0))
        table = cls(path)
        if table.manifest.stream != identity.name:
            raise SparkError(
                f"{path} is the table of another checkpoint. Use that one, or another folder for the table"
            )
        return table

    @property
    def batch(self) -> int:
        """The number of the last batch that was applied."""
        return self.manifest.batch

    @property
    def params(self) -> Params:
        """The parameters of the model."""
        return Params(**self.manifest.params)

    def __len__(self) -> int:
        return sum(self.manifest.users.values())

    def read(self, spark: SparkSession) -> DataFrame:
        """Read the current vectors: user, items, weights."""
        files = [str(self.path / name) for name in self.manifest.files.values()]
        schema = f"user {self.manifest.user}, items array<{self.manifest.item}>, weights array<double>"
        return spark.read.schema(schema).parquet(*files) if files else spark.createDataFrame([], schema)

    def merge(self, changes: DataFrame, batch: int) -> None:
        """Apply the changes of a batch, unless it is already applied."""
        if batch <= self.batch:
            changes.write.format("noop").mode("overwrite").save()  # the state store must process the batch again
            return
        old = self.manifest
        bucket = sql.expr(f"cast(pmod(hash(user), {old.buckets}) as int)")
        write = partial(_write_buckets, str(self.path), old.files, batch)
        spread = changes.withColumn("bucket", bucket).repartition("bucket")
        written = spread.mapInArrow(write, _WRITTEN).collect()
        self.manifest = old._replace(
            batch=batch,
            files=old.files | {str(row.bucket): row.file for row in written if row.file},
            users=old.users | {str(row.bucket): row.users for row in written if row.file},
            rejected=old.rejected + sum(row.rejected for row in written),
        )
        _replace(self.path, self.manifest)
        _remove_others(self.path, {*old.files.values(), *self.manifest.files.values()})


def _write_buckets(
    folder: str, files: dict[str, str], batch: int, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Write new files for the buckets with changes on this executor, and yield a summary of each."""
    received = list(batches)
    if not received:
        return
    changes = pa.Table.from_batches(received)
    for bucket in pc.unique(changes["bucket"]).to_pylist():
        mine = changes.filter(pc.equal(changes["bucket"], bucket))
        accepted = mine.filter(pc.not_equal(mine["change"], REJECTED))
        row: dict[str, Any] = {"bucket": bucket, "file": None, "users": 0, "rejected": len(mine) - len(accepted)}
        if len(accepted):
            row["file"] = f"{bucket:05d}-{batch:012d}.parquet" if batch >= 0 else f"{bucket:05d}-loaded.parquet"
            row["users"] = _write_bucket(Path(folder), files.get(str(bucket)), row["file"], accepted)
        schema = pa.schema(
            [("bucket", pa.int32()), ("file", pa.string()), ("users", pa.int64()), ("rejected", pa.int64())]
        )
        yield pa.RecordBatch.from_pylist([row], schema)


def _write_bucket(folder: Path, old: str | None, new: str, changes: pa.Table) -> int:
    vectors = changes.filter(pc.equal(changes["change"], UPDATED)).select(_COLUMNS)
    if old is not None:
        before = pq.read_table(folder / old).cast(vectors.schema)
        kept = before.filter(pc.invert(pc.is_in(before["user"], changes["user"].combine_chunks())))
        vectors = pa.concat_tables([kept, vectors])
    with replacing(folder / new) as partial_file:
        pq.write_table(vectors, partial_file)
    return len(vectors)


def _replace(folder: Path, manifest: Manifest) -> None:
    write(folder / _MANIFEST, json.dumps(manifest._asdict()).encode())


def _remove_others(folder: Path, names: set[str]) -> None:
    """Remove files of earlier batches and of interrupted attempts."""
    for file in folder.iterdir():
        if file.is_dir():
            shutil.rmtree(file)
        elif file.name not in names and file.name != _MANIFEST:
            file.unlink(missing_ok=True)
