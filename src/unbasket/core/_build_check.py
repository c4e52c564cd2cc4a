"""Check that the compiled modules are up to date with their sources, which an installed package does not have."""

from hashlib import blake2b
from pathlib import Path

_FOLDER = Path(__file__).parent
_BUILT = _FOLDER / ".build_fingerprint"  # of the last `python setup.py build_ext --inplace`


def fingerprint() -> str:
    """Return a hash of the sources, or an empty string without sources."""
    files = sorted(file for kind in ("*.pyx", "*.pxd", "*.h") for file in _FOLDER.rglob(kind))
    return blake2b(b"".join(file.read_bytes() for file in files), digest_size=16).hexdigest() if files else ""


def note_build() -> None:
    """Record that the present sources were compiled."""
    _BUILT.write_text(fingerprint())


def are_compiled() -> bool:
    """Return whether the present sources, if there are any, were compiled."""
    now = fingerprint()
    return not now or (_BUILT.exists() and _BUILT.read_text() == now)
