"""The command line: one module per command, which only translates between a terminal and the library."""

from unbasket.cli.app import app

__all__ = ["app"]
