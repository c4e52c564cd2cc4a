"""Handlers of the routes: an authorized request in, a response out. Their docstrings are the summaries in OpenAPI."""
