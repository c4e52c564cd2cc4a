"""Invariants of the model, and views of its memory for tests."""
