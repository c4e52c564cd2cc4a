"""A shard of the state: the histories of the users whose hash leads to it, in files.

    bases    a file for each of B stripes, sorted by hash
    deltas   a file for each of the last B - 1 batches: the rows that changed, sorted by hash

A row is the hash of a user and their history. One in a newer delta replaces all older ones, and a tombstone all of a
user. Batch n writes a delta, and a new base of stripe n mod B from the old one and all deltas; the delta of batch
n - B + 1, which is then in every base, is dropped. So no file holds a replaced row or a forgotten user for more than
B - 1 further batches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbasket.spark.state import State


class Shard:
    """The files of one shard, as of a version. They are opened at once, since the next batch may remove some."""

    def __init__(self, state: State, number: int) -> None:
        self.state, self.number = state, number
        self._none = pa.schema([("hash", pa.int64()), *state.schema]).empty_table()
        read = state.folder.read_table
        self._bases = {stripe: read(name) for stripe, name in state.files_of(number, "base").items()}
        self._deltas = [read(name) for _, name in sorted(state.files_of(number, "delta").items(), reverse=True)]
        self.written: list[str] = []
        self.bytes_written = 0

    def find(self, users: pa.Table) -> pa.Table:
        """Return the rows of some users, given as hash and user; those who are unknown have none."""
        found, missing = [self._none], users
        for file in (*self._deltas, *self._bases.values()):
            rows = _having(file, np.unique(_hashes(missing)))
            found.append(rows.filter(pc.is_in(rows["user"], missing["user"].combine_chunks())))  # hashes may be equal
            missing = missing.filter(pc.invert(pc.is_in(missing["user"], found[-1]["user"].combine_chunks())))
        rows = pa.concat_tables(found)
        return rows.filter(has_baskets(rows))

    def rows(self) -> Iterator[pa.Table]:
        """Yield all rows, one stripe after the other."""
        for stripe in range(self.state.stripes):
            yield self._merged(stripe, self._deltas)

    def write(self, batch: int, delta: pa.Table) -> None:
        """Write the rows that a batch changed, and rewrite the stripe whose turn it is."""
        if len(delta) or delta.schema.metadata:
            self._write("delta", batch, delta.take(pc.sort_indices(delta["hash"])))
        self.write_base(batch % self.state.stripes, delta)

    def write_base(self, stripe: int, delta: pa.Table) -> None:
        """Write a stripe with all changes, unless there are none."""
        deltas = [delta, *self._deltas]
        if any(len(self._of_stripe(rows, stripe)) for rows in deltas):
            self._write("base", stripe, self._merged(stripe, deltas))

    def _write(self, kind: str, number: int, rows: pa.Table) -> None:
        self.written.append(self.state.new_file(self.number, kind, number))
        self.bytes_written += self.state.folder.write_table(self.written[-1], rows)

    def _merged(self, stripe: int, deltas: list[pa.Table]) -> pa.Table:
        """Return a stripe with all changes in deltas, newest first."""
        changes = [self._of_stripe(delta, stripe) for delta in deltas]
        rows = _newest(pa.concat_tables([*changes, self._bases.get(stripe, self._none)]))
        return rows.replace_schema_metadata()  # without a delta's rejected events

    def _of_stripe(self, rows: pa.Table, stripe: int) -> pa.Table:
        return rows.filter(pa.array((_hashes(rows).view(np.uint64) >> 32) % self.state.stripes == stripe))


def has_baskets(rows: pa.Table) -> pa.ChunkedArray:
    """Return for each row whether it is no tombstone."""
    return pc.greater(pc.list_value_length(rows["baskets"]), 0)


def with_hashes(rows: pa.Table, users: pa.Table) -> pa.Table:
    """Return histories as rows with the hashes of their users, which `users` has."""
    hashes = users["hash"].take(pc.index_in(rows["user"], users["user"].combine_chunks()))
    return rows.add_column(0, "hash", hashes)


def _hashes(rows: pa.Table) -> Any:
    return rows["hash"].combine_chunks().to_numpy()


def _having(rows: pa.Table, wanted: Any) -> pa.Table:
    """Return those of rows, sorted by hash, that have one of some hashes. Users may have equal hashes."""
    first, end = (np.searchsorted(_hashes(rows), wanted, side) for side in ("left", "right"))
    counts = end - first
    shifts = np.repeat(first - np.cumsum(counts) + counts, counts)
    return rows.take(pa.array(np.arange(len(shifts)) + shifts))


def _newest(rows: pa.Table) -> pa.Table:
    """Return the first row of each user, sorted by hash, without tombstones."""
    keys = rows.select(["hash", "user"]).append_column("row", pa.array(np.arange(len(rows))))
    first = keys.group_by(["hash", "user"], use_threads=False).aggregate([("row", "min")]).sort_by("hash")
    newest = rows.combine_chunks().take(first["row_min"])
    return newest.filter(has_baskets(newest))
