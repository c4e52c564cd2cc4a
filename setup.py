"""Builds the compiled core. All else about the package is in pyproject.toml.

    python setup.py build_ext --inplace                          beside the sources, for those who change them,
                                                                 if they have changed
    UNBASKET_BUILD=debug python setup.py build --build-base DIR  a copy of the package that checks bounds
    UNBASKET_BUILD=sanitized python setup.py build ...           one that AddressSanitizer and UBSan watch

Floating-point numbers are computed as they are written, without contraction or other shortcuts, and for no processor in
particular: the same bits everywhere.
"""

import os
import runpy
import sys
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("src/unbasket/core")
SOURCES = sorted(CORE.glob("*.pyx"))

KIND = os.environ.get("UNBASKET_BUILD", "release")
DEBUG = {"release": False, "debug": True, "sanitized": True}[KIND]

if sys.platform == "win32":
    FLAGS = ["/O2", "/fp:precise"]
else:
    FLAGS = ["-O1", "-g"] if DEBUG else ["-O3", "-g0"]
    FLAGS += ["-ffp-contract=off", "-fno-fast-math", "-Wno-unused-function", "-Wno-unused-variable"]
WATCHED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if KIND == "sanitized" else []

sources = runpy.run_path(str(CORE / "sources.py"))  # the package itself can't be imported before it is compiled


def extensions() -> list[Extension]:
    """The modules of the core, as C."""
    found: list[Extension] = cythonize(
        [
            Extension(
                f"unbasket.core.{source.stem}",
                [str(source)],
                include_dirs=[str(CORE)],
                define_macros=[] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
                extra_compile_args=FLAGS + WATCHED,
                extra_link_args=WATCHED,
            )
            for source in SOURCES
        ],
        build_dir=f"build/{KIND}",
        include_path=["src"],
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "initializedcheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
        },
    )
    return found


def is_built() -> bool:
    """Whether the modules beside the sources are those that a build would put there."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return KIND == "release" and sources["are_compiled"]() and all(s.with_suffix(suffix).exists() for s in SOURCES)


class BuildCore(build_ext):  # type: ignore[misc]
    """Notes what was compiled beside the sources, so that a change of them shows."""

    def run(self) -> None:
        """Compile."""
        super().run()
        if self.inplace:
            sources["note_build"]()


setup(
    ext_modules=[] if "--inplace" in sys.argv and is_built() else extensions(),
    cmdclass={"build_ext": BuildCore},
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
)
