"""Learned weights by hand and against the oracle, on random shops and on a real one."""
