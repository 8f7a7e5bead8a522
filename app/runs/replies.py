"""What becomes of a round's closing text: published, reminded of once, or left as thought (RUN-53).

What a model writes is thought; only explicit acts speak, and publishing is one of them.
"""

from sqlmodel import Session, select

from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.runs import attempts, checkpoint, inputs, lease, speaking, writing
from app.runs.checkpoint import At
from app.runs.models.protocol import Entry
from app.runs.outcome import Reply
from app.runs.run_models import SentMessage
from app.runs.session import RunSession
from app.runs.speaking import Speech
from app.runs.states import InputState, RunKind

REMINDER = (
    "Your text was not sent: it is your private thought. If the person should read it, call "
    "send_message; if there is nothing to say, call finish_silently."
)


async def remind(run: RunSession, reply: Reply) -> bool:
    """Tell the model once a round that its text was not sent; True: it has another turn.

    Only in a direct conversation with a person, of a release that says so, and while this scope
    has said nothing; it costs a step.
    """
    if reply.text is None or run.reminded or run.is_last_step:
        return False
    if run.content.closing_text != "remind" or not _is_with_a_person(run):
        return False
    if await db.read(_has_spoken, run):
        return False
    run.reminded = True
    run.transcript.add(await writing.now(run, _remind, run))
    return True


def _remind(work: Work, run: RunSession) -> Entry:
    entry = attempts.write_note(work, run, "remind", REMINDER)
    checkpoint.write(work, run, At(run.round, run.scope))  # once, whoever takes the run over
    return entry


async def ready(run: RunSession, reply: Reply) -> Speech | None:
    """The closing text as a message to be stored with the end of its round, or None."""
    if reply.text is None or run.content.closing_text != "publish":
        return None
    if run.facts.kind == RunKind.DELEGATED:
        return None  # it is what its parent's call is answered
    if run.facts.conversation_id is None or await db.read(_has_spoken, run):
        return None  # this scope said something itself (RUN-46)
    try:
        return await speaking.ready(run, text=reply.text)
    except AppError:
        return None  # nobody there to say it to: it stays thought


async def publish_and_settle(run: RunSession, reply: Reply) -> None:
    """Close what was asked, before the next input gets its receipt (RUN-12): one transaction."""
    speech = await ready(run, reply)
    await writing.now(run, _close_round, run, speech)


def _close_round(work: Work, run: RunSession, speech: Speech | None) -> None:
    lease.hold_unless_stopped(work, run.claim)
    if speech is not None:
        speaking.publish(work, run.claim, run, speech)
    inputs.settle(work, run.claim.tenant_id, run.claim.run_id, InputState.COMPLETED, None)


def _has_spoken(session: Session, run: RunSession) -> bool:
    query = select(SentMessage.message_id).where(
        SentMessage.tenant_id == run.claim.tenant_id,
        SentMessage.run_id == run.claim.run_id,
        SentMessage.scope == run.scope,
        SentMessage.conversation_id == run.facts.conversation_id,
    )
    return session.exec(query.limit(1)).first() is not None


def _is_with_a_person(run: RunSession) -> bool:
    """Whether it is a direct conversation with a person; a sub-run answers its parent."""
    facts, current = run.facts, run.current_input
    if facts.kind == RunKind.DELEGATED or facts.group_id is not None or facts.user_id is None:
        return False
    return current is None or current.is_from_person
