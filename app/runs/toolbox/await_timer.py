"""`await_timer`: pause for some seconds, or until a moment; it survives restarts (RUN-94)."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from app.kernel import clock
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.runs.outcome import Suspended
from app.runs.session import RunSession
from app.runs.states import WaitKind
from app.runs.tool import Prepared, Tool

LONGEST_S = 86_400
LONGEST = timedelta(days=366)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "seconds": {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
        "until": {"type": "string", "maxLength": 40, "description": "2026-10-03T09:00:00+08:00"},
    },
}


async def run(_session: RunSession, prepared: Prepared) -> Suspended:
    """Wait; a moment that is past is due at once.

    Raises:
        Invalid: neither or both are given, or it is no moment within a year.
    """
    due_at = _due(prepared.given)
    told = {"waiting": "timer", "until": clock.rfc3339(due_at)}
    return Suspended(
        kind=WaitKind.TIMER, call_id=prepared.call.id, due_at=due_at, result={"result": told}
    )


def _due(given: Mapping[str, Any]) -> datetime:
    if ("seconds" in given) == ("until" in given):
        raise Invalid(FieldError("seconds", N_("Say either how long, or until when.")))
    now = clock.now()
    if "seconds" in given:
        return now + timedelta(seconds=given["seconds"])
    try:
        until = datetime.fromisoformat(given["until"])
    except ValueError:
        until = None
    if until is None or until.tzinfo is None or until > now + LONGEST:
        raise Invalid(FieldError("until", N_("A moment with its zone, within a year.")))
    return until.astimezone(UTC)


TOOL = Tool(
    name="await_timer",
    description=(
        "Pause for `seconds`, or `until` a moment (RFC 3339, with zone). A note tells you when it "
        "is over; a message of this conversation ends it too. Call it alone."
    ),
    schema=SCHEMA,
    run=run,
    waits=True,
)
