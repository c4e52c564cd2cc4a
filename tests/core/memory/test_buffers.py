"""Memory is zeroed before it is freed: a `free` that is preloaded into a process looks for forgotten data."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SECRET = 0x7122334455667788  # the id of a basket: 8 bytes that occur nowhere else; Python hashes it to another number

FREE = f"""
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
        if (word == {SECRET}ULL)
            if (write(2, "found\\n", 6) < 0) return;
    }}
    next(memory);
}}
"""

EVENTS = f"""
import unbasket as ub
rec = ub.Recommender(ub.Params(group_size=2, neighbors=3, alpha=0.8))
for user in range(40):
    rec.learn(user, [user, "milk", "bread"], basket={SECRET}, time=1)
for basket in range(30):  # histories grow, and with them the arrays of all users
    for user in range(40):
        rec.learn(user, [basket, "tea"], basket=basket, time=basket + 2)
for user in range(39):
    rec.forget(user, basket={SECRET})
rec.forget(39)
assert rec.verify().ok
del rec
"""

RESIDUE = f"""
import ctypes
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
memory = libc.malloc(64)
ctypes.c_uint64.from_address(memory + 16).value = {SECRET}
libc.free(memory)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("free")
    (folder / "free.c").write_text(FREE)
    library = folder / "free.so"
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, folder / "free.c", "-ldl"], check=True)
    return library


def found(library: Path, program: str) -> str:
    """Return the output of the preloaded `free` while a program runs."""
    environment = os.environ | {"LD_PRELOAD": str(library)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="LD_PRELOAD and malloc.h of Linux")
def test_freed_memory_has_no_forgotten_data(library: Path) -> None:
    assert found(library, RESIDUE) == "found\n"  # the library does find residue
    assert found(library, EVENTS) == ""
