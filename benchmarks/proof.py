"""The cost of proofs: among a million users and a million receipts, and beside an older commit in the same run.

    python -m benchmarks.proof users                      # proofs about one of a million users, and their memory
    python -m benchmarks.proof receipts                   # proofs of one of a million receipts; all are verified
    python -m benchmarks.proof events --against FOLDER    # learn and forget, beside a built checkout
    python -m benchmarks.proof open --against FOLDER      # open a million users, beside a built checkout

Two checkouts work on the same disk and alternate, so other load slows both alike. Each has a process for
all rounds; a ratio is that of the medians. TMPDIR says where the databases are. Each part takes a few minutes.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import mean, median
from typing import IO, Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.table import Table

import unbasket as ub
from unbasket import verifier
from unbasket.domain.events import Forget

PURCHASES = 80
"""Purchases of each user, in ten baskets, as in `benchmarks/scale.py`."""

BATCH = 20_000
"""Forgets in one transaction, when a million receipts are made."""

Figures = dict[str, float]
console = Console(stderr=True)


def frame(users: int, purchases: int = PURCHASES) -> pl.DataFrame:
    """Return the purchases of a shop, always the same."""
    items = (np.random.default_rng(0).zipf(1.3, users * purchases) % 20_000).astype(np.int32)
    owners, baskets = np.arange(users, dtype=np.int32), np.arange(purchases, dtype=np.int32) // 8
    return pl.DataFrame({"user": np.repeat(owners, purchases), "basket": np.tile(baskets, users), "item": items})


def timed(work: Callable[[], object], times: int) -> float:
    """Return the median time in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e3


def seconds(work: Callable[[], object]) -> float:
    """Return the time that one call takes."""
    return timed(work, 1) / 1e3


def resident() -> int:
    """Return the bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# Proofs -------------------------------------------------------------------------------------------------------------


def users(folder: Path, count: int) -> Figures:
    """Measure the proofs about one of many users, their verification, and the memory of the tree."""
    in_memory = ub.Recommender(ub.Params(pool=1000)).fit(frame(count, 16))
    before = resident()
    figures = {f"digest of {count:,} users, s": seconds(in_memory.digest)}
    figures["memory of the tree, bytes a user"] = (resident() - before) / count
    del in_memory
    with ub.open(folder / "shop.db", ub.Params(pool=1000)) as rec:
        rec.fit(frame(count, 16))
        rec.checkpoint()
        proofs = [rec.prove(user) for user in range(100)]
        figures["ids that a proof shows to be absent, times users"] = mean(map(empty_share, proofs)) * count
        chance = np.random.default_rng(1).permutation(count).tolist()
        figures["proof of access, ms"] = timed(lambda: rec.prove(chance.pop()), 100)
        figures["proof of absence, ms"] = timed(lambda: rec.prove_absence(count + chance.pop()), 100)
        after_forgets, after_learns = [], []
        for user in chance[:100]:
            rec.forget(user)
            after_forgets.append(timed(lambda user=user: rec.prove_absence(user), 1))  # type: ignore[misc]
            rec.learn(user, [1, 2], basket=9)
            after_learns.append(timed(lambda user=user: rec.prove(user), 1))  # type: ignore[misc]
        figures["first proof after a forget, ms"] = median(after_forgets)
        figures["first proof after a forget, slowest of 100, ms"] = max(after_forgets)
        figures["first proof after a learn, ms"] = median(after_learns)
        proof = json.dumps(rec.prove(chance[-1]))
        figures["verification of such a proof, ms"] = timed(lambda: verifier.verify(proof), 100)
    return figures


def empty_share(proof: dict[str, Any]) -> float:
    """Return the share of all ids that lead into the empty subtrees beside a path."""
    return sum(0.5 ** (depth + 1) for depth, sibling in enumerate(proof["siblings"]) if sibling is None)


def receipts(folder: Path, count: int) -> Figures:
    """Measure the proofs of one of many receipts, which real forgets have made, and the verification of all."""
    path, exported = folder / "shop.db", folder / "receipts.ndjson"
    with ub.open(path) as rec:
        for first in range(rec.receipt_count, count, BATCH):
            console.log(f"{first:,} receipts")
            rec.apply([Forget(user, None, None) for user in range(first, min(first + BATCH, count))])
    with ub.open(path) as rec:
        figures = {"receipts": float(rec.receipt_count)}
        figures["first proof of a receipt since opening, s"] = seconds(lambda: rec.prove_receipt(count // 3))
        old = rec.checkpoint()
        chance = np.random.default_rng(1).permutation(count).tolist()
        figures["proof of a receipt, ms"] = timed(lambda: rec.prove_receipt(chance.pop() + 1), 100)
        after_forgets = []
        for _ in range(100):
            number = rec.forget(count).receipt.number  # type: ignore[attr-defined]
            after_forgets.append(timed(lambda number=number: rec.prove_receipt(number), 1))  # type: ignore[misc]
        figures["first proof after a forget, ms"] = median(after_forgets)
        figures["proof of consistency, ms"] = timed(lambda: rec.prove_consistency(old), 100)
    unbasket = Path(sys.executable).with_name("unbasket"), "receipts"
    figures["unbasket receipts export, s"] = program(*unbasket, "export", exported, "--db", path)
    figures["unbasket receipts verify --db, s"] = program(*unbasket, "verify", "--db", path)
    figures["unbasket receipts verify FILE, s"] = program(*unbasket, "verify", exported)
    figures["verifier.py FILE, s"] = program(sys.executable, verifier.__file__, exported)
    return figures


def program(*command: object) -> float:
    """Run a program that must succeed, and return the seconds that it takes."""
    console.log(" ".join(map(str, command[1:])))
    return seconds(lambda: subprocess.run(list(map(str, command)), check=True, stdout=subprocess.DEVNULL))


# Beside another checkout --------------------------------------------------------------------------------------------

SHOP = """
import json, os, sys, time
import polars as pl, unbasket as ub
path, params = sys.argv[1], ub.Params(pool=20_000)

def per_event(work, numbers, clock):
    start = clock()
    for number in numbers:
        work(number)
    return (clock() - start) / len(numbers) * 1e6

"""

EVENTS = (
    SHOP
    + """
frame = pl.read_parquet(sys.argv[2])
users, wall, cpu = frame["user"].n_unique(), time.perf_counter, time.process_time
rec, memory = ub.open(path, params).fit(frame), ub.Recommender(params).fit(frame)
for line in sys.stdin:
    first = int(line) * 10_000
    durable, many = range(first, first + 500), range(first, first + 10_000)
    print(json.dumps({
        "learn, in memory, us of CPU":
            per_event(lambda n: memory.learn(n * 37 % users, [1, 2, 3], basket=10**6 + n), many, cpu),
        "learn, durable, us":
            per_event(lambda n: rec.learn(n * 37 % users, [1, 2, 3], basket=10**6 + n), durable, wall),
        "forget, durable, us": per_event(lambda n: rec.forget(n * 37 % users, basket=10**6 + n), durable, wall),
        "forget, durable, us of CPU": per_event(lambda n: rec.forget(n * 41 % users, basket=1), durable, cpu),
    }), flush=True)
"""
)

OPEN = (
    SHOP
    + """
if not os.path.exists(path):
    with ub.open(path, params) as rec:
        rec.fit(pl.read_parquet(sys.argv[2]))
    del rec
for line in sys.stdin:
    start = time.perf_counter()
    rec = ub.open(path)
    rec.digest()
    opened = time.perf_counter() - start
    rec.close()
    del rec
    print(json.dumps({"open, s": opened}), flush=True)
"""
)


@contextmanager
def worker(program: str, source: Path, folder: Path, name: str) -> Iterator[Callable[[int], Figures]]:
    """Start a program with a checkout; the function that is yielded has it measure a round."""
    command = [sys.executable, "-c", program, str(folder / f"{name}.db"), str(folder / "frame.parquet")]
    environment = os.environ | {"PYTHONPATH": str(source / "src")}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def measured(number: int) -> Figures:
            asked, answers = _pipes(process)
            print(number, file=asked, flush=True)
            found: Figures = json.loads(answers.readline())
            return found

        yield measured
        _pipes(process)[0].close()


def _pipes(process: "subprocess.Popen[str]") -> tuple[IO[str], IO[str]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def compared(
    program: str, folder: Path, against: Path, count: int, purchases: int, rounds: int
) -> dict[str, tuple[float, float]]:
    """Return the medians of both checkouts, here and there."""
    if not (folder / "frame.parquet").exists():
        frame(count, purchases).write_parquet(folder / "frame.parquet")
    found: dict[str, tuple[list[float], list[float]]] = {}
    with ExitStack() as stack:
        sources = {"here": Path(__file__).parents[1], "there": against.resolve()}
        workers = [stack.enter_context(worker(program, source, folder, name)) for name, source in sources.items()]
        for number in range(rounds):
            for side, measured in enumerate(workers):
                console.log(f"round {number + 1} of {rounds}, {list(sources)[side]}")
                for name, value in measured(number).items():
                    found.setdefault(name, ([], []))[side].append(value)
    return {name: (median(here), median(there)) for name, (here, there) in found.items()}


def main() -> None:
    """Measure a part, and print its table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["users", "receipts", "events", "open"])
    parser.add_argument("--count", type=int, help="users or receipts: a million, for events 100,000")
    parser.add_argument("--against", type=Path, help="a checkout of an older commit, built in place")
    parser.add_argument("--folder", type=Path, help="keep databases of receipts and of open here, and use them again")
    parser.add_argument("--purchases", type=int, default=PURCHASES, help="of each user of events and of open")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    count = options.count or (100_000 if options.part == "events" else 1_000_000)
    with tempfile.TemporaryDirectory() as name:
        folder = options.folder or Path(name)
        if options.part in ("users", "receipts"):
            table = Table("", "")
            measure: Any = {"users": users, "receipts": receipts}[options.part]
            for figure, value in measure(folder, count).items():
                table.add_row(figure, f"{value:.3g}")
        else:
            if options.against is None:
                parser.error("--against FOLDER is missing")
            table = Table("", "here", "there", "ratio")
            work = {"events": EVENTS, "open": OPEN}[options.part], folder, options.against
            for figure, (here, there) in compared(*work, count, options.purchases, options.rounds).items():
                table.add_row(figure, f"{here:.3g}", f"{there:.3g}", f"{here / there:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
