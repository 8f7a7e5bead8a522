"""Lists and calls whose shape the SDK has taken before, answered at the door.

A list is one read, a call one transaction, in which its caller is looked up as well. What is no
plain success goes the long way with what came of it in hand: nothing is done twice.
"""

from functools import partial

from sqlalchemy import Connection

from app.commands import catalogue, pacing, pipeline, published
from app.commands.call import Call
from app.commands.catalogue import Catalogue
from app.commands.outcome import Done
from app.commands.pacing import Pace
from app.identity import bearer, tokens
from app.identity.doors import Door
from app.identity.principal import Principal, Scope
from app.identity.tokens import Claims, DelegationPaused, InvalidToken
from app.kernel import db, ids, json
from app.kernel.db import Work
from app.kernel.errors import TooMany
from app.mcp import entered, listing, tools
from app.mcp.entered import Entered
from app.mcp.message import KEY_META, Posted
from app.mcp.shapes import Frame


class _LongWay(Exception):
    """Something has to be asked first; nothing was done."""


async def tools_of(claims: Claims, posted: Posted, frame: Frame) -> tuple[Entered, bytes | None]:
    """Who asks, and the answer: a page of their catalogue; None where the SDK has to say it.

    Raises:
        InvalidToken, DelegationPaused: not everything behind the token stands.
    """
    who, found = await entered.told(db.look(_enter, claims))
    if not who.principal.has_scope(Scope.CATALOG_READ):
        return who, None
    try:
        if found is None:
            found = await db.read(catalogue.of, who.principal)
        page, following = listing.page_of(found, who.language, posted.params.get("cursor"))
    except Exception:  # noqa: BLE001 - the SDK comes to the same, where it is told or logged
        return who, None
    own = {"tools": page}
    if following is not None:
        own["nextCursor"] = json.dumps(following)
    return who, frame.around(posted.sent["id"], own)


async def call(claims: Claims, posted: Posted, frame: Frame) -> Entered | bytes:
    """Run a command: the answer, or who goes on with what came of it.

    Raises:
        InvalidToken, DelegationPaused: not everything behind the token stands.
        TooMany: the agent calls too often.
    """
    call_id = ids.ulid()
    tried: Done | Exception | None = None
    try:
        async with pacing.paced(claims.tid, claims.dlg, posted.tool) as pace:
            if pace.is_full:
                await entered.come_in(claims)  # an end of rights is said first
                pace.count()
            made = partial(_call_of, claims, posted, frame, call_id, pace)
            done = await pipeline.execute_as(made)
        if _is_plain(done):
            return _said(done, posted, frame)
        tried = done
    except _LongWay:
        pass
    except InvalidToken as refused:
        refused.headers = bearer.challenge(refused, Door.MCP)
        raise
    except (DelegationPaused, TooMany):
        raise
    except Exception as fault:  # noqa: BLE001 - it is told, or logged, where calls are answered
        tried = fault
    who = await entered.come_in(claims)
    who.call_id, who.tried = call_id, tried
    return who


def _enter(connection: Connection, claims: Claims) -> tuple[Entered, Catalogue | None]:
    who = entered.enter(connection, claims)
    return who, catalogue.kept(connection, who.principal)


def _call_of(
    claims: Claims, posted: Posted, frame: Frame, call_id: str, pace: Pace, work: Work
) -> Call:
    who = tokens.principal_now(work.connection, claims)
    pace.count()
    if not who.has_scope(Scope.COMMANDS_INVOKE):
        raise _LongWay
    if frame.shows_forms and _is_told_first(work.connection, who, posted.tool):
        raise _LongWay
    key = posted.meta.get(KEY_META)
    return Call(
        code=posted.tool,
        input=posted.params.get("arguments", {}),
        principal=who,
        call_id=call_id,
        idempotency_key=key or f"mcp:{ids.random_token()}",
    )


def _is_told_first(connection: Connection, who: Principal, code: str) -> bool:
    found = published.current(connection, who.tenant_id, code)
    return found is not None and tools.is_told_first(found.definition)


def _is_plain(done: Done) -> bool:
    """Whether nothing is left to wait for, now or when its first call was made."""
    return done.outcome != "dispatched" and not done.result.get("outside")


def _said(done: Done, posted: Posted, frame: Frame) -> bytes:
    data = json.dumps(done.data())
    text = json.dumps(data.decode())
    own = {"content": b'[{"text":' + text + b',"type":"text"}]', "structuredContent": data}
    return frame.around(posted.sent["id"], own)
