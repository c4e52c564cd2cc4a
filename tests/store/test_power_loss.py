"""The power is lost at random moments: whatever was acknowledged is on the disk, though nothing unsynced need be."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from tests.store.helpers import Request, Traffic, found_in, held_ids, ids_of, replayed, submit
from tests.store.lossy import Disk

import unbasket as ub
from unbasket.domain.events import Forget
from unbasket.domain.ids import Id
from unbasket.engine.state import EngineState
from unbasket.errors import StoreCorruptError
from unbasket.store import audit, opening, reader, writer

LOSSES = 55  # of each grouping

Grouping = Literal["fixed", "varying"]


class Loss(NamedTuple):
    """What a loss of power left on the disk, when so many requests had been acknowledged."""

    done: int
    files: dict[str, bytes]
    beside: dict[str, bytes]


class Session:
    """An engine at work on a lossy disk, whose power is lost at every `often`-th step or so, as in parallel worlds."""

    def __init__(self, folder: Path, grouping: Grouping, seed: int, often: int = 12) -> None:
        folder.mkdir(parents=True)
        self.params = ub.Params(group_size=3, grouping=grouping)
        self.random = random.Random(seed)
        self.path = folder / "shop.db"
        self.requests: list[Request] = []
        self.losses: list[Loss] = []
        self.often = often
        self.done = 0
        self.disk = Disk(self._step)

    def work(self, requests: int, after: Callable[[], None] = lambda: None) -> None:
        """Carry out so many requests, with `after` after each; close and reopen the database now and then."""
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
        """An engine on the lossy disk."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "connect", self.disk.connect)
            patch.setattr(reader, "connect", self.disk.connect)
            patch.setattr(writer, "Wal", self.disk.log)
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
        """The files after a loss, with all that the engine had noted in its lock until then: the most it can claim."""
        folder.mkdir()
        for name, data in (loss.files | loss.beside).items():
            (folder / name).write_bytes(data)
        return folder / self.path.name

    def recovered(self, loss: Loss, path: Path) -> bool:
        """Whether an engine on these files has all that was acknowledged, and at most one request more."""
        with ub.open(path, self.params) as engine:
            receipts = audit(engine.receipts())
            assert receipts.faults == ()
            for done in (loss.done, loss.done + 1):
                happened = self.requests[:done]
                if (
                    engine.digest() == replayed(self.params, happened).digest()
                    and receipts.receipts == forgets(happened)
                    and engine.verify().ok
                ):
                    assert self.residue(loss, path.parent) == set()
                    return True
        return False

    def residue(self, loss: Loss, folder: Path) -> set[Id]:
        """The ids that are in a file, though what bore them was gone when the last request was acknowledged."""
        asked = ids_of(self.requests[loss.done : loss.done + 1])
        gone = ids_of(self.requests) - held_ids(replayed(self.params, self.requests[: loss.done])) - asked
        return found_in(folder, gone, folder.with_name("patterns"))


def forgets(requests: list[Request]) -> int:
    return sum(isinstance(event, Forget) for request in requests for event in request)


@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_what_is_acknowledged_is_durable(grouping: Grouping, tmp_path: Path) -> None:
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
    """Also those in the log, before anybody opens the database again: its truncation is synced too."""
    session = Session(tmp_path / "running", "fixed", seed=2)
    session.work(50, after=lambda: session.lose(0.0))
    for number, loss in enumerate(session.losses):
        path = session.lay_out(loss, tmp_path / str(number))
        assert session.residue(loss, path.parent) == set()


def test_what_an_interrupt_left_behind_is_synced_before_it_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A basket is written, not synced yet, and the caller interrupts, asks again, and hears that nothing is new."""
    session = Session(tmp_path / "running", "fixed", seed=3, often=10**9)
    learn = EngineState.learn

    def interrupted(*_: object) -> None:
        monkeypatch.setattr(EngineState, "learn", learn)
        raise KeyboardInterrupt

    def ask_again(engine: ub.Recommender) -> None:
        session.lose(0.0)
        monkeypatch.setattr(EngineState, "learn", interrupted)
        with pytest.raises(KeyboardInterrupt):
            engine.learn("ann", ["tea"], basket=1)
        session.lose(0.0)
        assert engine.learn("ann", ["tea"], basket=1) == "unchanged"
        session.lose(0.0)

    with session.open() as engine:
        ask_again(engine)
    for number, (loss, users) in enumerate(zip(session.losses, (0, 0, 1), strict=True)):
        with ub.open(session.lay_out(loss, tmp_path / str(number)), session.params) as engine:
            assert len(engine) == users


def test_less_would_not_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a sync at each commit, losses are seen: this disk does forget, and these tests do look."""
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
