"""A writer whose N-th sync fails: `python -m tests.store.failing_writer FOLDER`, with `failing_sync.c` preloaded.

For N = 1, 2, ... until no sync is left to fail, a fork writes to a database of its own, folder/N/shop.db. It prints the
`Outcome` of each as a line of JSON.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import msgspec
from tests.store.traffic import Request, Traffic, submit

import unbasket as ub
from unbasket.errors import StoreError

PARAMS = ub.Params(group_size=3, alpha=0.8)
SETTINGS = {
    "writer._WORTH_COMPACTING": 200,
    "writer._PACE": 0,
    "compaction.BATCH_SIZE": 300,
    "writer._LOG_SIZE": 6 * 2048,
}


class Outcome(msgspec.Struct):
    """The results of a writer's requests in order, the last of closing: ok, or the name of an error."""

    has_failed: bool
    has_compacted: bool
    results: list[str]


def requests() -> list[Request]:
    """Return the requests of each writer."""
    traffic = Traffic(4)
    return [traffic.request() for _ in range(30)]


def _result(call: Callable[..., object], *arguments: object) -> str:
    try:
        call(*arguments)
    except StoreError as error:
        return type(error).__name__
    return "ok"


def _write(path: Path, number: int) -> Outcome:
    library = ctypes.CDLL(None)
    path.parent.mkdir(parents=True)
    engine = ub.open(path, PARAMS)
    library.fail_sync(number)
    spaces, results = set[str](), list[str]()
    for request in requests():
        results.append(_result(submit, engine, request))
        spaces.add(engine._journal._database.reader.spaces["baskets"].from_space)
    results.append(_result(engine.close))
    return Outcome(bool(library.sync_has_failed()), len(spaces) > 1, results)


def main(folder: Path) -> None:
    """Print the outcome of each writer."""
    _write(folder / "0" / "shop.db", 0)
    number, goes_on = 1, True
    while goes_on:
        reader, writer = os.pipe()
        if os.fork() == 0:
            os.write(writer, msgspec.json.encode(_write(folder / str(number) / "shop.db", number)))
            os._exit(0)
        os.close(writer)
        os.wait()
        with os.fdopen(reader, "rb") as pipe:
            line = pipe.read()
        sys.stdout.write(f"{line.decode()}\n")
        number, goes_on = number + 1, msgspec.json.decode(line, type=Outcome).has_failed


if __name__ == "__main__":
    for name, value in SETTINGS.items():
        patch(f"unbasket.store.{name}", value).start()
    main(Path(sys.argv[1]))
