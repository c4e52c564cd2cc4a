"""Baskets as bytes and from columns: rows of a store, hashes of users, purchases grouped into baskets."""
