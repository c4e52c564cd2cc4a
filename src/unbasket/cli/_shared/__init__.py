"""Modules that several commands share: options, databases, files, the terminal."""
