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
import sysconfig
from pathlib import Path

from Cython.Build import cythonize
from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

CORE = Path("src/unbasket/core")
SOURCES = sorted(CORE.rglob("*.pyx"))
HEADERS = [str(header) for header in sorted(CORE.rglob("*.h"))]

KIND = os.environ.get("UNBASKET_BUILD", "release")
DEBUG = {"release": False, "debug": True, "sanitized": True}[KIND]

FLAGS = ["-O0", "-g"] if DEBUG else ["-O3", "-g0"]
FLAGS += ["-ffp-contract=off", "-fno-fast-math", "-Wno-unused-function", "-Wno-unused-variable"]
WATCHED = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if KIND == "sanitized" else []

sources = runpy.run_path(str(CORE / "_build_check.py"))  # the package itself can't be imported before it is compiled


def extension(source: Path) -> Extension:
    """A module of the core."""
    return Extension(
        ".".join(source.relative_to("src").with_suffix("").parts),
        [str(source)],
        include_dirs=[str(CORE)],
        depends=HEADERS,  # Cython does not look for headers in `include_dirs`
        define_macros=[] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
        extra_compile_args=FLAGS + WATCHED,
        extra_link_args=WATCHED,
    )


def as_c(modules: list[Extension]) -> list[Extension]:
    """The modules, as C. What reads buffers is the same in most of them: it is written and compiled once."""
    translated: list[Extension] = cythonize(
        modules,
        shared_utility_qualified_name=SHARED.name,
        build_dir=f"build/{KIND}",
        include_path=["src"],
        nthreads=os.cpu_count() or 1,
        compiler_directives={
            "language_level": 3,
            "boundscheck": DEBUG,
            "initializedcheck": DEBUG,
            "wraparound": False,
            "cdivision": True,
            "show_performance_hints": False,
        },
    )
    return translated


def is_built() -> bool:
    """Whether the modules beside the sources are those that a build would put there."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return KIND == "release" and sources["are_compiled"]() and all(s.with_suffix(suffix).exists() for s in SOURCES)


class BuildCore(build_ext):  # type: ignore[misc]
    """Compiles in parallel; notes what was compiled beside the sources, so that a change of them shows."""

    def finalize_options(self) -> None:
        """Use every processor."""
        super().finalize_options()
        self.parallel = os.cpu_count() or 1

    def run(self) -> None:
        """Translate and compile, unless that is done."""
        if self.inplace and is_built():
            return
        for module, translated in zip(self.extensions, as_c(self.extensions), strict=True):
            module.sources = translated.sources
        super().run()
        if self.inplace:
            sources["note_build"]()


SHARED = extension(CORE / "_shared.c")

setup(
    ext_modules=[SHARED, *map(extension, SOURCES)],
    cmdclass={"build_ext": BuildCore},
)
