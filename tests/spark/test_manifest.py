"""The commit of a batch: one driver at a time, and no file that no manifest names."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from unbasket import Params
from unbasket.errors import SparkError
from unbasket.spark.manifest import Manifest, ShardFiles, State

KINDS = {"user": "string", "basket": "bigint", "item": "bigint"}
NEW = Manifest(0, 0, -1, Params(pool=5, pool_seed=3), KINDS, 4, 0, 0, [ShardFiles({}, {})] * 2)


def write(state: State, batch: int) -> ShardFiles:
    """Write a file that no manifest names yet; return the files of a shard with it."""
    name = state.manifest.new_file(batch, 0, "delta")
    state.folder.write(name, pa.table({"user": ["ann"]}))
    return ShardFiles({}, {str(batch): name})


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = State.create(str(tmp_path), NEW)
    assert state.manifest == NEW
    state.take_over()
    state.commit(state.manifest.next(batch=7, users=3, rejected=1, shards=[write(state, 7), NEW.shards[1]]))
    again = State(str(tmp_path))
    assert again.manifest == state.manifest
    assert (again.batch, len(again), again.rejected, again.params) == (7, 3, 1, NEW.params)
    assert State.create(str(tmp_path), NEW).manifest == state.manifest
    with pytest.raises(SparkError, match="is not a checkpoint of unbasket"):
        State(str(tmp_path / "nowhere"))


def test_the_commit_of_an_earlier_driver_fails(tmp_path: Path) -> None:
    """Also if the later driver has committed several times, and the version to create is free again."""
    first = State.create(str(tmp_path), NEW)
    first.take_over()
    second = State(str(tmp_path))
    second.take_over()
    late = first.manifest.next(batch=0, shards=[write(first, 0), NEW.shards[1]])
    with pytest.raises(SparkError, match="another driver has taken over"):
        first.commit(late)
    for batch in range(3):
        second.commit(second.manifest.next(batch=batch, shards=[write(second, batch), NEW.shards[1]]))
        second.clean()
    with pytest.raises(SparkError, match="another driver has taken over"):
        first.commit(late)
    assert State(str(tmp_path)).manifest == second.manifest


def test_an_earlier_driver_leaves_the_files_of_a_later_one(tmp_path: Path) -> None:
    first = State.create(str(tmp_path), NEW)
    first.take_over()
    write(first, 0)
    second = State(str(tmp_path))
    second.take_over()  # removes the first one's file
    [file] = write(second, 0).deltas.values()
    first.clean()
    assert file in second.folder.names()
    second.clean()
    assert set(second.folder.names()) == second.manifest.files()


def test_one_of_many_drivers_commits(tmp_path: Path) -> None:
    """Threads that all have the same version try to create the next one."""
    State.create(str(tmp_path), NEW)
    states, won = [State(str(tmp_path)) for _ in range(8)], []
    barrier = threading.Barrier(8)

    def commit(number: int) -> None:
        barrier.wait()
        try:
            states[number].commit(NEW.next(batch=number))
        except SparkError:
            return
        won.append(number)

    threads = [threading.Thread(target=commit, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [State(str(tmp_path)).batch] == won
    for state in states:
        state.manifest = State(str(tmp_path)).manifest
        state.take_over()
    assert State(str(tmp_path)).manifest.version == 9
