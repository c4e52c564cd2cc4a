"""Search: the k nearest neighbors of a query, and the items with the highest scores."""
