"""Whether the compiled modules are those of the sources beside them. An installed package has no sources."""

from hashlib import blake2b
from pathlib import Path

_FOLDER = Path(__file__).parent
_BUILT = _FOLDER / ".build_fingerprint"  # what `python setup.py build_ext --inplace` was run with


def fingerprint() -> str:
    """A hash of all that is compiled; empty if no sources are here."""
    files = sorted(file for kind in ("*.pyx", "*.pxd", "*.h") for file in _FOLDER.rglob(kind))
    return blake2b(b"".join(file.read_bytes() for file in files), digest_size=16).hexdigest() if files else ""


def note_build() -> None:
    """Note that the modules beside the sources were compiled from them."""
    _BUILT.write_text(fingerprint())


def are_compiled() -> bool:
    """Whether the sources, if there are any, have been compiled as they are now."""
    now = fingerprint()
    return not now or (_BUILT.exists() and _BUILT.read_text() == now)
