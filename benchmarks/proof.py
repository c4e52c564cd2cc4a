"""The cost of proofs, beside an older commit of this project in the same run.

    python -m benchmarks.proof                          # proofs among a million receipts and users
    python -m benchmarks.proof --against FOLDER         # also learn, forget and open, beside a built checkout

Both work on the same disk and alternate, so other load slows both alike. A ratio is that of the medians.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

import unbasket as ub
from unbasket import verifier
from unbasket.store.proofs import Prover
from unbasket.store.receipts import Auditor, Receipt, ReceiptSigner
from unbasket.store.signing import SigningKeys

ROUNDS = 5
console = Console(stderr=True)

WORK = """
import json, sys, time
import numpy as np, polars as pl
import unbasket as ub
users, per, path, events = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
chance, figures = np.random.default_rng(0), {}
def frame():
    items = chance.zipf(1.3, users * per) % 20_000
    owners, baskets = np.repeat(np.arange(users), per), np.tile(np.arange(per) // 8, users)
    return pl.DataFrame({"user": owners, "basket": baskets, "item": items})
try:
    open(path).close()
except FileNotFoundError:
    with ub.open(path, ub.Params(pool=20_000)) as rec:
        rec.fit(frame())
start = time.perf_counter()
rec = ub.open(path)
figures["open, s"] = time.perf_counter() - start
start = time.perf_counter()
for number in range(events):
    rec.learn(number * 37 % users, [1, 2, 3], basket=10**6 + number)
figures["learn, durable, ms"] = (time.perf_counter() - start) / events * 1e3
start = time.perf_counter()
for number in range(events):
    rec.forget(number * 37 % users, basket=10**6 + number)
figures["forget, durable, ms"] = (time.perf_counter() - start) / events * 1e3
rec.close()
rec = ub.Recommender(ub.Params(pool=20_000)).fit(frame().head(1_000_000))
start = time.process_time()
for number in range(20_000):
    rec.learn(number % 1000, [1, 2, 3], basket=10**6 + number)
figures["learn, in memory, us of CPU"] = (time.process_time() - start) / 20_000 * 1e6
print(json.dumps(figures))
"""


def compared(against: Path, users: int, per_user: int, events: int, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the medians of both checkouts, here and there."""
    import json

    found: dict[str, tuple[list[float], list[float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(rounds):
            for side, source in enumerate((Path(__file__).parents[1], against)):
                with console.status(f"round {number + 1} of {rounds}: {source}"):
                    command = [
                        sys.executable,
                        "-c",
                        WORK,
                        str(users),
                        str(per_user),
                        f"{folder}/{side}.db",
                        str(events),
                    ]
                    done = subprocess.run(
                        command, env=os.environ | {"PYTHONPATH": str(source / "src")}, capture_output=True, check=True
                    )
                for name, value in json.loads(done.stdout).items():
                    found.setdefault(name, ([], []))[side].append(value)
    return {name: (median(here), median(there)) for name, (here, there) in found.items()}


def timed(work: Callable[[], object], times: int) -> float:
    """Return the median time in milliseconds."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        work()
        taken.append(time.perf_counter() - start)
    return median(taken) * 1e3


def receipts(count: int) -> dict[str, float]:
    """Measure proofs among many receipts, and their verification; the receipts are real ones."""
    with tempfile.TemporaryDirectory() as folder:
        keys = SigningKeys.create(Path(folder) / "keys")
        signer = ReceiptSigner(keys, None)
        with console.status(f"signing {count:,} receipts"):
            made = [signer.issue_note("rollback", "", "0" * 64) for _ in range(count)]
        payloads = [receipt.to_json() for receipt in made]
        prover = Prover(keys, lambda first, last: payloads[first - 1 : last])
        start = time.perf_counter()
        prover.tree(count)
        figures = {f"tree of {count:,} receipts, s": time.perf_counter() - start}
        old = prover.checkpoint(count // 3, "0" * 64)
        figures["proof of a receipt, ms"] = timed(lambda: prover.prove_receipt(made[count // 2], count, "0" * 64), 50)
        figures["proof of consistency, ms"] = timed(lambda: prover.prove_consistency(old, count, "0" * 64), 50)
        with console.status("verifying them"):
            start = time.perf_counter()
            auditor = Auditor(keys.public, every_signature=False)
            auditor.check(Receipt.from_json(payload) for payload in payloads)
            assert auditor.outcome().ok
            figures[f"verify {count:,} receipts, s"] = time.perf_counter() - start
        return figures


def users(count: int) -> dict[str, float]:
    """Measure the proofs about one of many users, and their verification."""
    import json

    import numpy as np
    import polars as pl

    with tempfile.TemporaryDirectory() as folder, ub.open(Path(folder) / "shop.db", ub.Params(pool=1000)) as rec:
        owners = np.repeat(np.arange(count), 3)
        with console.status(f"fitting {count:,} users"):
            rec.fit(pl.DataFrame({"user": owners, "basket": 1, "item": np.arange(3 * count) % 977}))
        rec.checkpoint()
        figures = {f"proof about one of {count:,} users, ms": timed(lambda: rec.prove(count // 2), 50)}
        figures["proof of absence, ms"] = timed(lambda: rec.prove_absence(count + 7), 50)
        figures["proof after a forget, ms"] = timed(lambda: (rec.forget(count // 3), rec.prove_absence(count // 3)), 20)
        proof = json.dumps(rec.prove(7))
        figures["verification of such a proof, ms"] = timed(lambda: verifier.verify(proof), 50)
        return figures


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1_000_000, help="receipts and users")
    parser.add_argument("--against", type=Path, help="a checkout of an older commit, built in place")
    parser.add_argument("--users", type=int, default=1_000_000, help="users of the shop that both open")
    parser.add_argument("--purchases", type=int, default=80, help="of each of them")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    table = Table("", "here", "there", "ratio")
    if options.against:
        found = compared(options.against.resolve(), options.users, options.purchases, 500, options.rounds)
        for name, (here, there) in found.items():
            table.add_row(name, f"{here:.3g}", f"{there:.3g}", f"{here / there:.2f}")
    if options.count:
        for name, value in {**users(options.count), **receipts(options.count)}.items():
            table.add_row(name, f"{value:.3g}")
    Console().print(table)


if __name__ == "__main__":
    main()
