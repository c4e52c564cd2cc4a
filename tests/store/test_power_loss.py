"""Power loss at random times: all that was acknowledged is on the disk, though nothing unsynced need be.

A scenario across all modules of the store.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from tests.store.lossy_disk import Disk
from tests.store.traffic import Request, Traffic, found_in, held_ids, ids_of, params_of, replayed, submit

import unbasket as ub
from unbasket.domain.events import Forget
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState
from unbasket.errors import StoreCorruptError
from unbasket.store import audit, opening, reader, writer

LOSSES = 55  # of each grouping

Grouping = Literal["fixed", "varying"]


class Loss(NamedTuple):
    """The files after a power loss, and how many requests had been acknowledged."""

    done: int
    files: dict[str, bytes]
    beside: dict[str, bytes]


class Session:
    """An engine on a lossy disk. About every `often`-th change, the files after a power loss are kept for checks."""

    def __init__(self, folder: Path, grouping: Grouping, seed: int, often: int = 12) -> None:
        folder.mkdir(parents=True)
        self.params = params_of(grouping)
        self.random = random.Random(seed)
        self.path = folder / "shop.db"
        self.requests: list[Request] = []
        self.losses: list[Loss] = []
        self.often = often
        self.done = 0
        self.disk = Disk(self._step)

    def work(self, requests: int, after: Callable[[], None] = lambda: None) -> None:
        """Carry out requests and call `after` after each; close and reopen the database now and then."""
        traffic = Traffic(self.random.getrandbits(32))
        while self.done < requests:
            with self.open() as engine:
                for _ in range(self.random.choice([5, 60])):
                    self.requests.append(traffic.request())
                    submit(engine, self.requests[-1])
                    self.done += 1
                    after()

    @contextmanager
    def open(self) -> Iterator[ub.DurableRecommender]:
        """Open an engine on the lossy disk."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "connect", self.disk.connect)
            patch.setattr(reader, "connect", self.disk.connect)
            patch.setattr(writer, "Wal", self.disk.wal)
            patch.setattr(opening, "_check_files", lambda *_: None)  # the files themselves stay empty
            with ub.open(self.path, self.params) as engine:
                yield engine

    def _step(self) -> None:
        if self.random.randrange(self.often) == 0:
            self.lose(self.random.choice([0.0, 0.0, 0.2, 0.5, 0.8, 0.95, 1.0]))

    def lose(self, chance: float) -> None:
        beside = [self.path.with_name(self.path.name + suffix) for suffix in ("-lock", "-keys")]
        kept = {file.name: file.read_bytes() for file in beside if file.exists()}
        self.losses.append(Loss(self.done, self.disk.after_loss(self.random, chance), kept))

    def lay_out(self, loss: Loss, folder: Path) -> Path:
        """Write the files of a loss to a folder, with the newest note of the writer lock, which claims the most."""
        folder.mkdir()
        for name, data in (loss.files | loss.beside).items():
            (folder / name).write_bytes(data)
        return folder / self.path.name

    def recovered(self, loss: Loss, path: Path) -> bool:
        """Whether an engine on these files has all acknowledged requests, and at most one more."""
        with ub.open(path, self.params) as engine:
            receipts = audit(engine.receipts())
            assert receipts.faults == ()
            for done in (loss.done, loss.done + 1):
                happened = self.requests[:done]
                if (
                    engine.digest() == replayed(engine, happened).digest()
                    and receipts.receipts == forgets(happened)
                    and engine.verify().ok
                ):
                    assert self.residue(loss, path.parent) == set()
                    return True
        return False

    def residue(self, loss: Loss, folder: Path) -> set[Id]:
        """Return the ids that are in a file, though the last acknowledged request or an earlier one erased them."""
        asked = ids_of(self.requests[loss.done : loss.done + 1])
        erased = (
            ids_of(self.requests) - held_ids(replayed(ub.Recommender(self.params), self.requests[: loss.done])) - asked
        )
        return found_in(folder, erased, folder.with_name("patterns"))


def forgets(requests: list[Request]) -> int:
    return sum(isinstance(event, Forget) for request in requests for event in request)


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_acknowledged_requests_are_durable(grouping: Grouping, tmp_path: Path) -> None:
    lose_often(grouping, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_very_many_losses(grouping: Grouping, tmp_path: Path) -> None:
    for number in range(19):
        lose_often(grouping, tmp_path / str(number))


def lose_often(grouping: Grouping, tmp_path: Path) -> None:
    session = Session(tmp_path / "running", grouping, seed := random.SystemRandom().getrandbits(32))
    session.work(120)
    assert len(session.losses) >= LOSSES, seed
    assert forgets(session.requests) > 20, seed
    for number, loss in enumerate(session.random.sample(session.losses, LOSSES)):
        path = session.lay_out(loss, tmp_path / str(number))
        assert session.residue(loss, path.parent) == set(), f"loss {number} of seed {seed}"
        assert session.recovered(loss, path), f"loss {number} of seed {seed}"


def test_forgotten_bytes_are_off_the_disk(tmp_path: Path) -> None:
    """Also those in the log, before the database is opened again: its truncation is synced too."""
    session = Session(tmp_path / "running", "fixed", seed=2)
    session.work(50, after=lambda: session.lose(0.0))
    for number, loss in enumerate(session.losses):
        path = session.lay_out(loss, tmp_path / str(number))
        assert session.residue(loss, path.parent) == set()


def test_a_commit_before_an_interrupt_is_synced_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A basket is committed but not synced when an interrupt comes; the caller learns it again: unchanged."""
    session = Session(tmp_path / "running", "fixed", seed=3, often=10**9)
    learn = EngineState.learn

    def interrupted(*_: object) -> None:
        monkeypatch.setattr(EngineState, "learn", learn)
        raise KeyboardInterrupt

    def learn_again(engine: ub.Recommender) -> None:
        session.lose(0.0)
        monkeypatch.setattr(EngineState, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.learn("ann", ["tea"], basket=1)
        session.lose(0.0)
        assert engine.learn("ann", ["tea"], basket=1) == "unchanged"
        session.lose(0.0)

    with session.open() as engine:
        learn_again(engine)
    for number, (loss, users) in enumerate(zip(session.losses, (0, 0, 1), strict=True)):
        with ub.open(session.lay_out(loss, tmp_path / str(number)), session.params) as engine:
            assert len(engine) == users


def test_without_syncs_losses_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check of the tests themselves: without a sync at each commit, this disk loses requests."""
    monkeypatch.setattr(writer.Database, "sync", lambda _: None)
    session = Session(tmp_path / "running", "fixed", seed=1)
    session.work(60)
    recovered, named = 0, 0
    for number, loss in enumerate(session.losses):
        path = session.lay_out(loss, tmp_path / str(number))
        try:
            recovered += session.recovered(loss, path)
        except StoreCorruptError as error:
            assert "rows that were acknowledged" in str(error)  # noqa: PT017
            named += 1
    assert len(session.losses) - recovered > 3
    assert named > 3
