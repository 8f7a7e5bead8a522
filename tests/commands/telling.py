"""Receivers of what is told after a commit, and the people who set them up, for its tests."""

from collections.abc import Sequence
from typing import Any

import pytest
from sqlmodel import col, select

from app.commands import webhooks
from app.commands.dispatcher import Dispatcher
from app.commands.outbox_models import (
    EffectState,
    ExternalEffect,
    OutboxEvent,
    Waiting,
    WebhookDelivery,
    WebhookSubscription,
)
from app.identity.principal import Principal
from app.kernel import clock, db, ids, settings
from app.kernel.db import Work
from app.kernel.settings import Settings
from tests.packs.expenses.desk import Desk
from tests.webhook_receiver import Receiver

EVERYTHING = ("expense.*",)


class Telling:
    """The desk of expenses, and who is told of what happens there."""

    def __init__(self, desk: Desk, allow: pytest.MonkeyPatch) -> None:
        self.desk, self.acme = desk, desk.acme
        self.ada = desk.world.person(desk.acme["ada"])
        self.dispatcher = Dispatcher()
        self._allow, self._pairs = allow, list[str]()

    def let_out(self, receiver: Receiver) -> None:
        """The operator exempts a receiver on loopback."""
        self._pairs.append(receiver.pair)
        chosen = Settings(outbound_allow=list(self._pairs))
        self._allow.setattr(settings, "current", lambda: chosen)

    def subscribe(
        self, receiver: Receiver, types: Sequence[str] = EVERYTHING, **more: Any
    ) -> tuple[WebhookSubscription, str]:
        """Let an administrator make a receiver known; with its secret."""
        self.let_out(receiver)
        return db.transact_now(
            webhooks.create, self.ada, url=receiver.url, event_types=types, **more
        )

    async def tell(self) -> None:
        """Do all that is due."""
        await self.dispatcher.drain()

    def events(self) -> list[OutboxEvent]:
        """What stands in the outbox, in order."""
        query = select(OutboxEvent).order_by(col(OutboxEvent.seq), col(OutboxEvent.place))
        return list(db.read_now(lambda session: session.exec(query).all()))

    def deliveries(self) -> list[WebhookDelivery]:
        """Every delivery, in order."""
        query = select(WebhookDelivery).order_by(
            col(WebhookDelivery.seq), col(WebhookDelivery.place), col(WebhookDelivery.id)
        )
        return list(db.read_now(lambda session: session.exec(query).all()))

    def subscription(self, id: str) -> WebhookSubscription:
        """A receiver as it is now."""
        return db.read_now(webhooks.one, self.acme.id, id)


def unknown_effect(person: Principal, call_id: str) -> ExternalEffect:
    """An effect of somebody's call that may have happened."""
    return ExternalEffect(
        tenant_id=person.tenant_id,
        call_id=call_id,
        code="bank.transfer.send",
        performer="bank.transfer",
        is_idempotent=False,
        user_id=person.user_id,
        sealed=b"sealed",
        state=EffectState.UNKNOWN,
        attempts=1,
        due_at=clock.now(),
        last_error="timeout",
        created_at=clock.now(),
    )


def something(work: Work, person: Principal) -> dict[str, str]:
    """A receiver of somebody's tenant, a delivery to it, and an event that was given up; ids."""
    made, _ = webhooks.create(work, person, url="https://hooks.example/x", event_types=["*"])
    webhooks.test(work, person, made)
    work.session.flush()
    of_receiver = WebhookDelivery.subscription_id == made.id
    delivery = work.session.exec(select(WebhookDelivery.id).where(of_receiver)).one()
    event = OutboxEvent(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        kind="api_call",
        name="bank.transfer",
        line=made.id,
        seq=0,
        place=0,
        call_id=made.id,
        org_id=made.id,
        owner_id=person.user_id,
        permission="command.webhook.manage",
        data={},
        at=clock.now(),
        due_at=clock.now(),
        state=Waiting.DEAD,
        last_error="no_address",
    )
    work.session.add(event)
    return {"webhook_id": made.id, "delivery_id": delivery, "event_id": event.id}
