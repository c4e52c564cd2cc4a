"""Handlers of the routes: each takes an authorized request and returns a response."""
