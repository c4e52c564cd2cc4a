"""The HTTP service and its web page.

    settings -> server -> app -> routes -> handlers -> engine

`server` runs aiohttp until a signal. `app` answers requests: those of the table in `routes`, within `limits`, on the
`fast_path` if they are short and in the `executor` if not, and those for files of the page (`static`).
`engine_loader` holds the engine. `auth` identifies callers, and `clock` has the time by which their tokens expire.
`metrics` and `logs` contain no personal data.
"""
