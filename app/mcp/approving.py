"""Bringing a person to an approval, in the best way a client has, and going on after it (SEC-63).

An id that comes back is no proof: the pipeline consumes only an approval of this user, this agent
and these bytes, once.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from contextvars import Context as Fresh
from dataclasses import dataclass
from typing import Any, NoReturn

from mcp.server.session import ServerSession
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ElicitRequest,
    ElicitRequestURLParams,
    ElicitResult,
    InputRequiredResult,
)
from sqlmodel import Session

from app.access import standing
from app.commands import approval_digest, approvals, catalogue
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call
from app.commands.refused import Refused
from app.identity.principal import Principal
from app.kernel import clock, db, i18n, json
from app.kernel.i18n import N_
from app.mcp import answers, clients, entered, news
from app.mcp.clients import Context, Way
from app.mcp.entered import Entered
from app.mcp.message import APPROVAL_META

STATE, REQUEST = "approval:", "approval"  # of a request state, and among the requests
REQUIRED = "approval_required"
PATIENCE_S = 20.0  # the page is open: most people decide within seconds
LOOK_S = 2.0  # another process may have seen the decision
REMEMBERED = 64  # open questions of a session
USED = (ApprovalState.CONSUMED, ApprovalState.FAILED)

YOURS = N_("%(name)s (%(code)s) needs your approval.")
ANOTHERS = N_("%(name)s (%(code)s) needs the approval of somebody else in your workspace.")


@dataclass(slots=True)
class _Question:
    """What a session was told to ask about, until the client hears of the decision."""

    approval_id: str
    telling: "asyncio.Task[None]"


class Questions:
    """Open questions of sessions, by session and call; they end with it."""

    def __init__(self) -> None:
        self._asked: dict[str, OrderedDict[str, _Question]] = {}

    def about(self, ctx: Context, params: CallToolRequestParams) -> str | None:
        """The approval this session was sent to for the very same call."""
        asked = self._asked.get(clients.session_of(ctx))
        found = asked.get(_digest(params)) if asked is not None else None
        return found.approval_id if found is not None else None

    def remember(
        self, ctx: Context, who: Principal, params: CallToolRequestParams, approval_id: str
    ) -> None:
        """Match the next such call of this session with the approval, and tell of its decision."""
        digest = _digest(params)
        asked = self._asked.setdefault(clients.session_of(ctx), OrderedDict())
        if (known := asked.pop(digest, None)) is not None:
            if known.approval_id == approval_id:
                asked[digest] = known
                return
            known.telling.cancel()
        # in a context of its own: it outlives the request
        telling = asyncio.create_task(_complete(ctx.session, who, approval_id), context=Fresh())
        telling.add_done_callback(_told)
        asked[digest] = _Question(approval_id, telling)
        if len(asked) > REMEMBERED:
            asked.popitem(last=False)[1].telling.cancel()

    def forget(self, ctx: Context, params: CallToolRequestParams) -> None:
        """The call came to an end."""
        asked = self._asked.get(clients.session_of(ctx), OrderedDict())
        if (known := asked.pop(_digest(params), None)) is not None:
            known.telling.cancel()
        if not asked:
            self._asked.pop(clients.session_of(ctx), None)

    def end_session(self, session_id: str) -> None:
        """There is nobody to tell any more."""
        for question in self._asked.pop(session_id, OrderedDict()).values():
            question.telling.cancel()


questions = Questions()


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person was asked, as it stands.

    Attributes:
        call: with the arguments of the approval.
        changed: those arguments without secrets, if a person changed them first (CMD-28).
    """

    call: Call
    changed: dict[str, Any] | None


async def named(ctx: Context, who: Entered, params: CallToolRequestParams) -> str | None:
    """The approval that a call stands on, if it says or its session knows one.

    A client that comes back from the page waits here for the decision, for some seconds.

    Raises:
        InvalidToken, DelegationPaused: the rights ended meanwhile.
    """
    if (sent := clients.meta_of(ctx, APPROVAL_META)) is not None:
        return sent
    state = params.request_state or ""
    if state.startswith(STATE):
        approval_id = state.removeprefix(STATE)
        if not _turned_away(params):
            await _decision(who.principal, approval_id)
            await entered.look_again(who)
        return approval_id
    known = questions.about(ctx, params) if clients.session_of(ctx) else None
    if known is not None and await db.read(_is_used, who.principal, known):
        questions.forget(ctx, params)  # elsewhere: this is a new call
        return None
    return known


def asked(
    session: Session, who: Principal, approval_id: str, given: Mapping[str, Any]
) -> Asked | None:
    """What an approval asked for; of a replaced one, what was asked in its place (CMD-28).

    That a person changed it counts only for who gives the arguments it was asked for with.
    """
    row = _newest(session, who, approval_id)
    if row is None:
        return None
    is_changed = row.changed_by is not None and any(
        approval_digest.same(approvals.arguments(each), given)
        for each in (row, _first(session, row))
    )
    changed = dict(row.arguments) if is_changed else None
    return Asked(approvals.call_of(session, who, row.id), changed)


async def ask(
    ctx: Context, who: Entered, params: CallToolRequestParams, refused: Refused
) -> CallToolResult | InputRequiredResult:
    """Send the client to the page where a person decides.

    Raises:
        MCPError: an error is how its revision asks.
    """
    way, approval_id = clients.way_of(ctx), str(refused.facts.get("approvalId") or "")
    if not approval_id or way is Way.TEXT or _turned_away(params):
        return answers.refused(refused, who.call_id)
    url = str(refused.facts["approvalUrl"])
    message = await db.read(_message, who.principal, refused.code, i18n.language())
    if way is Way.ERROR:
        questions.remember(ctx, who.principal, params, approval_id)
        _raise(message, url, approval_id)
    shown = ElicitRequestURLParams(message=message, url=url)
    return InputRequiredResult(
        input_requests={REQUEST: ElicitRequest(params=shown)},
        request_state=STATE + approval_id,
    )


def _raise(message: str, url: str, approval_id: str) -> NoReturn:
    shown = ElicitRequestURLParams(message=message, url=url, elicitation_id=approval_id)
    raise UrlElicitationRequiredError([shown], message)


def _turned_away(params: CallToolRequestParams) -> bool:
    """Whether the user would not even open the page; that they did means nothing more."""
    answer = (params.input_responses or {}).get(REQUEST)
    return isinstance(answer, ElicitResult) and answer.action != "accept"


async def _decision(who: Principal, approval_id: str) -> None:
    """Wait until somebody decided, for a while."""
    until_s = asyncio.get_running_loop().time() + PATIENCE_S
    with news.of_process().of(approval_id) as came:
        while await db.read(_is_open, who, approval_id):
            left_s = until_s - asyncio.get_running_loop().time()
            if left_s <= 0:
                return
            try:
                async with asyncio.timeout(min(left_s, LOOK_S)):
                    await came.wait()
            except TimeoutError:
                continue
            came.clear()


def _is_open(session: Session, who: Principal, approval_id: str) -> bool:
    row = _newest(session, who, approval_id)
    if row is None or not standing.stands(session, who):
        return False
    return row.state == ApprovalState.OPEN and row.expires_at > clock.now()


def _newest(session: Session, who: Principal, approval_id: str) -> Approval | None:
    """The approval, or the last of those that took its place; only of this user and agent."""
    row = session.get(Approval, (who.tenant_id, approval_id), populate_existing=True)
    while row is not None and row.state == ApprovalState.SUPERSEDED and row.superseded_by:
        key = (who.tenant_id, row.superseded_by)
        after = session.get(Approval, key, populate_existing=True)
        if after is None or after.replaces != row.id:
            break
        row = after
    return row if row is not None and approvals.is_of(row, who) else None


def _first(session: Session, row: Approval) -> Approval:
    """The approval as the agent asked for it, whatever took its place."""
    while row.replaces is not None:
        before = session.get(Approval, (row.tenant_id, row.replaces))
        if before is None:
            break
        row = before
    return row


def _message(session: Session, who: Principal, code: str, language: str) -> str:
    found = catalogue.of(session, who).find(code)
    name = found.definition.display_name.in_(language) if found is not None else code
    is_yours = found is None or found.definition.approvers is None
    says = i18n.gettext(YOURS if is_yours else ANOTHERS)
    return says % {"name": name, "code": code}


async def _complete(session: ServerSession, who: Principal, approval_id: str) -> None:
    """Tell the client once somebody decided; that the arguments were changed decides nothing."""
    waits_for: str | None = approval_id
    while waits_for is not None:
        with news.of_process().of(waits_for) as came:
            if (after := await db.read(_still_open, who, approval_id)) == waits_for:
                await came.wait()
                after = await db.read(_still_open, who, approval_id)
        waits_for = after
    await session.send_elicit_complete(approval_id)


def _still_open(session: Session, who: Principal, approval_id: str) -> str | None:
    """What has to be decided: the approval, or what took its place."""
    row = _newest(session, who, approval_id)
    return row.id if row is not None and row.state == ApprovalState.OPEN else None


def _is_used(session: Session, who: Principal, approval_id: str) -> bool:
    row = _newest(session, who, approval_id)
    return row is not None and row.state in USED


def _told(telling: "asyncio.Task[None]") -> None:
    if not telling.cancelled():
        telling.exception()  # the session is gone: whoever calls again hears of it anyway


def _digest(params: CallToolRequestParams) -> str:
    said: Mapping[str, Any] = {"tool": params.name, "arguments": params.arguments or {}}
    return hashlib.sha256(json.canonical(said)).hexdigest()
