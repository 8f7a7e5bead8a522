"""`send_message`: say something, to whom a run may speak (RUN-94)."""

from functools import partial

from app.kernel.db import Work
from app.runs import speaking
from app.runs.outcome import Done, InCommit, Result
from app.runs.session import RunSession
from app.runs.speaking import Speech
from app.runs.tool import Prepared, Tool

LONGEST = 8_000  # characters
DESCRIPTION = (
    "Send a message. Nothing you write reaches anybody unless you send it. Without `to` it goes to "
    "the current conversation. `to` is a conversation id, or the AID of the person you work for, "
    "of a group where both of you are, or of an agent you may contact. Ask other agents in plain "
    "text, or in json with a kind; nobody owes you an answer."
)
SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["text"],
    "properties": {
        "text": {"type": "string", "minLength": 1, "maxLength": LONGEST},
        "type": {"type": "string", "enum": ["text", "json"]},
        "kind": {"type": "string", "minLength": 1, "maxLength": 128},
        "data": {"type": ["object", "array"]},
        "to": {"type": "string", "minLength": 1, "maxLength": 200},
        "reply_to": {"type": "string", "minLength": 1, "maxLength": 128},
        "format": {"type": "string", "enum": ["markdown", "plain"]},
        "input_mode": {"type": "string", "enum": ["steering", "follow_up"]},
    },
}


async def run(session: RunSession, prepared: Prepared) -> InCommit:
    """Make the message ready; it is stored with the record of this call."""
    speech = await speaking.ready(session, **prepared.given)
    return InCommit(partial(_say, session=session, speech=speech, call_id=prepared.call.id))


def _say(work: Work, session: RunSession, speech: Speech, call_id: str) -> Result:
    said = speaking.say(work, session.claim, session, speech, call_id)
    told: dict[str, object] = {"message_id": said.message_id}
    if said.is_duplicate:
        told["duplicate"] = True
    return Done(result=told)


TOOL = Tool(
    name="send_message",
    description=DESCRIPTION,
    schema=SCHEMA,
    run=run,
    effect="local",
)
