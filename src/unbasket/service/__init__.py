"""The HTTP service and its page.

    settings -> server -> protocol -> app -> shop -> engine

`server` runs until it is told to stop, `protocol` reads requests from connections and writes answers, `app` answers
them from the table in `calls`, within `limits`: short calls in the `express` lane, long work in the `slow` one. `shop`
holds the engine; `metrics` and `logs` say how it goes, and never about whom.
"""
