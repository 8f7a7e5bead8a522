"""The only way a run says something: what it may say where is made ready, then stored once.

What a model writes is thought; a message leaves through here alone (RUN-53, AUN-8). The id of a
message follows from run, scope, place and content, and its key stands in the same commit: a crash
can neither lose nor double it, and the same text in one scope is one message (RUN-20, RUN-75).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import ValidationError
from sqlmodel import Session, select

from app.aun import conversations, delivery, identities, mentions
from app.aun.caller import HOSTED_DEVICE, Caller, Door
from app.aun.groups import membership, sending
from app.aun.groups.sending import Ready
from app.aun.methods import message
from app.aun.methods.message import Send
from app.aun.models import IdentityKind, Message
from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.errors import AppError, FieldError, Invalid
from app.kernel.i18n import N_
from app.kernel.prepared import Prepared
from app.runs import places
from app.runs.lease import Claim
from app.runs.places import Place
from app.runs.session import RunSession

TEXT, JSON = "text", "json"
SAYABLE = frozenset({TEXT, JSON})  # what an agent sends: requests are ordinary messages (AUN-4)
Format = Literal["markdown", "plain"]

_KNOWN = Prepared(
    "SELECT message_id FROM sent_message WHERE tenant_id = :tenant_id AND run_id = :run_id "
    "AND scope = :scope AND conversation_id = :conversation_id "
    "AND content_sha256 = :content_sha256"
)
_KEEP = Prepared(
    "INSERT INTO sent_message (tenant_id, run_id, scope, conversation_id, content_sha256, "
    "message_id, call_id, turn, at) VALUES (:tenant_id, :run_id, :scope, :conversation_id, "
    ":content_sha256, :message_id, :call_id, :turn, :now)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """What is about to be said: checked, rendered and sealed; nothing was sent.

    Attributes:
        to: as it was asked for; looked up again when it is said.
        sent_as: the id of the message as its sender names it.
        letter: of a message to one party; `notice` of one to a group.
    """

    to: str | None
    place: Place
    caller: Caller
    sha256: str
    sent_as: str
    letter: message.Ready | None = None
    notice: Ready | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """A message that is stored, by its row; `is_duplicate`: this scope had said it before."""

    message_id: str
    is_duplicate: bool = False


class NotSayable(AppError):
    """A kind of payload that agents never send: it would look like a call of a tool (AUN-4)."""

    reason = "type_not_allowed"
    status = 422
    advice = "fix_arguments"
    says = N_("An agent sends messages of the types text and json, and no others.")


async def ready(
    run: RunSession,
    *,
    text: str,
    type: str = TEXT,
    kind: str | None = None,
    data: Any = None,
    to: str | None = None,
    reply_to: str | None = None,
    format: Format = "markdown",
    input_mode: str | None = None,
) -> Speech:
    """Check, render and seal what the run wants to say; no transaction is open meanwhile.

    Raises:
        NotSayable, Invalid: it is no message that an agent sends.
        NotToBeSpokenTo, NowhereToSpeak: nothing may be said there.
        AunError: it cannot be sent as it is; nothing was sent.
    """
    body = _body(text, type, kind, data, format)
    place, around = await db.read(_around, run, to, reply_to, text)
    payload = {**body, **around}
    if input_mode is not None:
        payload["input_mode"] = input_mode
    sha256 = hashlib.sha256(json.dumps_sorted(body | {"format": None})).hexdigest()
    sent_as = f"r-{_digest(run.claim.run_id, run.scope, place.key, sha256)}"
    caller = _caller(run)
    letter, notice = None, None
    if place.group_id is not None:
        notice = await sending.ready(caller, place.group_id, sent_as, payload, None)
    else:
        letter = await message.prepare(caller, _letter(place.other_aid or "", payload, sent_as))
    return Speech(
        to=to,
        place=place,
        caller=caller,
        sha256=sha256,
        sent_as=sent_as,
        letter=letter,
        notice=notice,
    )


def say(
    work: Work, claim: Claim, run: RunSession, speech: Speech, call_id: str | None = None
) -> Said:
    """Store what was made ready, once; the caller holds the run in this transaction.

    Raises:
        NotToBeSpokenTo, AunError: it may not be said there any more.
    """
    place = places.find(work.session, run, speech.to)  # permission and membership, as of now
    conversation_id = place.conversation_id or conversations.of_pair(
        work, claim.tenant_id, speech.caller.aid, place.other_aid or ""
    )
    key = {
        "tenant_id": claim.tenant_id,
        "run_id": claim.run_id,
        "scope": run.scope,
        "conversation_id": conversation_id,
        "content_sha256": speech.sha256,
    }
    if (before := _KNOWN.run_with(work.connection, key).scalar()) is not None:
        return Said(str(before), is_duplicate=True)
    message_id = _store(work, speech)
    kept = {"message_id": message_id, "call_id": call_id, "turn": run.turn, "now": clock.now()}
    _KEEP.run_with(work.connection, key | kept)
    return Said(message_id)


def publish(work: Work, claim: Claim, run: RunSession, speech: Speech) -> Said | None:
    """Store a closing text; where it may not be said any more it stays a thought, and that is all.

    The end of a run is not undone by a group that somebody left meanwhile.
    """
    try:
        with work.connection.begin_nested():
            return say(work, claim, run, speech)
    except AppError:
        return None


def _body(text: str, type: str, kind: str | None, data: Any, format: Format) -> dict[str, Any]:
    if type not in SAYABLE:
        raise NotSayable
    if not text.strip():
        raise Invalid(FieldError("text", N_("There is nothing to say.")))
    if type == TEXT:
        return {"type": TEXT, "text": text, "format": format}
    if not kind or data is None:
        raise Invalid(FieldError("kind", N_("A json message has a kind and data.")))
    return {"type": JSON, "kind": kind, "data": data, "fallback_text": text}


def _around(
    session: Session, run: RunSession, to: str | None, reply_to: str | None, text: str
) -> tuple[Place, dict[str, Any]]:
    """Where it goes, and what stands beside the words; none of it names an authority (RUN-97)."""
    place = places.find(session, run, to)
    around: dict[str, Any] = {"client_context": {"run": run.claim.run_id}}
    if (replied := _replied(session, run, place, reply_to)) is not None:
        around["reply_to"] = replied
    if place.is_current and run.facts.discussion:
        around["thread_id"] = run.facts.discussion
    if place.group_id is not None:
        aids = membership.aids(session, run.facts.tenant_id, place.group_id)
        others = [aid for aid in aids if aid != run.facts.agent_aid]
        named = identities.display_names(session, run.facts.tenant_id, others)
        if found := mentions.found(text, named):
            around["mentions"] = found
    return place, around


def _replied(
    session: Session, run: RunSession, place: Place, reply_to: str | None
) -> dict[str, Any] | None:
    """What it answers: the message that is named, else the input that is handled (RUN-21)."""
    if reply_to is not None:
        query = select(Message).where(
            Message.tenant_id == run.facts.tenant_id,
            Message.conversation_id == place.conversation_id,
            (Message.id == reply_to) | (Message.message_id == reply_to),
        )
        found = session.exec(query).first()
        if found is None:
            raise Invalid(FieldError("reply_to", N_("There is no such message there.")))
        return {"message_id": found.message_id, "sender_aid": found.sender_aid}
    current = run.current_input
    if current is None or not place.is_current:
        return None
    return {"message_id": current.sent_as, "sender_aid": current.sender_aid}


def _caller(run: RunSession) -> Caller:
    """The agent as the party that sends, also where nobody is known for whom it works."""
    return Caller(
        tenant_id=run.facts.tenant_id,
        aid=run.facts.agent_aid,
        kind=IdentityKind.AGENT,
        device_id=HOSTED_DEVICE,
        door=Door.RUN,
        principal=run.principal,
    )


def _letter(to: str, payload: Mapping[str, Any], sent_as: str) -> Send:
    try:
        return Send(to=to, payload=dict(payload), message_id=sent_as)
    except ValidationError as fault:
        raise Invalid(FieldError("data", N_("This is too large for a message."))) from fault


def _store(work: Work, speech: Speech) -> str:
    caller, sent_as = speech.caller, speech.sent_as
    if speech.notice is not None and speech.place.group_id is not None:
        sending.store(work, caller, speech.place.group_id, sent_as, speech.notice)
    elif speech.letter is not None:
        message.send(work, caller, speech.letter)
    stored = delivery.known(work.connection, caller.tenant_id, caller.aid, sent_as)
    if stored is None:
        raise RuntimeError("what was sent is stored")
    return stored.id


def _digest(run_id: str, scope: int, place: str, sha256: str) -> str:
    return ids.sha256("\n".join((run_id, str(scope), place, sha256)))[:40]
