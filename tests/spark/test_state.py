"""The commit of a batch: one driver at a time, and no file that no version names."""

import pickle
import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from unbasket import Params
from unbasket.domain.ids import IdTypes
from unbasket.errors import SparkError
from unbasket.spark.state import NO_BATCH, State

KINDS = {"user": "string", "basket": "bigint", "item": "bigint"}
PARAMS = Params(pool=5, pool_seed=3)


def new_state(folder: Path) -> State:
    return State.create(str(folder), PARAMS, KINDS, shards=2, stripes=4)


def write(state: State, batch: int) -> str:
    """Write a file that no version names yet; return its name."""
    name = state.new_file(0, "delta", batch)
    state.folder.write_table(name, pa.table({"user": ["ann"]}))
    return name


def test_a_version_is_read_as_it_was_written(tmp_path: Path) -> None:
    state = new_state(tmp_path)
    assert (state.params, state.kinds, state.types) == (PARAMS, KINDS, IdTypes(str, int, int))
    assert (state.shards, state.stripes, state.batch, state.files) == (2, 4, NO_BATCH, ())
    state = State.take_over(str(tmp_path))
    state.after(7, [write(state, 7)], users=3, rejected=1).commit()
    again = State.read(str(tmp_path))
    assert (again.batch, again.users, again.rejected, again.params, len(again.files)) == (7, 3, 1, PARAMS, 1)
    assert new_state(tmp_path) == again == pickle.loads(pickle.dumps(again))
    assert again != state
    with pytest.raises(SparkError, match="is not a checkpoint of unbasket"):
        State.read(str(tmp_path / "nowhere"))


def test_the_commit_of_an_earlier_driver_fails(tmp_path: Path) -> None:
    """Also if the later driver has committed several times, and the version to create is free again."""
    new_state(tmp_path)
    first, second = State.take_over(str(tmp_path)), State.take_over(str(tmp_path))
    late = first.after(0, [write(first, 0)])
    with pytest.raises(SparkError, match="another driver has taken over"):
        late.commit()
    for batch in range(3):
        second = second.after(batch, [write(second, batch)])
        second.commit()
        second.clean()
    with pytest.raises(SparkError, match="another driver has taken over"):
        late.commit()
    assert State.read(str(tmp_path)) == second


def test_an_earlier_driver_leaves_the_files_of_a_later_one(tmp_path: Path) -> None:
    new_state(tmp_path)
    first = State.take_over(str(tmp_path))
    write(first, 0)
    second = State.take_over(str(tmp_path))  # removes the first one's file
    file = write(second, 0)
    first.clean()
    assert file in second.folder.names()
    second.clean()
    assert second.folder.names() == [second.manifest]


def test_one_of_many_drivers_commits(tmp_path: Path) -> None:
    """Threads that all have the same version try to create the next one, and then to take over."""
    state, won = new_state(tmp_path), list[int]()
    barrier = threading.Barrier(8)

    def commit(number: int) -> None:
        barrier.wait()
        try:
            state.after(number, []).commit()
        except SparkError:
            return
        won.append(number)

    run(commit)
    assert [State.read(str(tmp_path)).batch] == won
    epochs = list[int]()
    run(lambda _: epochs.append(State.take_over(str(tmp_path)).epoch))
    assert sorted(epochs) == list(range(2, 10))


def run(work: Callable[[int], object]) -> None:
    """Run 8 threads."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
