"""A process that writes until it is killed: `python -m tests.store.writer`, spoken to in lines of JSON.

It is warm: what a request (a pickled `Job`) asks for happens in a fork, which has all modules loaded.
The fork says "<thread> <number>" after each request of the job that returned; its parent says "pid <pid>" when it has
started, and "dead" when it was killed or has nothing more to do, or "failed".
"""

import os
import pickle
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.store.helpers import Request, Traffic, submit

import unbasket as ub


class Job(NamedTuple):
    """What to write to which database: the requests of each thread, and after how many to close and reopen it."""

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
    """An error in any thread ends the process, which is then no killed one."""
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
        traffic, params = Traffic(1), ub.Params(group_size=3, grouping=grouping)
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
            os._exit(0)
        _say(f"pid {pid}")
        _, status = os.waitpid(pid, 0)
        _say("failed" if os.WIFEXITED(status) and os.WEXITSTATUS(status) else "dead")


if __name__ == "__main__":
    main()
