"""The HTTP service and its web page.

    settings -> server -> connection -> app, api -> handlers -> engine

`server` runs until a signal. `connection` parses requests and writes responses. `app` serves the page, and `api` the
routes in the table of `routes`, within `limits`: short requests on the `fast_path`, long work in the
`throttled_executor`. `engine_loader` holds the engine. `auth` identifies callers, and `clock` has the time by which
their tokens expire. `metrics` and `logs` contain no personal data.
"""
