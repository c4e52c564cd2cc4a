"""Histories as bytes: rows of a store, canonical bytes for hashes; purchases as baskets."""
