"""A client of the HTTP service, with the verbs of `Recommender`.

    client, batch -> transport -> HTTP -> service

`client` turns each verb into a request and its response into the types of the engine. `batch` collects events and sends
them in bulk. `transport` sends requests, and repeats those that are safe to repeat. `errors` become the exceptions that
the engine raises, and `results` holds the few types that only the service has.
"""

from unbasket.errors import import_optional

import_optional("httpx", "the client needs httpx", "client")

from unbasket.client.batch import Batch  # noqa: E402 - after the check
from unbasket.client.client import Client  # noqa: E402
from unbasket.client.errors import ServiceError, UnavailableError  # noqa: E402
from unbasket.client.results import (  # noqa: E402
    Caller,
    ErasedMany,
    Preview,
    ReceiptAudit,
    Recommendations,
    Retention,
    RuleMatch,
    Token,
)

__all__ = [
    "Batch",
    "Caller",
    "Client",
    "ErasedMany",
    "Preview",
    "ReceiptAudit",
    "Recommendations",
    "Retention",
    "RuleMatch",
    "ServiceError",
    "Token",
    "UnavailableError",
]
