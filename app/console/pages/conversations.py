"""/conversations: who wrote, what was said, and writing oneself.

A page is read for the AID of the person who looks; whatever that one takes no part in is not
there. Sending is `message.send` or `group.send`, as for every other party: a message is sent when
it is stored, and nothing here waits for an answer or remarks on its absence.
"""

from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session

from app.aun import conversations, identities, mentions, reading, rpc
from app.aun.caller import Caller
from app.aun.models import ID_LENGTH
from app.aun.reading import LONGEST_PAGE, Opened, Shown
from app.console import flash, forms, profile, refusals, transcript
from app.console.forms import Form
from app.console.live.conversations import appended
from app.console.nav import NavItem
from app.console.params import LARGEST, ChosenId, Id, Search
from app.console.profile import Card
from app.console.view import render, url
from app.identity.deps import Person
from app.identity.principal import Principal
from app.kernel import clock, db, ids
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.runs import reading as runs
from app.runs.states import Mode

router = APIRouter()
NAV = NavItem(N_("Chats"), "/conversations", "chat", order=10, badge="unread")

LONGEST = 100_000  # characters of a message
RECALLED = flash.notice(N_("The message was taken back."))
TOO_LATE = flash.notice(N_("A message can be taken back for two minutes only."), tone="warn")
Before = Annotated[int | None, Query(ge=1, le=LARGEST)]
Prepared = Annotated[str, Query(max_length=1_000)]
To = Annotated[str, Query(max_length=200)]


class Draft(BaseModel):
    """A message as the composer sends it; `client_id` makes a second press no second message."""

    model_config = ConfigDict(extra="forbid")

    text: Annotated[str, Field(max_length=LONGEST)]
    client_id: Annotated[str, Field(max_length=ID_LENGTH, pattern=r"^[A-Za-z0-9_-]+$")]
    reply_to: Annotated[str, Field(max_length=26)] = ""
    input_mode: Mode = Mode.STEERING


class First(Draft):
    """The first message to somebody."""

    to: Annotated[str, Field(max_length=200)]


class Reached(BaseModel):
    """How far somebody has read."""

    model_config = ConfigDict(extra="forbid")

    seq: Annotated[int, Field(ge=0, le=LARGEST)]


class Nothing(BaseModel):
    """A form of one button."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes, and what it replies to."""

    caller: Caller
    opened: Opened
    replied: Shown | None


@router.get("/conversations")
async def index(request: Request, person: Person, before: Before = None) -> HTMLResponse:
    """The conversations of the reader, the newest first."""
    context = await db.read(_listing, person, before)
    caller = await db.read(identities.caller_of_user, person)
    invited = await rpc.invoke(caller, "group.list_my_invites", {})
    context |= {"before": before, "invites": invited["items"]}
    return render(request, "conversations/index.html", **context)


@router.get("/conversations/new")
async def new(
    request: Request, person: Person, q: Search = "", to: To = "", text: Prepared = ""
) -> Response:
    """Whom to write to; with `to` an empty conversation, which begins with its first message.

    `text` stands in the composer, and is sent by nobody but the person.
    """
    if not to:
        context = await db.read(_candidates, person, q)
        return render(request, "conversations/new.html", q=q, **context)
    known, context = await db.read(_beginning, person, to)
    if known is not None:
        return flash.see_other(url(f"/conversations/{known}", text=text))
    return render(request, "conversations/begin.html", form=_blank(text=text), **context)


@router.post("/conversations")
async def begin(request: Request, person: Person) -> Response:
    """The first message to somebody makes the conversation."""
    form = await forms.read(request, First)
    if form.data is None:
        _, context = await db.read(_beginning, person, form.value("to"))
        return render(request, "conversations/begin.html", status_code=422, form=form, **context)
    caller = await db.read(identities.caller_of_user, person)
    sent = form.data
    params = {"to": sent.to, "payload": _payload(sent.text), "message_id": sent.client_id}
    await rpc.invoke(caller, "message.send", params)
    made = await db.read(conversations.id_of_pair, caller.tenant_id, caller.aid, sent.to)
    return flash.see_other(f"/conversations/{made}")


@router.get("/conversations/{conversation_id}")
async def show(
    request: Request,
    person: Person,
    conversation_id: Id,
    before: Before = None,
    reply: ChosenId = "",
    again: ChosenId = "",
    text: Prepared = "",
) -> HTMLResponse:
    """One conversation, with its newest messages, or those before one of them.

    With `again` the composer holds the text of a message whose run did not finish, with `text`
    what a link prepared.
    """
    if refusals.is_htmx(request):
        return await _older(request, person, conversation_id, before)
    form = _blank(text=text, reply_to=reply) if text else None
    if again:
        text = await db.read(_own_text, person, conversation_id, again)
        form = _blank(text=text, reply_to=reply)
    return await _draw(request, person, conversation_id, before=before, reply=reply, form=form)


@router.get("/conversations/{conversation_id}/connection")
async def connection(request: Request, person: Person, conversation_id: Id) -> Response:
    """Look now whether the other side is there; no message is remarked on (UI-8)."""
    card = await db.read(_checked, person, conversation_id)
    if not refusals.is_htmx(request):
        return flash.see_other(f"/conversations/{conversation_id}")
    return render(request, "conversations/_connection.html", card=card, checked_at=clock.now())


@router.post("/conversations/{conversation_id}/messages")
async def send(request: Request, person: Person, conversation_id: Id) -> Response:
    """Send a message; the same client id once more sends nothing twice."""
    form = await forms.read(request, Draft)
    if form.data is None:
        if refusals.is_htmx(request):
            raise Invalid(*form.errors)
        return await _draw(request, person, conversation_id, form=form, status_code=422)
    target = await db.read(_target, person, conversation_id, form.data.reply_to)
    await _send(target, form.data)
    if not refusals.is_htmx(request):
        return flash.see_other(f"/conversations/{conversation_id}#end")
    partials = await db.read(_sent, target.caller, form.data.client_id)
    return HTMLResponse(partials, headers={"Cache-Control": "no-store"})


@router.post("/conversations/{conversation_id}/messages/{message_id}/recall")
async def recall(
    request: Request, person: Person, conversation_id: Id, message_id: Id
) -> RedirectResponse:
    """Take a message of one's own back within two minutes; that it was sent stays."""
    form = await forms.read(request, Nothing)
    if form.data is None:
        raise Invalid(*form.errors)
    caller, opened, message = await db.read(_own_message, person, conversation_id, message_id)
    params: dict[str, Any] = {"message_ids": [message.message_id]}
    if opened.line.group_id is None:
        done = await rpc.invoke(caller, "message.recall", params)
    else:
        params |= {"group_id": opened.line.group_id}
        done = await rpc.invoke(caller, "group.recall", params)
    said = RECALLED if done.get("recalled") else TOO_LATE
    return flash.see_other(f"/conversations/{conversation_id}", said)


@router.get("/conversations/{conversation_id}/messages/{message_id}/source")
async def source(person: Person, conversation_id: Id, message_id: Id) -> PlainTextResponse:
    """A message as it was written, to be copied (UI-61)."""
    text = await db.read(_source, person, conversation_id, message_id)
    return PlainTextResponse(text, headers={"Cache-Control": "no-store"})


@router.post("/conversations/{conversation_id}/read-position")
async def read_position(request: Request, person: Person, conversation_id: Id) -> Response:
    """Note how far the reader has read; backwards does nothing."""
    form = await forms.read(request, Reached)
    if form.data is None:
        raise Invalid(*form.errors)
    caller, opened = await db.read(_opened, person, conversation_id)
    seq = min(form.data.seq, opened.line.seq)  # what is not there yet cannot be read
    await db.transaction(conversations.read, caller.tenant_id, conversation_id, caller.aid, seq)
    if refusals.is_htmx(request):
        return Response(status_code=204)
    return flash.see_other(f"/conversations/{conversation_id}")


async def _draw(
    request: Request,
    person: Principal,
    conversation_id: str,
    *,
    before: int | None = None,
    reply: str = "",
    form: Form[Draft] | None = None,
    status_code: int = 200,
) -> HTMLResponse:
    context = await db.read(_showing, person, conversation_id, before, reply)
    return render(
        request,
        "conversations/show.html",
        status_code=status_code,
        form=form or _blank(reply_to=reply),
        before=before,
        now=clock.now(),
        **context,
    )


async def _older(
    request: Request, person: Principal, conversation_id: str, before: int | None
) -> HTMLResponse:
    context = await db.read(_earlier, person, conversation_id, before)
    return render(
        request, "conversations/_messages.html", conversation_id=conversation_id, **context
    )


async def _send(target: Target, sent: Draft) -> None:
    line = target.opened.line
    payload = _payload(sent.text)
    if sent.input_mode != Mode.STEERING:  # what a person writes is that by itself (RUN-9)
        payload["input_mode"] = sent.input_mode.value
    if target.replied is not None:
        message = target.replied
        payload["reply_to"] = {"message_id": message.message_id, "sender_aid": message.sender}
    params: dict[str, Any] = {"payload": payload, "message_id": sent.client_id}
    if line.group_id is None:
        await rpc.invoke(target.caller, "message.send", params | {"to": line.other})
        return
    if found := mentions.found(sent.text, target.opened.parties):
        payload["mentions"] = found
    await rpc.invoke(target.caller, "group.send", params | {"group_id": line.group_id})


def _payload(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _blank(**values: str) -> Form[Draft]:
    return forms.blank(Draft, client_id=f"c-{ids.ulid().lower()}", **values)


def _listing(session: Session, person: Principal, before: int | None) -> dict[str, Any]:
    caller = identities.caller_of_user(session, person)
    lines, more = reading.listed(session, caller.tenant_id, caller.aid, before)
    return {"lines": lines, "more": more}


def _candidates(session: Session, person: Principal, q: str) -> dict[str, Any]:
    caller = identities.caller_of_user(session, person)
    return {"parties": reading.parties(session, caller.tenant_id, caller.aid, q)}


def _beginning(session: Session, person: Principal, to: str) -> tuple[str | None, dict[str, Any]]:
    """The conversation there is with somebody already; and who they are."""
    caller = identities.caller_of_user(session, person)
    party = reading.party(session, caller.tenant_id, to)
    if party is None:
        raise NotFound
    known = conversations.id_of_pair(session, caller.tenant_id, caller.aid, to)
    return known, {
        "party": party,
        "card": profile.of(session, caller.tenant_id, to),
        **_listing(session, person, None),
    }


def _opened(session: Session, person: Principal, conversation_id: str) -> tuple[Caller, Opened]:
    caller = identities.caller_of_user(session, person)
    opened = reading.opened(session, caller.tenant_id, caller.aid, conversation_id)
    if opened is None:
        raise NotFound
    return caller, opened


def _earlier(
    session: Session, person: Principal, conversation_id: str, before: int | None
) -> dict[str, Any]:
    caller, _ = _opened(session, person, conversation_id)
    page = reading.page(session, caller.tenant_id, caller.aid, conversation_id, before=before)
    if page is None:
        raise NotFound
    pieces, view = transcript.whole(
        session, person, conversation_id, page, before=before, is_marked=False
    )
    return {"page": page, "transcript": pieces, "view": view}


def _own_text(session: Session, person: Principal, conversation_id: str, row_id: str) -> str:
    """What an own message said; nothing where it was taken back."""
    message = _own_message(session, person, conversation_id, row_id)[2]
    return "" if message.is_recalled else message.text


def _source(session: Session, person: Principal, conversation_id: str, row_id: str) -> str:
    caller, _ = _opened(session, person, conversation_id)
    message = _message(session, caller, conversation_id, row_id)
    if message is None or message.is_recalled or not message.text:
        raise NotFound
    return message.text


def _showing(
    session: Session, person: Principal, conversation_id: str, before: int | None, reply: str
) -> dict[str, Any]:
    caller, opened = _opened(session, person, conversation_id)
    page = reading.page(session, caller.tenant_id, caller.aid, conversation_id, before=before)
    if page is None:
        raise NotFound
    other = opened.line.other
    replied = _message(session, caller, conversation_id, reply) if reply else None
    pieces, view = transcript.whole(session, person, conversation_id, page, before=before)
    tenant_id, user_id = person.tenant_id, person.user_id
    return {
        "conversation_id": conversation_id,
        "opened": opened,
        "own_aid": caller.aid,
        "page": page,
        "transcript": pieces,
        "view": view,
        "strips": runs.live_in(session, tenant_id, user_id, conversation_id),
        "lanes": runs.lanes(session, tenant_id, user_id, conversation_id),
        "replied": replied,
        "card": profile.of(session, caller.tenant_id, other) if other else None,
        "longest_page": LONGEST_PAGE,
        **_listing(session, person, None),
    }


def _checked(session: Session, person: Principal, conversation_id: str) -> Card:
    caller, opened = _opened(session, person, conversation_id)
    card = profile.of(session, caller.tenant_id, opened.line.other or "")
    if card is None:
        raise NotFound
    return card


def _target(session: Session, person: Principal, conversation_id: str, reply: str) -> Target:
    caller, opened = _opened(session, person, conversation_id)
    replied = _message(session, caller, conversation_id, reply) if reply else None
    if reply and replied is None:
        raise Invalid(FieldError("reply_to", N_("What this replies to is not here any more."), {}))
    return Target(caller, opened, replied)


def _own_message(
    session: Session, person: Principal, conversation_id: str, message_id: str
) -> tuple[Caller, Opened, Shown]:
    caller, opened = _opened(session, person, conversation_id)
    message = _message(session, caller, conversation_id, message_id)
    if message is None or not message.is_own:
        raise NotFound
    return caller, opened, message


def _message(session: Session, caller: Caller, conversation_id: str, row_id: str) -> Shown | None:
    found = reading.message(session, caller.tenant_id, caller.aid, row_id)
    return found if found is not None and found.conversation_id == conversation_id else None


def _sent(session: Session, caller: Caller, message_id: str) -> str:
    """What the stream brings the sender, for the answer: whichever is first draws it."""
    found = reading.row_of(session, caller.tenant_id, caller.aid, message_id)
    if found is None:
        raise NotFound
    return "".join(map(str, appended(session, caller.tenant_id, caller.aid, found[0])))
