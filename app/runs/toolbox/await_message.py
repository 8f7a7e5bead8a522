"""`await_message`: pause until the next message of this lane, after a question or without (RUN-92).

It is the agent's own pause and nobody's duty: any message ends it, and a timeout is a note.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from app.kernel import clock, json
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.runs import speaking
from app.runs.outcome import InCommit, Suspended
from app.runs.session import RunSession
from app.runs.speaking import Speech
from app.runs.states import WaitKind
from app.runs.tool import Prepared, Tool

USUAL_S, LONGEST_S = 1_800, 86_400
LARGEST = 4_096  # bytes of `expects`
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "question": {"type": "string", "minLength": 1, "maxLength": 7_000},
        "choices": {
            "type": "array",
            "maxItems": 10,
            "items": {"type": "string", "minLength": 1, "maxLength": 100},
        },
        "expects": {"type": "object"},
        "timeout_s": {"type": "integer", "minimum": 1, "maximum": LONGEST_S},
    },
}


async def run(session: RunSession, prepared: Prepared) -> InCommit:
    """Make the question ready; it is stored, and the wait begins, with the record of this call.

    Raises:
        Invalid: what is expected is too large to keep.
    """
    given = prepared.given
    if len(json.dumps(given.get("expects"))) > LARGEST:
        raise Invalid(FieldError("expects", N_("This is too large to keep.")))
    question, choices = given.get("question"), given.get("choices", ())
    speech = await speaking.ready(session, text=_asked(question, choices)) if question else None
    return InCommit(partial(_wait, session=session, prepared=prepared, speech=speech))


def _wait(work: Work, session: RunSession, prepared: Prepared, speech: Speech | None) -> Suspended:
    given = prepared.given
    told: dict[str, Any] = {"waiting": "message"}
    if speech is not None:
        said = speaking.say(work, session.claim, session, speech, prepared.call.id)
        told["message_id"] = said.message_id
    return Suspended(
        kind=WaitKind.MESSAGE,
        call_id=prepared.call.id,
        ref=session.facts.lane_id or session.facts.task_id,
        due_at=clock.now() + timedelta(seconds=given.get("timeout_s", USUAL_S)),
        expects=given.get("expects"),
        result={"result": told},
    )


def _asked(question: str, choices: Sequence[str]) -> str:
    lines = [f"{number}. {choice}" for number, choice in enumerate(choices, start=1)]
    return "\n".join((question, "", *lines)) if lines else question


TOOL = Tool(
    name="await_message",
    description=(
        "Pause until the next message of this conversation, whoever of its parties writes it. With "
        "`question` it is sent first; `choices` are listed below it. Nobody owes you an answer: "
        "after `timeout_s` you go on with a note. Call it alone."
    ),
    schema=SCHEMA,
    run=run,
    waits=True,
    effect="local",
)
