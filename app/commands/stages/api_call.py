"""After commit: an HTTP call to the address that an administrator set by its name."""

from collections.abc import Sequence

from app.commands import deliveries
from app.commands.outbox_models import OutboxEvent, ReceiverState, WebhookSubscription
from app.commands.undelivered import CannotTell
from app.kernel.db import Work


def run(work: Work, event: OutboxEvent, receivers: Sequence[WebhookSubscription]) -> None:
    """Hand the call to its address.

    Raises:
        CannotTell: nobody set one; the call waits for a person.
    """
    for receiver in receivers:
        if receiver.api_call == event.name and receiver.state != ReceiverState.GONE:
            deliveries.hand_over(work, event, receiver)
            return
    raise CannotTell("no_address")
