"""Containers without a model: the top n, a sharded dict, fast paths for lists of ids."""
