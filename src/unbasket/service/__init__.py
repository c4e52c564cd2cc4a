"""The HTTP service and its page.

    settings -> server -> app -> shop -> engine

`server` runs until it is told to stop, `app` answers requests from the table in `calls`, `shop` holds the engine;
`metrics` and `logs` say how it goes, and never about whom.
"""
