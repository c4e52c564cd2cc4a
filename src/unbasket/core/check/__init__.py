"""Checks: invariants of the model, and views of its memory for tests."""
