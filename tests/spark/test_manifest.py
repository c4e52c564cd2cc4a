"""The commit of a batch: one driver at a time, and no file that no manifest names."""

import threading
from pathlib import Path

import pyarrow as pa
import pytest

from unbasket import Params
from unbasket.errors import SparkError
from unbasket.spark.manifest import Manifest, State

KINDS = {"user": "string", "basket": "bigint", "item": "bigint"}
PARAMS = Params(pool=5, pool_seed=3)
NEW = Manifest(PARAMS, KINDS, shards=2, stripes=4)


def new_state(folder: Path) -> State:
    return State.create(str(folder), PARAMS, KINDS, shards=2, stripes=4)


def write(state: State, batch: int) -> str:
    """Write a file that no manifest names yet; return its name."""
    name = state.manifest.new_file(0, "delta", batch)
    state.folder.write(name, pa.table({"user": ["ann"]}))
    return name


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    assert state.manifest == NEW
    state.take_over()
    state.commit(state.manifest.after(7, [write(state, 7)], users=3, rejected=1))
    again = State(str(tmp_path))
    assert again.manifest == state.manifest
    assert (again.batch, len(again), again.rejected, again.params) == (7, 3, 1, PARAMS)
    assert new_state(tmp_path).manifest == state.manifest
    with pytest.raises(SparkError, match="is not a checkpoint of unbasket"):
        State(str(tmp_path / "nowhere"))


def test_the_commit_of_an_earlier_driver_fails(tmp_path: Path) -> None:
    """Also if the later driver has committed several times, and the version to create is free again."""
    first = new_state(tmp_path)
    first.take_over()
    second = State(str(tmp_path))
    second.take_over()
    late = first.manifest.after(0, [write(first, 0)])
    with pytest.raises(SparkError, match="another driver has taken over"):
        first.commit(late)
    for batch in range(3):
        second.commit(second.manifest.after(batch, [write(second, batch)]))
        second.clean()
    with pytest.raises(SparkError, match="another driver has taken over"):
        first.commit(late)
    assert State(str(tmp_path)).manifest == second.manifest


def test_an_earlier_driver_leaves_the_files_of_a_later_one(tmp_path: Path) -> None:
    first = new_state(tmp_path)
    first.take_over()
    write(first, 0)
    second = State(str(tmp_path))
    second.take_over()  # removes the first one's file
    file = write(second, 0)
    first.clean()
    assert file in second.folder.names()
    second.clean()
    assert second.folder.names() == [second.manifest.name]


def test_one_of_many_drivers_commits(tmp_path: Path) -> None:
    """Threads that all have the same version try to create the next one."""
    new_state(tmp_path)
    states, won = [State(str(tmp_path)) for _ in range(8)], []
    barrier = threading.Barrier(8)

    def commit(number: int) -> None:
        barrier.wait()
        try:
            states[number].commit(NEW.after(number, []))
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
