"""After commit: each receiver that asked for the event has a delivery of its own."""

from collections.abc import Iterable, Sequence

from app.commands import deliveries
from app.commands.outbox_models import OutboxEvent, ReceiverState, WebhookSubscription
from app.kernel.db import Work


def run(work: Work, event: OutboxEvent, receivers: Sequence[WebhookSubscription]) -> None:
    """Hand the event to every receiver of its type; a dead one holds up nobody else."""
    for receiver in receivers:
        if receiver.state != ReceiverState.GONE and wants(receiver.event_types, event.name):
            deliveries.hand_over(work, event, receiver)


def wants(patterns: Iterable[str], type: str) -> bool:
    """Whether one of `patterns` (`expense.report.paid`, `expense.*`, `*`) means this type."""
    return any(
        pattern in {type, "*"} or (pattern.endswith(".*") and type.startswith(pattern[:-1]))
        for pattern in patterns
    )
