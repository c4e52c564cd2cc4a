"""Handlers for a privacy officer: receipts and proofs, retention, tokens for shoppers."""

import re
import time
from datetime import UTC, datetime

import msgspec

from unbasket.service.errors import ApiError
from unbasket.service.executor import Steps, in_one_step
from unbasket.service.request import Request
from unbasket.service.schemas import requests, responses
from unbasket.store import Audit, DurableRecommender, Receipt, audit
from unbasket.store.receipts import Auditor
from unbasket.store.retention import plan, run
from unbasket.store.rules import parse_rules

_BATCH = 100  # receipts read at once
_NUMBER = re.compile("[1-9][0-9]{0,17}")


def receipts(request: Request) -> responses.ReceiptsResponse:
    """Return a page of erasure receipts."""
    query: requests.ReceiptsQuery = request.query
    rec, count = request.rec, request.rec.receipt_count
    if query.order == "oldest":
        page, end = rec.receipts(query.after + 1, query.after + query.limit), count
    else:
        last = (query.after or count + 1) - 1
        page, end = rec.receipts(last - query.limit + 1, last)[::-1], 1
    seconds = [rec.seconds_to_erasure.get(receipt.number) for receipt in page]
    return responses.ReceiptsResponse(page, seconds, page[-1].number if page and page[-1].number != end else None)


def receipt(request: Request) -> Receipt:
    """Return one receipt."""
    number = int(request.path["number"]) if _NUMBER.fullmatch(request.path["number"]) else 0
    for found in request.rec.receipts(number, number):
        return found
    raise ApiError("unknown_receipt", "there is no receipt with this number")


@in_one_step
def receipt_proof(request: Request) -> responses.ReceiptProof:
    """Prove that a receipt is in the log."""
    return msgspec.convert(request.rec.prove_receipt(receipt(request).number), responses.ReceiptProof)


@in_one_step
def checkpoint(request: Request) -> bytes:
    """Return a signed checkpoint of all receipts and users, for an auditor to keep."""
    return request.rec.checkpoint().encode()


@in_one_step
def verify_proof(request: Request) -> responses.ProofVerdict:
    """Verify a proof, a checkpoint or receipts, as `python -m unbasket.verifier` does."""
    from unbasket import verifier  # with cryptography, which takes long to import

    body: requests.ProofFile = request.body
    try:
        return responses.ProofVerdict(True, verifier.verify(body.text))
    except verifier.ProofError as error:
        return responses.ProofVerdict(False, str(error))


def verify_receipts(request: Request) -> Steps[responses.AuditResponse]:
    """Verify all receipts, or check given ones against them."""
    given: requests.GivenReceipts | None = request.body
    if given is not None and len(given.receipts) > requests.MAX_RECEIPTS:
        raise ApiError(
            "too_large",
            f"{len(given.receipts):,} receipts are too many for one request: send at most {requests.MAX_RECEIPTS:,} at "
            "a time, or check them all with `unbasket receipts verify`",
        )
    rec, foreign = request.rec, list[str]()
    if given is None:
        auditor, count = Auditor(), rec.receipt_count
        for first in range(1, count + 1, _BATCH):  # an erasure waits for read transactions, so none may be long
            auditor.check(rec.receipts(first, min(first + _BATCH - 1, count)))
            yield
        checked = auditor.outcome()
    else:
        checked, foreign = _audit_given(rec, given.receipts)
    faults = [*checked.faults, *foreign]
    found = msgspec.structs.asdict(checked) | {"ok": not faults, "faults": faults, "summary": checked.summary()}
    return msgspec.convert(found, responses.AuditResponse)


def _audit_given(rec: DurableRecommender, given: list[Receipt]) -> tuple[Audit, list[str]]:
    """Verify given receipts, and return a fault for each that differs from the stored one with its number."""
    numbers = [receipt.number for receipt in given if 0 < receipt.number <= rec.receipt_count]
    stored = {receipt.number: receipt for receipt in rec.receipts(min(numbers), max(numbers))} if numbers else {}
    return audit(given, whole=False), [
        f"receipt {receipt.number}: it differs from the stored receipt with this number"
        for receipt in given
        if stored.get(receipt.number) != receipt
    ]


def retention(request: Request) -> Steps[responses.RetentionResponse]:
    """Count the purchases that retention rules would forget, or forget them."""
    body: requests.RetentionRequest = request.body
    start = time.perf_counter()
    rules = parse_rules(body.rules)
    yield
    planned, outcome = plan(request.rec, rules, datetime.now(UTC)), None
    if body.run:
        request.shared.empty_receipts.clear()
        outcome = run(request.rec, planned)
        request.shared.metrics.count_events([outcome.forgotten])
    return responses.RetentionResponse(
        done=body.run,
        rules=msgspec.convert(planned.rules, list[responses.RuleResponse], from_attributes=True),
        forgotten=responses.Removed(*(outcome or planned).forgotten),
        share=planned.share,
        receipts=outcome.receipts if outcome else 0,
        seconds=time.perf_counter() - start,
    )


def token(request: Request) -> responses.TokenResponse:
    """Issue a short-lived token for one shopper."""
    body: requests.TokenRequest = request.body
    user = request.rec.canonical_id(body.user, "user")
    request.shared.empty_receipts.renew(user)  # a later forget gets a receipt of its own, which ends the token
    text, expires = request.shared.auth.issue(user, body.seconds, request.rec.presence(user))
    return responses.TokenResponse(text, user, expires)
