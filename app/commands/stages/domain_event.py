"""After commit: the event stands in the tenant's log, for whoever may read its record."""

from collections.abc import Sequence

from app.commands.outbox_models import OutboxEvent, WebhookSubscription
from app.kernel import event_log
from app.kernel.db import Work
from app.kernel.event_log import Said


def run(work: Work, event: OutboxEvent, _receivers: Sequence[WebhookSubscription]) -> None:
    """Log the event; who may read its record may hear of it."""
    run_all(work, (event,))


def run_all(work: Work, events: Sequence[OutboxEvent]) -> None:
    """The same for events of one tenant together, in their order."""
    event_log.append_all(work, events[0].tenant_id, [_said(each) for each in events])


def _said(event: OutboxEvent) -> Said:
    return Said(
        kind=event.name,
        subject=event.record_id or event.call_id,
        data={"eventId": event.id, **event.data},
        permission=event.permission,
        org_id=event.org_id,
        owner_id=event.owner_id,
    )
