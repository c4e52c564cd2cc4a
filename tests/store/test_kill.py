"""A writer is killed at random times: acknowledged requests stay, and no request is half done.

A scenario across all modules of the store.
"""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import chain, product
from pathlib import Path
from typing import IO, Literal

import pytest
from tests.store.traffic import Request, Traffic, found_in, held_ids, ids_of, params_of, replayed
from tests.store.writer_process import Job

import unbasket as ub
from unbasket.domain.events import Forget
from unbasket.domain.ids import Id
from unbasket.store import audit

AHEAD = 300  # requests that a writer gets; when it has done all, it waits to be killed
LATEST = 150  # acknowledged requests after which it is killed, at most: mostly, more are to be done


class Writer:
    """A process that writes in forks of itself; see `tests.store.writer_process`."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.store.writer_process"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._line() == "ready"

    def killed(self, job: Path, after: int, pause: float) -> list[int]:
        """Kill a job after some answers and seconds; returns how many requests of each thread were acknowledged."""
        _pipe(self.process.stdin).write(f"{job}\n")
        _pipe(self.process.stdin).flush()
        lines: list[str] = []
        pid = 0
        while not pid or len(lines) < after:
            line = self._line()
            if line.startswith("pid "):
                pid = int(line[4:])
            else:
                lines.append(line)
        time.sleep(pause)
        os.kill(pid, signal.SIGKILL)
        lines += iter(self._line, "dead")
        numbers = [0] * 16
        for line in lines:
            thread, number = map(int, line.split())
            assert number == numbers[thread]
            numbers[thread] = number + 1
        return numbers

    def _line(self) -> str:
        line = _pipe(self.process.stdout).readline()
        assert line not in ("", "failed\n"), "the writer had an error of its own; see its traceback"
        return line.strip()

    def close(self) -> None:
        _pipe(self.process.stdin).close()
        self.process.wait()
        _pipe(self.process.stdout).close()


def _pipe(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


@pytest.fixture(scope="module")
def writer() -> Iterator[Writer]:
    writer = Writer()
    yield writer
    writer.close()


class Shop:
    """A database whose writer is killed again and again, and its expected content. Each thread has its own users."""

    def __init__(self, folder: Path, params: ub.Params, threads: int, seed: int) -> None:
        self.folder, self.params, self.seed = folder, params, seed
        self.random = random.Random(seed)
        self.traffic = [Traffic(self.random.getrandbits(32)) for _ in range(threads)]
        self.done: list[list[Request]] = [[] for _ in range(threads)]
        self.in_flight = self.forgets = 0
        (folder / "files").mkdir(parents=True)

    def kill(self, writer: Writer) -> None:
        """Start a writer, kill it, and check a copy of the files: the next writer gets the files themselves."""
        requests = [[source.request() for _ in range(AHEAD)] for source in deepcopy(self.traffic)]
        job = self.folder / "job"
        path = self.folder / "files" / "shop.db"
        job.write_bytes(pickle.dumps(Job(path, self.params, requests, self.random.choice([3, 40, AHEAD]))))
        after = self.random.choice([0, self.random.randrange(10), self.random.randrange(LATEST)])
        counts = writer.killed(job, after, self.random.uniform(0, 0.004 if after else 0.04))
        copy = self.folder / "copy"
        shutil.copytree(path.parent, copy)
        with ub.open(copy / path.name, self.params) as engine:
            self._check_events(engine, requests, counts)
            self._check_receipts(engine)
            self._check_files(engine, copy, requests)
        shutil.rmtree(copy)

    def _check_events(self, engine: ub.DurableRecommender, requests: list[list[Request]], counts: list[int]) -> None:
        """Check that the acknowledged requests of each thread are there, with or without the one in flight."""
        possible = []
        for done, asked, count in zip(self.done, requests, counts, strict=False):
            prefixes = [done + asked[:number] for number in range(count, min(count + 1, len(asked)) + 1)]
            users = ids_of(done + asked) & set(engine.users())
            held = {user: engine.history(user) for user in users}
            possible.append([prefix for prefix in prefixes if held == self._histories(prefix)])
        receipts = len(engine.receipts())
        found = [choice for choice in product(*possible) if _forgets(choice) == receipts]
        assert found, f"{receipts} receipts; {[len(prefixes) for prefixes in possible]} possible states of each thread"
        for thread, done in enumerate(found[0]):
            more = len(done) - len(self.done[thread])
            for _ in range(more):
                self.traffic[thread].request()
            self.in_flight += more > counts[thread]
            self.done[thread] = done
        assert engine.digest() == replayed(engine, chain.from_iterable(self.done)).digest()
        assert engine.verify().ok

    def _histories(self, requests: list[Request]) -> dict[Id, list[ub.Basket]]:
        engine = replayed(ub.Recommender(self.params), requests)
        return {user: engine.history(user) for user in engine.users()}

    def _check_receipts(self, engine: ub.DurableRecommender) -> None:
        report = audit(engine.receipts())
        assert report.faults == ()
        assert len(report.keys) <= 1
        self.forgets = report.receipts

    def _check_files(self, engine: ub.Recommender, files: Path, requests: list[list[Request]]) -> None:
        """Check that all ids that are held are in the files, and no others that requests have named."""
        held, named = held_ids(engine), ids_of(request for asked in [*self.done, *requests] for request in asked)
        found = found_in(files, named, self.folder / "patterns")
        assert found - held == set()
        assert held - found == set()


def _forgets(done: Iterable[list[Request]]) -> int:
    return sum(isinstance(event, Forget) for requests in done for request in requests for event in request)


def kill_often(writer: Writer, folder: Path, kills: int, threads: int, grouping: Literal["fixed", "varying"]) -> None:
    params = params_of(grouping)
    shops: list[Shop] = []
    for number in range(kills):
        if number % 10 == 0:
            seed = random.SystemRandom().getrandbits(32)
            shops.append(Shop(folder / str(number), params, threads, seed))
        try:
            shops[-1].kill(writer)
        except Exception as error:
            error.add_note(f"kill {number % 10 + 1} of seed {shops[-1].seed}")
            raise
    assert sum(shop.forgets for shop in shops) > kills  # enough to test erasure
    assert kills < 50 or sum(shop.in_flight for shop in shops) > 0


def test_one_writer(writer: Writer, tmp_path: Path) -> None:
    kill_often(writer, tmp_path, 10, 1, "fixed")


def test_many_threads(writer: Writer, tmp_path: Path) -> None:
    kill_often(writer, tmp_path, 10, 4, "varying")


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("grouping", ["fixed", "varying"])
def test_many_kills(writer: Writer, tmp_path: Path, threads: int, grouping: Literal["fixed", "varying"]) -> None:
    kill_often(writer, tmp_path, 60, threads, grouping)
