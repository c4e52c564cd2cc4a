"""A process that writes until it is killed: `python -m tests.store.writer_process`.

Its input has the path of a pickled `Job` on each line. A fork, which has all modules loaded, carries the job out, and
prints "<thread> <number>" after each request that returned. Its parent prints "pid <pid>" when the fork has started,
and "dead" when it was killed, or "failed". A fork that has finished its job waits to be killed.
"""

import os
import pickle
import signal
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.store.traffic import Request, Traffic, submit

import unbasket as ub


class Job(NamedTuple):
    """A database, the requests of each thread, and after how many of them to reopen the database."""

    path: Path
    params: ub.Params
    requests: list[list[Request]]
    reopen: int


def _say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def _work(job: Job) -> None:
    longest = max(map(len, job.requests))
    for first in range(0, longest, job.reopen):
        engine = ub.open(job.path, job.params)
        threads = [
            threading.Thread(target=_write, args=(engine, job, thread, first)) for thread in range(len(job.requests))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        engine.close()


def _write(engine: ub.Recommender, job: Job, thread: int, first: int) -> None:
    with _fatal_errors():
        for number in range(first, min(first + job.reopen, len(job.requests[thread]))):
            submit(engine, job.requests[thread][number])
            _say(f"{thread} {number}")


@contextmanager
def _fatal_errors() -> Iterator[None]:
    """Exit the process with 1 after an error in any thread, so that it does not count as killed."""
    failed = True
    try:
        yield
        failed = False
    finally:
        if failed:
            traceback.print_exc()
            os._exit(1)


def _warm_up() -> None:
    for grouping in ("fixed", "varying"):
        traffic, params = Traffic(1), ub.Params(group_size=3, grouping=grouping, alpha=0.8)
        with tempfile.TemporaryDirectory() as folder, ub.open(Path(folder) / "warm.db", params) as engine:
            for _ in range(200):
                submit(engine, traffic.request())


def main() -> None:
    """Serve jobs until the input ends."""
    _warm_up()
    _say("ready")
    for line in sys.stdin:
        job: Job = pickle.loads(Path(line.strip()).read_bytes())
        pid = os.fork()
        if pid == 0:
            with _fatal_errors():
                _work(job)
            while True:
                signal.pause()
        _say(f"pid {pid}")
        _, status = os.waitpid(pid, 0)
        _say("failed" if os.WIFEXITED(status) and os.WEXITSTATUS(status) else "dead")


if __name__ == "__main__":
    main()
