"""Messages on their way to receivers: claimed with a lease, signed, sent, and what came of it.

At least once, in order for each receiver and record, always the same bytes and the same id. A try
that is answered with a no counts, and ten are enough. A receiver that gives no answer is down:
everything for it waits, in order, and it is asked again less and less often, for a day (CMD-F26).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import httpx2
from sqlalchemy import delete, exists, select, tuple_, update
from sqlalchemy.orm import aliased
from sqlmodel import Session, col
from sqlmodel import select as select_rows

from app.commands import backoff, signatures
from app.commands.outbox_models import (
    OutboxEvent,
    ReceiverState,
    Waiting,
    WebhookDelivery,
    WebhookSubscription,
)
from app.kernel import clock, http, ids, json, metrics, settings
from app.kernel.db import Work
from app.kernel.prepared import Prepared

LEASE = timedelta(seconds=60)
TIMEOUT_S = 10.0
AT_ONCE = 4  # messages to one receiver
PATIENCE = timedelta(days=1)  # with a receiver that gives no answer
GONE = 410
UNAVAILABLE = {502, 503, 504}  # what a proxy says of a receiver that is down
TOO_EARLY = {408, 425, 429}  # a no for now

took = metrics.histogram(
    "webhook_delivery_seconds",
    "How long one try to deliver a webhook took.",
    ["outcome"],
    (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0),
)

_INSERT = Prepared(
    "INSERT INTO webhook_delivery (tenant_id, id, subscription_id, event_id, type, line, seq, "
    "place, body, state, attempts, refusals, waits_since, due_at, last_error, created_at) "
    "VALUES (:tenant_id, :id, :subscription_id, :event_id, :type, :line, :seq, "
    ":place, :body, 'pending', 0, 0, :now, :now, '', :now)"
)


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one try; without `status` nobody answered, or nobody may be asked."""

    status: int | None
    took_ms: int
    fault: str = ""
    is_refused: bool = False  # by our own guard: the address must not be called

    @property
    def outcome(self) -> str:
        """One word for it."""
        if self.is_refused:
            return "refused"
        if self.status is None or self.status in UNAVAILABLE:
            return "no_answer"
        if 200 <= self.status < 300:
            return "delivered"
        if self.status == GONE:
            return "gone"
        is_final = 400 <= self.status < 500 and self.status not in TOO_EARLY
        return "rejected" if is_final else "failed"


@dataclass(frozen=True, slots=True)
class Message:
    """One claimed delivery, ready to be sent."""

    delivery: WebhookDelivery
    url: str
    secrets: tuple[str, ...]
    is_probe: bool = False  # asks whether a receiver that was down is back


def put(
    work: Work,
    receiver: WebhookSubscription,
    *,
    event_id: str,
    type: str,
    at: datetime,
    data: dict[str, Any],
    line: str,
    seq: int = 0,
    place: int = 0,
) -> None:
    """Let one receiver be told of one event."""
    body = json.dumps({"type": type, "timestamp": clock.rfc3339(at), "data": data})
    _INSERT.run(
        work.connection,
        tenant_id=receiver.tenant_id,
        id=ids.ulid(),
        subscription_id=receiver.id,
        event_id=event_id,
        type=type,
        line=f"{receiver.id}:{line}",
        seq=seq,
        place=place,
        body=body.decode(),
        now=clock.now(),
    )


def hand_over(work: Work, event: OutboxEvent, receiver: WebhookSubscription) -> None:
    """Let one receiver be told of what stands in the outbox."""
    put(
        work,
        receiver,
        event_id=event.id,
        type=event.name,
        at=event.at,
        data=event.data,
        line=event.line,
        seq=event.seq,
        place=event.place,
    )


def waiting_for(session: Session) -> list[tuple[str, str]]:
    """Tenant and id of every receiver that something is due for."""
    now = clock.now()
    query = (
        select(col(WebhookSubscription.tenant_id), col(WebhookSubscription.id))
        .where(
            col(WebhookSubscription.state) == ReceiverState.ACTIVE,
            _is_rested(now),
            exists().where(
                col(WebhookDelivery.tenant_id) == WebhookSubscription.tenant_id,
                col(WebhookDelivery.subscription_id) == WebhookSubscription.id,
                *_is_due(WebhookDelivery, now),
                ~_is_behind(),
            ),
        )
        .limit(500)
    )
    return [(tenant_id, id) for tenant_id, id in session.execute(query)]


def claim(work: Work, tenant_id: str, receiver_id: str) -> list[Message]:
    """Take what is due for a receiver, the first of each record, for one lease."""
    now = clock.now()
    query = select_rows(WebhookSubscription).where(
        WebhookSubscription.tenant_id == tenant_id,
        WebhookSubscription.id == receiver_id,
        WebhookSubscription.state == ReceiverState.ACTIVE,
        _is_rested(now),
    )
    receiver = work.session.exec(query.with_for_update()).first()
    if receiver is None:
        return []
    is_probe = receiver.down_tries > 0
    found = work.session.exec(_heads(receiver, now).limit(1 if is_probe else AT_ONCE)).all()
    if found and is_probe:  # one asks whether it is back; the others wait behind it
        receiver.resting_until = now + LEASE
        work.session.add(receiver)
    for each in found:
        each.attempts, each.leased_until = each.attempts + 1, now + LEASE
        work.session.add(each)
    secrets = _secrets(receiver, now)
    return [Message(each, receiver.url, secrets, is_probe) for each in found]


async def send(client: httpx2.AsyncClient, message: Message) -> Answer:
    """Send one message; whatever happens is an answer."""
    return await post(
        client, message.url, message.secrets, message.delivery.event_id, message.delivery.body
    )


async def post(
    client: httpx2.AsyncClient,
    url: str,
    secrets: Sequence[str],
    id: str,
    body: str,
    extra: dict[str, str] | None = None,
) -> Answer:
    """One signed POST."""
    raw, began = body.encode(), clock.monotonic_s()
    headers = signatures.headers(secrets, id, clock.epoch_s(), raw)
    headers |= {"content-type": "application/json", **(extra or {})}
    status: int | None = None
    fault, is_refused = "", False
    try:
        status, _, _ = await http.fetch(
            client, "POST", url, total_s=TIMEOUT_S, content=raw, headers=headers
        )
    except http.Refused as refused:
        fault, is_refused = refused.rule, refused.rule not in {"encoding", "size"}
        status = None if is_refused else 500  # it answered, in a way that cannot be read
    except http.Unreachable as away:
        fault = away.rule
    seconds = clock.monotonic_s() - began
    answer = Answer(status, round(seconds * 1000), fault, is_refused)
    took.labels(outcome=answer.outcome).observe(seconds)
    return answer


def settle(work: Work, message: Message, answer: Answer) -> None:
    """Write down what came of one try, if nobody else has it by now."""
    held, now = message.delivery, clock.now()
    values: dict[str, Any] = {
        "leased_until": None,
        "response_status": answer.status,
        "last_error": answer.fault,
        "took_ms": answer.took_ms,
    }
    match answer.outcome:
        case "delivered":
            values |= {"state": Waiting.DONE, "settled_at": now}
        case "rejected" | "gone" | "refused":
            values |= {"state": Waiting.DEAD, "settled_at": now}
        case "failed":
            refusals = held.refusals + 1
            values |= {"refusals": refusals, "due_at": now + backoff.after(refusals)}
            if refusals >= backoff.TRIES:
                values |= {"state": Waiting.DEAD, "settled_at": now}
        case _ if held.waits_since <= now - PATIENCE:
            values |= {"state": Waiting.DEAD, "settled_at": now}
    written = work.connection.execute(
        update(WebhookDelivery)
        .where(
            col(WebhookDelivery.tenant_id) == held.tenant_id,
            col(WebhookDelivery.id) == held.id,
            col(WebhookDelivery.attempts) == held.attempts,
            col(WebhookDelivery.state) == Waiting.PENDING,
        )
        .values(**values)
    )
    if written.rowcount == 1:
        _note(work, message, answer, now)


def give_up(work: Work, message: Message) -> None:
    """Let one wait for a person of which nobody can write down what came of it."""
    held = message.delivery
    _let_die(
        work,
        col(WebhookDelivery.tenant_id) == held.tenant_id,
        col(WebhookDelivery.id) == held.id,
        fault="not_settled",
    )


def lose_patience(work: Work, tenant_id: str, receiver_id: str) -> None:
    """Let those wait for a person that nobody could even prepare for a day."""
    _let_die(
        work,
        col(WebhookDelivery.tenant_id) == tenant_id,
        col(WebhookDelivery.subscription_id) == receiver_id,
        col(WebhookDelivery.waits_since) <= clock.now() - PATIENCE,
        fault="not_prepared",
    )


def again(work: Work, receiver: WebhookSubscription, delivery_id: str | None) -> int:
    """Make deliveries wait for their turn once more; returns how many."""
    chosen = [
        col(WebhookDelivery.tenant_id) == receiver.tenant_id,
        col(WebhookDelivery.subscription_id) == receiver.id,
    ]
    if delivery_id is None:
        chosen.append(col(WebhookDelivery.state) == Waiting.DEAD)
    else:
        chosen.append(col(WebhookDelivery.id) == delivery_id)
    now = clock.now()
    values = {"refusals": 0, "due_at": now, "waits_since": now, "settled_at": None}
    result = work.connection.execute(
        update(WebhookDelivery).where(*chosen).values(state=Waiting.PENDING, **values)
    )
    return result.rowcount


def forget(work: Work, receiver: WebhookSubscription) -> None:
    """Drop everything that was or would be sent to a receiver."""
    work.connection.execute(
        delete(WebhookDelivery).where(
            col(WebhookDelivery.tenant_id) == receiver.tenant_id,
            col(WebhookDelivery.subscription_id) == receiver.id,
        )
    )


def secrets_of(receiver: WebhookSubscription) -> tuple[str, ...]:
    """The secrets that sign for a receiver now, the newest first."""
    return _secrets(receiver, clock.now())


def client() -> httpx2.AsyncClient:
    """A way out for one receiver: guarded, without cookies, proxies or redirects (SEC-55)."""
    return http.client(http.pairs(",".join(settings.current().outbound_allow)))


def _heads(receiver: WebhookSubscription, now: datetime) -> Any:
    return (
        select_rows(WebhookDelivery)
        .where(
            WebhookDelivery.tenant_id == receiver.tenant_id,
            WebhookDelivery.subscription_id == receiver.id,
            *_is_due(WebhookDelivery, now),
            ~_is_behind(),
        )
        .order_by(col(WebhookDelivery.seq), col(WebhookDelivery.place), col(WebhookDelivery.id))
        .with_for_update(skip_locked=True)
    )


def _is_behind() -> Any:
    """Whether something about the same record has to go to the same receiver first."""
    earlier = aliased(WebhookDelivery)
    first = exists().where(
        col(earlier.tenant_id) == WebhookDelivery.tenant_id,
        col(earlier.line) == WebhookDelivery.line,
        col(earlier.state) == Waiting.PENDING,
        tuple_(col(earlier.seq), col(earlier.place))
        < tuple_(col(WebhookDelivery.seq), col(WebhookDelivery.place)),
    )
    return first.correlate(WebhookDelivery)


def _is_due(table: type[WebhookDelivery], now: datetime) -> list[Any]:
    return [
        col(table.state) == Waiting.PENDING,
        col(table.due_at) <= now,
        col(table.leased_until).is_(None) | (col(table.leased_until) <= now),
    ]


def _is_rested(now: datetime) -> Any:
    until = col(WebhookSubscription.resting_until)
    return until.is_(None) | (until <= now)


def _secrets(receiver: WebhookSubscription, now: datetime) -> tuple[str, ...]:
    sealed = [receiver.sealed]
    if receiver.old_sealed and receiver.old_until and receiver.old_until > now:
        sealed.append(receiver.old_sealed)
    return tuple(signatures.unseal(each, receiver.tenant_id, receiver.id) for each in sealed)


def _let_die(work: Work, *which: Any, fault: str) -> None:
    values = {"state": Waiting.DEAD, "settled_at": clock.now(), "last_error": fault}
    pending = col(WebhookDelivery.state) == Waiting.PENDING
    work.connection.execute(update(WebhookDelivery).where(*which, pending).values(**values))


def _note(work: Work, message: Message, answer: Answer, now: datetime) -> None:
    """What one try says about its receiver."""
    held = message.delivery
    query = select_rows(WebhookSubscription).where(
        WebhookSubscription.tenant_id == held.tenant_id,
        WebhookSubscription.id == held.subscription_id,
    )
    receiver = work.session.exec(query.with_for_update()).first()
    if receiver is None:
        return
    if answer.outcome == "no_answer":
        if message.is_probe or not receiver.down_tries:  # several at once are one failure
            receiver.down_since = receiver.down_since or now
            receiver.down_tries += 1
            receiver.resting_until = now + backoff.after(receiver.down_tries)
    elif answer.outcome != "refused":
        receiver.down_since, receiver.down_tries, receiver.resting_until = None, 0, None
    if answer.outcome == "gone":
        receiver.state = ReceiverState.GONE
    work.session.add(receiver)
