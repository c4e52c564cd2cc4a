"""What is left in a process's memory of what it has forgotten: `python benchmarks/traces.py`.

A process learns baskets whose users and items bear marks, beside a shop that stays, forgets all of them, and waits;
then its memory is searched. The engine wipes its own arrays. What is left lies in memory that was handed back to the
allocator and not used again. The program below holds no mark itself, so whatever its Python objects still refer to is
the engine's, and must be none.
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

def mark(kind, number):
    return kind + hashlib.sha256(f"{kind}{number}".encode()).hexdigest()[:20]

count = int(sys.argv[2])
with ub.open(sys.argv[1]) as rec:
    rec.fit(generate(300).history)
    for number in range(count):
        rec.learn(mark("user-", number), [mark("item-", number), "milk"], basket=1)
    for number in range(count):
        rec.recommend(mark("user-", number))
        assert rec.forget(mark("user-", number)).receipt.verified
    gc.collect()
    held = sum(
        isinstance(each, str) and len(each) == 25 and each.startswith(("user-", "item-"))
        for container in gc.get_objects() for each in gc.get_referents(container)
    )
    print(held, flush=True)
    sys.stdin.readline()
"""


def marks_in(process: int) -> set[bytes]:
    """The different marks in all memory of a process that can be written to."""
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
    """Forget, search, and print both counts."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", PROCESS, str(Path(folder, "shop.db")), str(FORGETS)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            held = int(process.stdout.readline())
            found = marks_in(process.pid)
            process.stdin.close()
    Console().print(
        f"After {FORGETS:,} users, each with an item of their own, were forgotten: "
        f"{len(found):,} of {2 * FORGETS:,} marks are left in the process's memory; the engine refers to {held}."
    )


if __name__ == "__main__":
    main()
