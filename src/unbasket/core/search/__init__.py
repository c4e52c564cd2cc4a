"""Search: the k nearest neighbors of a query, and the items with the highest scores."""

from unbasket.core.search import search

Query = search.Query
QueryBatch = search.QueryBatch
SearchWorkspace = search.SearchWorkspace
