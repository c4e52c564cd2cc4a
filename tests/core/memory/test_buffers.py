"""Memory that the core hands back was wiped: looked at by a `free` of our own, in a process that learns and forgets."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

MARKER = 0x7122334455667788  # the id of a basket, as 8 bytes that nothing else has: it is too large to be its own hash

WATCHER = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

void free(void *memory)
{{
    static void (*next)(void *);
    uint64_t word;
    if (!next)
        next = (void (*)(void *))dlsym(RTLD_NEXT, "free");
    for (size_t i = 0; memory && i + 8 <= malloc_usable_size(memory); i += 8) {{
        memcpy(&word, (char *)memory + i, 8);
        if (word == {MARKER}ULL)
            if (write(2, "found\\n", 6) < 0) return;
    }}
    next(memory);
}}
"""

EVENTS = f"""
import unbasket as ub
rec = ub.Recommender(ub.Params(group_size=2, neighbors=3))
for user in range(40):
    rec.learn(user, [user, "milk", "bread"], basket={MARKER}, time=1)
for basket in range(30):  # histories grow, and with them the arrays that all of them are in
    for user in range(40):
        rec.learn(user, [basket, "tea"], basket=basket, time=basket + 2)
for user in range(39):
    rec.forget(user, basket={MARKER})
rec.forget(39)
assert rec.verify().ok
del rec
"""

LEFT = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
memory = libc.malloc(64)
ctypes.c_uint64.from_address(memory + 16).value = {MARKER}
libc.free(memory)
"""


@pytest.fixture(scope="module")
def watcher(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("watcher")
    (folder / "watcher.c").write_text(WATCHER)
    library = folder / "watcher.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, folder / "watcher.c", "-ldl"], check=True)
    return library


def found(watcher: Path, program: str) -> str:
    """What the watcher says while a program runs."""
    environment = os.environ | {"LD_PRELOAD": str(watcher)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="the watcher is written for Linux")
def test_nothing_that_was_forgotten_is_in_freed_memory(watcher: Path) -> None:
    assert found(watcher, LEFT) == "found\n"  # it would have said so
    assert found(watcher, EVENTS) == ""
