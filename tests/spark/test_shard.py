"""A shard's files: a row is found by hash and id, the newest counts, and replaced rows leave within the bound."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from unbasket import Params
from unbasket.domain.history_table import history_schema
from unbasket.domain.ids import IdTypes
from unbasket.spark.shard import Shard
from unbasket.spark.state import State

KINDS = {"user": "string", "basket": "bigint", "item": "bigint"}


def row(hash_: int, user: str, item: int | None) -> dict[str, Any]:
    """Return a row with one purchase, or a tombstone."""
    baskets = [] if item is None else [{"basket": 1, "time": None, "opens": False, "items": [item]}]
    return {"hash": hash_, "user": user, "baskets": baskets, "suppressed": []}


def table(rows: list[dict[str, Any]]) -> pa.Table:
    schema = history_schema(IdTypes(str, int, int))
    return pa.Table.from_pylist(rows, pa.schema([("hash", pa.int64()), *schema]))


def test_users_with_equal_hashes_are_different_users(tmp_path: Path) -> None:
    rows = [row(hash_, user, 1) for hash_, user in [(-5, "a"), (3, "b"), (3, "c"), (3, "d"), (2**63 - 1, "e")]]
    wanted = table(
        [row(hash_, user, None) for hash_, user in [(3, "d"), (3, "x"), (-5, "a"), (2**63 - 1, "e"), (3, "b")]]
    )
    state = new_state(tmp_path, 4)
    assert len(Shard(state, 0).find(wanted)) == 0
    shard = Shard(state, 0)
    shard.write(0, table(rows))
    state.after(0, shard.written).commit()
    state = State.read(str(tmp_path))
    assert sorted(Shard(state, 0).find(wanted)["user"].to_pylist()) == ["a", "b", "d", "e"]


def test_rejected_events_leave_with_their_delta(tmp_path: Path) -> None:
    """They are metadata of a delta, which is merged into bases and with other deltas."""
    state, rejected = new_state(tmp_path, 2), {"rejected": "a secret"}
    for batch in range(3):
        shard = Shard(state, 0)
        shard.write(batch, table([row(7, f"u{batch}", batch)]).replace_schema_metadata(rejected if batch < 2 else None))
        state = state.after(batch, shard.written)
        state.commit()
        state.clean()
        found = {name: state.folder.read_table(name).schema.metadata is not None for name in state.files}
        assert found == {name: "-delta-" in name and batch < 2 for name in state.files}
        assert all(rows.schema.metadata is None for rows in Shard(state, 0).rows())


@pytest.mark.parametrize("stripes", [2, 4, 7])
def test_random_batches_with_equal_hashes(tmp_path: Path, stripes: int) -> None:
    """Of 30 users there are only 4 hashes, in different stripes. Rows are those of a dictionary after each batch."""
    chance, state = random.Random(stripes), new_state(tmp_path, stripes)
    users = [(chance.choice([-(2**62), -1, 5, 3 * 2**33]), f"u{number}") for number in range(30)]
    held: dict[str, int] = {}
    written: dict[tuple[str, int], int] = {}  # the batch that replaced a row
    gone: dict[str, int] = {}  # the batch that forgot a user
    for batch in range(6 * stripes):
        shard, changes = Shard(state, 0), {}
        for hash_, user in chance.sample(users, chance.choice([0, 0, 1, 8])):
            changes[user] = row(hash_, user, None if user in held and chance.random() < 0.4 else 1000 + batch)
        for user, change in changes.items():
            if user in held:
                written[user, held.pop(user)] = batch
            if change["baskets"]:
                held[user] = 1000 + batch
            else:
                gone[user] = batch
        shard.write(batch, table([*changes.values()]))
        state = state.after(batch, shard.written)
        state.commit()
        state.clean()
        shard = Shard(state, 0)
        rows = [found for stripe in shard.rows() for found in stripe.to_pylist()]
        assert {found["user"]: found["baskets"][0]["items"][0] for found in rows} == held
        assert len(rows) == len(held)
        asked = shard.find(table([row(hash_, user, None) for hash_, user in users])).to_pylist()
        assert {found["user"] for found in asked} == set(held)
        stored = stored_rows(state)
        assert not {key for key in stored if written.get(key, batch) + stripes - 1 <= batch}, "an old row is left"
        forgotten = {user for user, _ in stored if user not in held}
        assert not {user for user in forgotten if gone[user] + stripes - 1 <= batch}, "a forgotten user is left"


def new_state(folder: Path, stripes: int) -> State:
    return State.create(str(folder), Params(alpha=0.8), KINDS, 1, stripes)


def stored_rows(state: State) -> set[tuple[str, int]]:
    """Return all users and items in all files; a tombstone has 0 instead of an item."""
    names = [name for name in state.folder.names() if name.endswith(".arrow")]
    rows = [found for name in names for found in state.folder.read_table(name).to_pylist()]
    return {(found["user"], found["baskets"][0]["items"][0] if found["baskets"] else 0) for found in rows}
