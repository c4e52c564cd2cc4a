"""The residue of forgotten data in a process's memory: `python benchmarks/residue.py`.

A process learns baskets with marked users and items beside a shop that stays, forgets all of them, and waits. Then its
memory is searched. The engine wipes its own arrays; the residue is in memory that was freed and not used again. The
program below holds no marker itself, so markers referenced by its Python objects are the engine's, and must be 0.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console

FORGETS = 1000

PROCESS = """
import gc, hashlib, sys
import unbasket as ub
from unbasket.datasets import generate

def marker(kind, number):
    return kind + hashlib.sha256(f"{kind}{number}".encode()).hexdigest()[:20]

count = int(sys.argv[2])
with ub.open(sys.argv[1]) as rec:
    rec.fit(generate(300).history)
    for number in range(count):
        rec.learn(marker("user-", number), [marker("item-", number), "milk"], basket=1)
    for number in range(count):
        rec.recommend(marker("user-", number))
        assert rec.forget(marker("user-", number)).receipt.verified
    gc.collect()
    held = sum(
        isinstance(each, str) and len(each) == 25 and each.startswith(("user-", "item-"))
        for container in gc.get_objects() for each in gc.get_referents(container)
    )
    print(held, flush=True)
    sys.stdin.readline()
"""


def markers_in(process: int) -> set[bytes]:
    """Return the distinct markers in all writable memory of a process."""
    found: set[bytes] = set()
    with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            span, rights, *_ = line.split()
            start, end = (int(number, 16) for number in span.split("-"))
            if "w" in rights:
                memory.seek(start)
                found.update(re.findall(rb"(?:user|item)-[0-9a-f]{20}", memory.read(end - start)))
    return found


def main() -> None:
    """Run the process, search its memory, and print both counts."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROCESS, str(Path(folder, "shop.db")), str(FORGETS)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            held = int(process.stdout.readline())
            found = markers_in(process.pid)
            process.stdin.close()
    Console().print(
        f"After {FORGETS:,} users, each with an item of their own, were forgotten: "
        f"{len(found):,} of {2 * FORGETS:,} markers are left in the process's memory; the engine refers to {held}."
    )


if __name__ == "__main__":
    main()
