"""Packages that only some installations have."""

import importlib
from typing import Any

from unbasket.errors import MissingPackageError


def optional(module: str, purpose: str, extra: str) -> Any:
    """The module, imported when it is needed, or an error that says how to install what it needs."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingPackageError(f"{purpose}: pip install 'unbasket[{extra}]'") from error
