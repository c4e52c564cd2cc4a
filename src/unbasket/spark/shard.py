"""A shard of the state: the histories of the users whose hash leads to it, in files.

    bases    a file for each of B stripes, sorted by hash
    deltas   a file for each of the last B - 1 batches: the rows that changed, sorted by hash

A row in a newer delta replaces all older ones. Batch n writes a delta, and a new base of stripe n mod B from the old
one and all deltas; the delta of batch n - B + 1, which is then in every base, is dropped. So no file holds a replaced
row or a forgotten user for more than B - 1 further batches.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unbasket.spark.history_rows import flat, stored_schema
from unbasket.spark.manifest import Manifest
from unbasket.spark.storage import Folder


class Written(NamedTuple):
    """The files of a shard that a batch has written; None if there was nothing to write."""

    delta: str | None
    base: str | None
    size: int


class Shard:
    """The files of one shard, as of a manifest. They are opened at once, since the next batch may remove some."""

    def __init__(self, folder: Folder, manifest: Manifest, number: int) -> None:
        files = manifest.shards[number]
        self._folder, self._manifest, self._number = folder, manifest, number
        self._schema = stored_schema(manifest.kinds)
        self._bases = {int(stripe): folder.read(name) for stripe, name in files.bases.items()}
        self._deltas = [folder.read(name).replace_schema_metadata() for name in reversed(files.deltas.values())]

    def find(self, users: pa.Table) -> pa.Table:
        """Return the rows of some users, given as hash and user; those who are unknown have none."""
        found, missing = [], users
        for file in (*self._deltas, *self._bases.values()):
            positions = positions_in(file, missing)
            found.append(file.take(pa.array(positions[positions >= 0])))
            missing = missing.filter(pa.array(positions < 0))
            if not len(missing):
                break
        return pa.concat_tables([self._schema.empty_table(), *found])

    def rows(self) -> Iterator[pa.Table]:
        """Yield all rows, one stripe after the other."""
        for stripe in range(self._manifest.stripes):
            yield self._merged(stripe, self._deltas)[0]

    def write(self, batch: int, delta: pa.Table) -> Written:
        """Write the rows that a batch changed, and rewrite the stripe whose turn it is."""
        written, base, size = None, None, 0
        if len(delta) or delta.schema.metadata:
            delta = delta.take(pc.sort_indices(delta["hash"]))
            written = self._manifest.new_file(batch, self._number, "delta")
            size += self._folder.write(written, delta)
        stripe = batch % self._manifest.stripes
        merged, is_new = self._merged(stripe, [delta.replace_schema_metadata(), *self._deltas])
        if is_new:
            base = self._manifest.new_file(batch, self._number, f"base{stripe}")
            size += self._folder.write(base, merged)
        return Written(written, base, size)

    def write_all(self, rows: pa.Table) -> Iterator[tuple[int, str, int]]:
        """Write the rows of a new shard; yield each stripe that has any, its file, and the number of its rows."""
        for stripe in range(self._manifest.stripes):
            own = self._of_stripe(rows, stripe)
            if len(own):
                file = self._manifest.new_file(self._manifest.batch, self._number, f"base{stripe}")
                self._folder.write(file, own.take(pc.sort_indices(own["hash"])))
                yield stripe, file, len(own)

    def _merged(self, stripe: int, deltas: list[pa.Table]) -> tuple[pa.Table, bool]:
        """Return a stripe with all changes in deltas, newest first, and whether there are any."""
        base = self._bases.get(stripe, self._schema.empty_table())
        changes, older = self._schema.empty_table(), [self._of_stripe(delta, stripe) for delta in deltas]
        for delta in older:
            changes = pa.concat_tables([changes, delta.filter(pa.array(positions_in(changes, delta) < 0))])
            changes = changes.take(pc.sort_indices(changes["hash"]))
        if not len(changes):
            return base, False
        replaced = positions_in(base, changes)
        kept = np.ones(len(base), bool)
        kept[replaced[replaced >= 0]] = False
        live = changes.filter(pc.greater(pc.list_value_length(changes["baskets"]), 0))
        return _merge(base, np.flatnonzero(kept), live), True

    def _of_stripe(self, rows: pa.Table, stripe: int) -> pa.Table:
        hashes = flat(rows["hash"]).to_numpy().view(np.uint64)
        return rows.filter(pa.array((hashes >> 32) % self._manifest.stripes == stripe))


def _merge(base: pa.Table, kept: Any, rows: pa.Table) -> pa.Table:
    """Merge rows of a base, and others, by their hashes."""
    hashes = np.concatenate([flat(base["hash"]).to_numpy()[kept], flat(rows["hash"]).to_numpy()])
    sources = np.concatenate([kept, len(base) + np.arange(len(rows))])
    return pa.concat_tables([base, rows]).combine_chunks().take(pa.array(sources[np.argsort(hashes, kind="stable")]))


def positions_in(rows: pa.Table, users: pa.Table) -> Any:
    """Return the position of each user in rows that are sorted by hash, or -1. Users may have equal hashes."""
    hashes, wanted = flat(rows["hash"]).to_numpy(), flat(users["hash"]).to_numpy()
    found, candidates = np.full(len(wanted), -1), np.searchsorted(hashes, wanted)
    open_ = np.arange(len(wanted))
    while len(open_):
        open_ = open_[candidates[open_] < len(hashes)]
        open_ = open_[hashes[candidates[open_]] == wanted[open_]]
        names = rows["user"].take(pa.array(candidates[open_]))
        same = pc.fill_null(pc.equal(names, users["user"].take(pa.array(open_))), False).to_numpy()
        found[open_[same]] = candidates[open_[same]]
        open_ = open_[~same]
        candidates[open_] += 1
    return found
