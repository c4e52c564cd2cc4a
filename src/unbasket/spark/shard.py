"""A shard of the state: the histories of the users whose hash leads to it, in files.

    bases    a file for each of B stripes, sorted by hash
    deltas   a file for each of the last B - 1 batches: the rows that changed, sorted by hash

A row in a newer delta replaces all older ones. Batch n writes a delta, and a new base of stripe n mod B from the old
one and all deltas; the delta of batch n - B + 1, which is then in every base, is dropped. So no file holds a replaced
row or a forgotten user for more than B - 1 further batches.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbasket.spark.history_rows import flat, stored_schema
from unbasket.spark.manifest import State


class Shard:
    """The files of one shard, as of a manifest. They are opened at once, since the next batch may remove some."""

    def __init__(self, state: State, number: int) -> None:
        self.manifest, self.number, self._folder = state.manifest, number, state.folder
        self._schema = stored_schema(self.manifest.kinds)
        files = {part: self._folder.read(name) for part, name in self.manifest.files_of(number).items()}
        self._bases = {stripe: file for (kind, stripe), file in files.items() if kind == "base"}
        batches = sorted((batch for kind, batch in files if kind == "delta"), reverse=True)
        self._deltas = [files["delta", batch].replace_schema_metadata() for batch in batches]
        self.written: list[str] = []
        self.bytes_written = 0

    def find(self, users: pa.Table) -> pa.Table:
        """Return the rows of some users, given as hash and user; those who are unknown have none."""
        found, missing = [self._schema.empty_table()], users
        for file in (*self._deltas, *self._bases.values()):
            rows = _with_hashes(file, np.unique(_hashes(missing)))
            found.append(rows.filter(pc.is_in(rows["user"], flat(missing["user"]))))  # others may have equal hashes
            missing = missing.filter(pc.invert(pc.is_in(missing["user"], flat(found[-1]["user"]))))
        return pa.concat_tables(found)

    def rows(self) -> Iterator[pa.Table]:
        """Yield all rows, one stripe after the other."""
        for stripe in range(self.manifest.stripes):
            yield self._merged(stripe, self._deltas)

    def write(self, batch: int, delta: pa.Table) -> None:
        """Write the rows that a batch changed, and rewrite the stripe whose turn it is."""
        if len(delta) or delta.schema.metadata:
            self._write("delta", batch, delta.take(pc.sort_indices(delta["hash"])))
        self.write_base(batch % self.manifest.stripes, delta.replace_schema_metadata())

    def write_base(self, stripe: int, delta: pa.Table) -> None:
        """Write a stripe with all changes, unless there are none."""
        deltas = [delta, *self._deltas]
        if any(len(self._of_stripe(rows, stripe)) for rows in deltas):
            self._write("base", stripe, self._merged(stripe, deltas))

    def _write(self, kind: str, number: int, rows: pa.Table) -> None:
        name = self.manifest.new_file(self.number, kind, number)
        self.bytes_written += self._folder.write(name, rows)
        self.written.append(name)

    def _merged(self, stripe: int, deltas: list[pa.Table]) -> pa.Table:
        """Return a stripe with all changes in deltas, newest first."""
        base = self._bases.get(stripe, self._schema.empty_table())
        rows = _newest(pa.concat_tables([*(self._of_stripe(delta, stripe) for delta in deltas), base]))
        return rows.filter(pc.greater(pc.list_value_length(rows["baskets"]), 0))

    def _of_stripe(self, rows: pa.Table, stripe: int) -> pa.Table:
        return rows.filter(pa.array((_hashes(rows).view(np.uint64) >> 32) % self.manifest.stripes == stripe))


def _hashes(rows: pa.Table) -> Any:
    return flat(rows["hash"]).to_numpy()


def _with_hashes(rows: pa.Table, wanted: Any) -> pa.Table:
    """Return those of rows, sorted by hash, that have one of some hashes. Users may have equal hashes."""
    first, end = (np.searchsorted(_hashes(rows), wanted, side) for side in ("left", "right"))
    counts = end - first
    shifts = np.repeat(first - np.cumsum(counts) + counts, counts)
    return rows.take(pa.array(np.arange(len(shifts)) + shifts))


def _newest(rows: pa.Table) -> pa.Table:
    """Return the first row of each user, sorted by hash."""
    keys = rows.select(["hash", "user"]).append_column("row", pa.array(np.arange(len(rows))))
    first = keys.group_by(["hash", "user"], use_threads=False).aggregate([("row", "min")]).sort_by("hash")
    return rows.combine_chunks().take(first["row_min"])
