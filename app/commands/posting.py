"""The performer of external commands that is there: a signed POST to an address set by its name."""

from sqlmodel import Session, select

from app.commands import deliveries
from app.commands.deliveries import Answer
from app.commands.external import ExternalRequest, ExternalResult
from app.commands.outbox_models import ReceiverState, WebhookSubscription
from app.kernel import db, json

NEVER_SENT = {"name"}  # the name had no address, so nothing went out
MAYBE_DONE = {502, 504}  # a proxy lost the answer


async def post(request: ExternalRequest) -> ExternalResult:
    """Send the request to the address that an administrator set for its performer's name."""
    receiver = await db.read(address, request.tenant_id, request.performer)
    if receiver is None:
        return ExternalResult(outcome="failed", reason="no_address")
    body = json.dumps(
        {"type": request.code, "callId": request.call_id, "data": dict(request.data)}
    ).decode()
    extra = {"idempotency-key": request.key}
    secrets = deliveries.secrets_of(receiver)
    async with deliveries.client() as client:
        answer = await deliveries.post(client, receiver.url, secrets, request.key, body, extra)
    return _result(answer, request.is_idempotent)


def address(session: Session, tenant_id: str, name: str) -> WebhookSubscription | None:
    """The receiver that takes the API calls of this name."""
    query = select(WebhookSubscription).where(
        WebhookSubscription.tenant_id == tenant_id,
        WebhookSubscription.api_call == name,
        WebhookSubscription.state != ReceiverState.GONE,
    )
    return session.exec(query).first()


def _result(answer: Answer, is_idempotent: bool) -> ExternalResult:
    data = {"status": answer.status}
    if answer.outcome == "delivered":
        return ExternalResult(outcome="done", data=data)
    if answer.outcome in {"rejected", "gone", "refused"}:
        return ExternalResult(outcome="failed", reason=_reason(answer), data=data)
    was_never_sent = answer.fault in NEVER_SENT
    answered_no = answer.status is not None and answer.status not in MAYBE_DONE
    return ExternalResult(
        outcome="failed" if was_never_sent or answered_no else "unknown",
        reason=_reason(answer),
        may_retry=is_idempotent or was_never_sent,
        data=data,
    )


def _reason(answer: Answer) -> str:
    return f"status_{answer.status}" if answer.status is not None else answer.fault
