"""Build of the compiled core. The rest of the packaging is in pyproject.toml.

    python setup.py build_ext --inplace                          build beside the sources, if these have changed
    UNBASKET_BUILD=debug python setup.py build --build-base DIR  build a copy of the package that checks bounds
    UNBASKET_BUILD=sanitized python setup.py build ...           build one with AddressSanitizer and UBSan

Floating-point arithmetic is compiled as written, without contraction and for no particular processor: results have the
same bits everywhere.
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
SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"] if KIND == "sanitized" else []

build_check = runpy.run_path(str(CORE / "_build_check.py"))  # the package can't be imported before it is compiled


def extension(source: Path) -> Extension:
    """Return the extension module of a source."""
    return Extension(
        ".".join(source.relative_to("src").with_suffix("").parts),
        [str(source)],
        include_dirs=[str(CORE)],
        depends=HEADERS,  # Cython does not look for headers in `include_dirs`
        define_macros=[] if DEBUG else [("CYTHON_WITHOUT_ASSERTIONS", "1")],
        extra_compile_args=FLAGS + SANITIZE,
        extra_link_args=SANITIZE,
    )


def as_c(modules: list[Extension]) -> list[Extension]:
    """Translate modules to C; the utility code that most of them need is compiled once."""
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
    """Return whether the modules beside the sources are up to date."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return KIND == "release" and build_check["are_compiled"]() and all(s.with_suffix(suffix).exists() for s in SOURCES)


class BuildCore(build_ext):  # type: ignore[misc]
    """A parallel build that records the fingerprint of the sources."""

    def finalize_options(self) -> None:
        """Use all processors."""
        super().finalize_options()
        self.parallel = os.cpu_count() or 1

    def run(self) -> None:
        """Translate and compile, unless the modules are up to date."""
        if self.inplace and is_built():
            return
        for module, translated in zip(self.extensions, as_c(self.extensions), strict=True):
            module.sources = translated.sources
        super().run()
        if self.inplace:
            build_check["note_build"]()


SHARED = extension(CORE / "_shared.c")

setup(
    ext_modules=[SHARED, *map(extension, SOURCES)],
    cmdclass={"build_ext": BuildCore},
)
