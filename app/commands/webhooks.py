"""Receivers of webhooks: who is told what, at which address, signed with which secret (CMD-24).

An administrator keeps them. A secret is handed out once and stored sealed; while it is changed the
old one signs as well, for a day (SEC-82). Everything done to a receiver is on record.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

import httpx2
from sqlmodel import Session, col, func, select

from app.commands import deliveries, published, signatures, sources
from app.commands.outbox_models import (
    OutboxEvent,
    ReceiverState,
    Waiting,
    WebhookDelivery,
    WebhookSubscription,
)
from app.identity import facts
from app.identity.paging import Order, Page, page
from app.identity.principal import Principal
from app.kernel import clock, http, ids, settings
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import N_

BOTH_SECRETS = timedelta(days=1)
MOST = 100  # receivers of a tenant
TEST_EVENT = "assent.test"


class TooManyReceivers(Conflict):
    """A tenant has as many receivers as it may."""

    reason = "too_many_receivers"
    says = N_("There are as many receivers as there may be. Remove one first.")


class AlreadySo(Conflict):
    """The receiver stands as it should already."""

    reason = "already_so"
    says = N_("It is so already. Look at it again.")


@dataclass(frozen=True, slots=True)
class Listed:
    """A receiver, and how many messages to it wait or were given up."""

    receiver: WebhookSubscription
    pending: int
    dead: int


@dataclass(frozen=True, slots=True)
class Offered:
    """What there is to be told: types of events, and names of API calls."""

    types: Sequence[str]
    api_calls: Sequence[str]


def listed(session: Session, tenant_id: str) -> list[Listed]:
    """Every receiver of a tenant, the oldest first."""
    counted = (
        select(WebhookDelivery.subscription_id, WebhookDelivery.state, func.count())
        .where(WebhookDelivery.tenant_id == tenant_id, WebhookDelivery.state != Waiting.DONE)
        .group_by(col(WebhookDelivery.subscription_id), col(WebhookDelivery.state))
    )
    numbers = {(id, state): number for id, state, number in session.exec(counted).all()}
    return [
        Listed(
            each,
            numbers.get((each.id, Waiting.PENDING), 0),
            numbers.get((each.id, Waiting.DEAD), 0),
        )
        for each in receivers(session, tenant_id)
    ]


def receivers(session: Session, tenant_id: str) -> Sequence[WebhookSubscription]:
    """Every receiver of a tenant, the oldest first."""
    query = select(WebhookSubscription).where(WebhookSubscription.tenant_id == tenant_id)
    return session.exec(query.order_by(col(WebhookSubscription.id))).all()


def receivers_of(session: Session, tenants: Collection[str]) -> Sequence[WebhookSubscription]:
    """Every receiver of several tenants."""
    if not tenants:
        return []
    query = select(WebhookSubscription).where(col(WebhookSubscription.tenant_id).in_(tenants))
    return session.exec(query.order_by(col(WebhookSubscription.id))).all()


def one(session: Session, tenant_id: str, id: str) -> WebhookSubscription:
    """A receiver of this tenant.

    Raises:
        NotFound: there is none of that id here.
    """
    query = select(WebhookSubscription).where(
        WebhookSubscription.tenant_id == tenant_id, WebhookSubscription.id == id
    )
    if (found := session.exec(query).first()) is None:
        raise NotFound
    return found


def offered(session: Session, tenant_id: str) -> Offered:
    """What published commands tell; what a receiver has asked for before stays on offer."""
    types: set[str] = set()
    calls: set[str] = set()
    for version in published.all_current(session, tenant_id):
        content = version.definition
        types |= {each["type"] for name in ("events", "webhooks") for each in content.get(name, ())}
        calls |= {each["name"] for each in content.get("api_calls", ())}
        is_posted = content.get("operation") == "external" and not sources.is_reserved(version.code)
        if is_posted and not content.get("api_calls"):
            calls.add(version.code)
    for receiver in receivers(session, tenant_id):
        types |= set(receiver.event_types)
        calls |= {receiver.api_call} if receiver.api_call else set()
    return Offered(sorted(types), sorted(calls))


def create(
    work: Work,
    person: Principal,
    *,
    url: str,
    description: str = "",
    event_types: Iterable[str] = (),
    api_call: str | None = None,
) -> tuple[WebhookSubscription, str]:
    """A new receiver and its secret, which nobody gets to see again.

    Raises:
        Invalid: the address may not be called, or nothing is to be told.
        TooManyReceivers: remove one first.
    """
    _check(work.session, person.tenant_id, url, event_types, api_call)
    if len(receivers(work.session, person.tenant_id)) >= MOST:
        raise TooManyReceivers
    id, secret = ids.ulid(), signatures.new_secret()
    made = WebhookSubscription(
        tenant_id=person.tenant_id,
        id=id,
        url=url,
        description=description,
        event_types=[] if api_call else sorted(set(event_types)),
        api_call=api_call or None,
        sealed=signatures.seal(secret, person.tenant_id, id),
        created_at=clock.now(),
        created_by=person.user_id,
    )
    work.session.add(made)
    changes: dict[str, tuple[object, object]] = {
        "url": (None, url),
        "event_types": (None, made.event_types),
        "api_call": (None, made.api_call),
    }
    _record(work, person, "create", made, changes)
    return made, secret


def change(
    work: Work,
    person: Principal,
    receiver: WebhookSubscription,
    *,
    url: str,
    description: str = "",
    event_types: Iterable[str] = (),
    api_call: str | None = None,
) -> None:
    """Another address, other things to tell; a receiver that was away is asked at once.

    Raises:
        Invalid: the address may not be called, or nothing is to be told.
    """
    _check(work.session, receiver.tenant_id, url, event_types, api_call, besides=receiver.id)
    types = [] if api_call else sorted(set(event_types))
    changes: dict[str, tuple[object, object]] = {
        "url": (receiver.url, url),
        "description": (receiver.description, description),
        "event_types": (receiver.event_types, types),
        "api_call": (receiver.api_call, api_call or None),
    }
    receiver.url, receiver.description = url, description
    receiver.event_types, receiver.api_call = types, api_call or None
    _is_up(receiver)
    work.session.add(receiver)
    _record(work, person, "change", receiver, changes)


def rotate(work: Work, person: Principal, receiver: WebhookSubscription) -> str:
    """A new secret, shown once; for a day the old one signs as well (SEC-82)."""
    secret = signatures.new_secret()
    receiver.old_sealed, receiver.old_until = receiver.sealed, clock.now() + BOTH_SECRETS
    receiver.sealed = signatures.seal(secret, receiver.tenant_id, receiver.id)
    work.session.add(receiver)
    _record(work, person, "rotate_secret", receiver, {})
    return secret


def pause(work: Work, person: Principal, receiver: WebhookSubscription) -> None:
    """Send nothing for now; what is told meanwhile waits.

    Raises:
        AlreadySo: nothing is sent to it as it is.
    """
    if receiver.state != ReceiverState.ACTIVE:
        raise AlreadySo
    _move(work, person, receiver, ReceiverState.PAUSED, "pause")


def resume(work: Work, person: Principal, receiver: WebhookSubscription) -> None:
    """Send again, what waited first.

    Raises:
        AlreadySo: it is being sent to.
    """
    if receiver.state == ReceiverState.ACTIVE:
        raise AlreadySo
    _is_up(receiver)
    _move(work, person, receiver, ReceiverState.ACTIVE, "resume")


def remove(work: Work, person: Principal, receiver: WebhookSubscription) -> None:
    """Forget a receiver, with its secret and what was sent or waits."""
    deliveries.forget(work, receiver)
    work.session.delete(receiver)
    _record(work, person, "remove", receiver, {"url": (receiver.url, None)})


def test(work: Work, person: Principal, receiver: WebhookSubscription) -> str:
    """Send an event that means nothing; returns its id."""
    event_id = ids.ulid()
    deliveries.put(
        work,
        receiver,
        event_id=event_id,
        type=TEST_EVENT,
        at=clock.now(),
        data={"sentBy": person.user_id},
        line=event_id,
    )
    _record(work, person, "test", receiver, {})
    return event_id


def deliveries_of(
    session: Session, receiver: WebhookSubscription, state: Waiting | None, cursor: str
) -> Page[WebhookDelivery]:
    """What was or will be sent to a receiver, the newest first."""
    query = select(WebhookDelivery).where(
        WebhookDelivery.tenant_id == receiver.tenant_id,
        WebhookDelivery.subscription_id == receiver.id,
    )
    if state is not None:
        query = query.where(WebhookDelivery.state == state)
    order = Order(col(WebhookDelivery.created_at), col(WebhookDelivery.id), is_descending=True)
    return page(session, query, order, cursor, lambda row: row[0])


def redeliver(
    work: Work, person: Principal, receiver: WebhookSubscription, delivery_id: str | None = None
) -> int:
    """Send once more, the same event with the same id; all that was given up where none is named.

    Raises:
        NotFound: the receiver has no such delivery.
    """
    number = deliveries.again(work, receiver, delivery_id)
    if delivery_id is not None and not number:
        raise NotFound
    if number:
        _is_up(receiver)
        work.session.add(receiver)
        _record(work, person, "redeliver", receiver, {})
    return number


def undeliverable(session: Session, tenant_id: str, limit: int = 50) -> list[OutboxEvent]:
    """What could not be told to anybody, such as an API call whose address nobody set."""
    query = (
        select(OutboxEvent)
        .where(OutboxEvent.tenant_id == tenant_id, OutboxEvent.state == Waiting.DEAD)
        .order_by(col(OutboxEvent.at).desc())
        .limit(limit)
    )
    return list(session.exec(query).all())


def tell_again(work: Work, person: Principal, event_id: str) -> None:
    """Let the dispatcher try once more what it had given up.

    Raises:
        NotFound: nothing of that id was given up here.
    """
    query = select(OutboxEvent).where(
        OutboxEvent.tenant_id == person.tenant_id,
        OutboxEvent.id == event_id,
        OutboxEvent.state == Waiting.DEAD,
    )
    if (event := work.session.exec(query).first()) is None:
        raise NotFound
    event.state, event.attempts, event.due_at = Waiting.PENDING, 0, clock.now()
    work.session.add(event)
    facts.record(work, "command.outbox.retry", person, target=("outbox_event", event.id))


def _check(
    session: Session,
    tenant_id: str,
    url: str,
    event_types: Iterable[str],
    api_call: str | None,
    besides: str = "",
) -> None:
    types, on_offer = set(event_types), offered(session, tenant_id)
    if says := fault_of(url):
        raise Invalid(FieldError("url", says))
    if api_call:
        if api_call not in on_offer.api_calls:
            raise Invalid(FieldError("api_call", N_("Choose one of the offered values.")))
        for each in receivers(session, tenant_id):
            if each.api_call == api_call and each.id != besides:
                says = N_("These calls have an address already.")
                raise Invalid(FieldError("api_call", says))
    elif not types:
        raise Invalid(FieldError("event_types", N_("Choose what the receiver is told.")))
    elif not types <= {*on_offer.types, *_wildcards(on_offer.types)}:
        raise Invalid(FieldError("event_types", N_("Choose one of the offered values.")))


def _wildcards(types: Sequence[str]) -> set[str]:
    return {f"{name.partition('.')[0]}.*" for name in types} | {"*"}


def fault_of(text: str) -> str:
    """What is wrong with an address; its name is resolved and judged at each delivery (SEC-55)."""
    allow = http.pairs(",".join(settings.current().outbound_allow))
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, ValueError):
        return N_("Write a full address, such as https://example.com/path.")
    port = url.port or (http.HTTPS_PORT if url.scheme == "https" else 80)
    is_exempt = (url.host, port) in allow
    if not url.host or url.scheme not in {"http", "https"}:
        return N_("Write a full address, such as https://example.com/path.")
    if url.userinfo or url.fragment:
        return N_("Leave user names, passwords and fragments out of the address.")
    if not is_exempt and (url.scheme != "https" or port != http.HTTPS_PORT):
        return N_("The address must start with https:// and use port 443.")
    return ""


def _is_up(receiver: WebhookSubscription) -> None:
    receiver.down_since, receiver.down_tries, receiver.resting_until = None, 0, None


def _move(
    work: Work, person: Principal, receiver: WebhookSubscription, to: ReceiverState, verb: str
) -> None:
    before, receiver.state = receiver.state, to
    work.session.add(receiver)
    _record(work, person, verb, receiver, {"state": (before, str(to))})


def _record(
    work: Work,
    person: Principal,
    verb: str,
    receiver: WebhookSubscription,
    changes: Mapping[str, tuple[object, object]],
) -> None:
    facts.record(
        work,
        f"command.webhook.{verb}",
        person,
        target=("webhook", receiver.id),
        changes=dict(changes),
    )
