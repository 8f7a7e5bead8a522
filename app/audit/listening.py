"""What the trail listens to: facts to write down, entries to announce and to seal."""

from collections.abc import Callable

from app.audit import announce, checkpoints, identity_check, identity_entries, verify
from app.audit.trail import Appended
from app.identity.facts import IdentityFact
from app.kernel import events


def listen() -> Callable[[], None]:
    """Start to listen; once at start. Returns a function that ends it."""
    verify.register_cross_check("identity", identity_check.check)
    ends = (
        events.subscribe_inside(IdentityFact, identity_entries.write),
        events.subscribe_inside(Appended, announce.entry),
        events.subscribe(Appended, checkpoints.note),
    )

    def end() -> None:
        for each in ends:
            each()

    return end
