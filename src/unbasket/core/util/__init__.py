"""Containers without a model: the top n, a sharded dict, fast tuples of ids."""
