"""Compiled building blocks: arrays in, arrays out. They know nothing of ids, files or errors."""
