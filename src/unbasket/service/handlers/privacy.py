"""Handlers for a privacy officer: receipts and proofs, retention, tokens for shoppers."""

import time
from datetime import UTC, datetime
from functools import partial

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
    wanted = request.path["number"]
    if wanted.isdecimal() and wanted.isascii() and len(wanted) < 19:
        for found in request.rec.receipts(int(wanted), int(wanted)):
            if str(found.number) == wanted:
                return found
    raise ApiError("unknown_receipt", "there is no receipt with this number")


def receipt_proof(request: Request) -> Steps[responses.ReceiptProof]:
    """Prove that a receipt is in the log."""
    number = receipt(request).number
    return in_one_step(lambda: msgspec.convert(request.rec.prove_receipt(number), responses.ReceiptProof))


def checkpoint(request: Request) -> Steps[bytes]:
    """Return a signed checkpoint of all receipts and users, for an auditor to keep."""
    return in_one_step(lambda: request.rec.checkpoint().encode())


def verify_proof(request: Request) -> Steps[responses.ProofVerdict]:
    """Verify a proof, a checkpoint or receipts, as `python -m unbasket.verifier` does."""
    body: requests.ProofFile = request.body
    return in_one_step(partial(_verdict, body.text))


def _verdict(text: str) -> responses.ProofVerdict:
    from unbasket import verifier  # with cryptography, which takes long to import

    try:
        return responses.ProofVerdict(True, verifier.verify(text))
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
    foreign: list[str] = []
    if given is None:
        checked = yield from _audit_all(request.rec)
    else:
        checked, foreign = _audit_given(request.rec, given.receipts)
    faults = [*checked.faults, *foreign]
    return responses.AuditResponse(
        ok=not faults,
        receipts=checked.receipts,
        keys=list(checked.keys),
        faults=faults,
        chained=[list(run) for run in checked.chained],
        missing=[list(run) for run in checked.missing],
        warnings=list(checked.warnings),
        summary=checked.summary(),
    )


def _audit_all(rec: DurableRecommender) -> Steps[Audit]:
    """Verify in batches: an erasure waits for read transactions, so none may be long."""
    auditor, count = Auditor(), rec.receipt_count
    for first in range(1, count + 1, _BATCH):
        auditor.check(rec.receipts(first, min(first + _BATCH - 1, count)))
        yield
    return auditor.outcome()


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
    planned = plan(request.rec, rules, datetime.now(UTC))
    if body.run:
        request.shared.empty_receipts.clear()
    outcome = run(request.rec, planned) if body.run else None
    if outcome is not None:
        request.results.append(outcome.forgotten)
    forgotten = (outcome or planned).forgotten
    return responses.RetentionResponse(
        done=body.run,
        rules=[
            responses.RuleResponse(rule.name, rule.users, rule.baskets, rule.purchases, rule.warnings)
            for rule in planned.rules
        ],
        forgotten=responses.Removed(*forgotten),
        share=planned.share,
        receipts=outcome.receipts if outcome else 0,
        seconds=time.perf_counter() - start,
    )


def token(request: Request) -> responses.TokenResponse:
    """Issue a short-lived token for one shopper."""
    body: requests.TokenRequest = request.body
    user = request.id_of("user", body.user)
    request.shared.empty_receipts.renew(user)  # a later forget gets a receipt of its own, which ends the token
    text, expires = request.shared.auth.issue(user, body.seconds, request.rec.presence(user))
    return responses.TokenResponse(text, user, expires)
