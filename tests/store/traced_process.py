"""A process for `test_system_calls.py`, to be killed at a system call: `python -m tests.store.traced_process`.

Each line of its input names an action and a folder with a database, shop.db. A fork, which has all modules loaded,
opens the database, waits for a byte from the pipe folder/go, and acts. It writes a byte to folder/done after each
acknowledged step. Its parent prints "pid <pid>" when it has started, and "ended" when it has exited or was killed.
"""

import ctypes
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from hashlib import blake2b
from pathlib import Path

import unbasket as ub
from unbasket.domain.events import Event, Forget, Learn
from unbasket.store import compaction, writer

PARAMS = ub.Params(group_size=3, alpha=0.8)
_PR_SET_PTRACER, _ANY = 0x59616D61, -1  # of Linux: lets strace attach where only root may


def user(number: int) -> str:
    """Return an id that is long enough to be searched for, and has nothing in common with another."""
    return blake2b(number.to_bytes(2, "big"), digest_size=12).hexdigest()


VICTIM, HELD = user(0), 30
EARLIER: list[Event] = [
    *(
        Learn(user(number), [f"i{basket}{user(number)}", "milk"], f"b{basket}{user(number)}", None)
        for number in range(HELD + 30)
        for basket in range(3)
    ),
    *(Forget(user(number), None, None) for number in range(HELD, HELD + 30)),
]
"""The events of each database before an action; half of the users are forgotten."""

STEPS: dict[str, list[Event]] = {
    "forget": [Forget(VICTIM, None, None)],
    "compact": [Learn(user(1), ["milk"], f"new {number}", None) for number in range(6)],
    "backup": [Forget(VICTIM, None, None)],
}
"""The acknowledged steps of each action. A backup meanwhile forgets a user whose baskets it has copied."""


def _act(action: str, engine: ub.DurableRecommender, folder: Path, steps: Iterator[Callable[[], None]]) -> None:
    if action == "backup":
        engine.backup(folder / "copy.db", progress=lambda done, _: next(steps, lambda: None)() if done > HELD else None)
    if action == "compact":
        writer._WORTH_COMPACTING, writer._PACE, compaction.BATCH_SIZE = 0, 0, 1500
    for step in steps:
        step()


def _run(action: str, folder: Path) -> None:
    engine = ub.open(folder / "shop.db")
    done = os.open(folder / "done", os.O_WRONLY | os.O_CREAT)

    def step(event: Event) -> None:
        engine.apply([event])
        os.write(done, b".")

    with (folder / "go").open("rb") as go:
        assert go.read(1)
    _act(action, engine, folder, iter([partial(step, event) for event in STEPS[action]]))
    engine.close()


def main() -> None:
    """Act until the input ends."""
    for line in sys.stdin:
        action, folder = line.split()
        pid = os.fork()
        if pid == 0:
            ctypes.CDLL(None).prctl(_PR_SET_PTRACER, _ANY, 0, 0, 0)
            status = 1
            try:
                _run(action, Path(folder))
                status = 0
            except BaseException:  # noqa: BLE001 - shown to the test
                traceback.print_exc()
            os._exit(status)
        sys.stdout.write(f"pid {pid}\n")
        sys.stdout.flush()
        _, status = os.waitpid(pid, 0)
        sys.stdout.write(f"ended {os.waitstatus_to_exitcode(status)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
