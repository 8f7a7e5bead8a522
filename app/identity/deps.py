"""Who is calling, for endpoints: a person behind the guard, an agent by bearer, or either."""

import contextlib
from typing import Annotated

from fastapi import Depends
from starlette.requests import HTTPConnection, Request

from app.identity import bearer, cookies, csrf, facts, guard, sessions
from app.identity.doors import Door
from app.identity.errors import (
    AmbiguousCredentials,
    CsrfToken,
    HumanSessionRequired,
    SignInRequired,
    StepUpNeeded,
)
from app.identity.guard import SAFE_METHODS, Token
from app.identity.principal import Principal
from app.identity.sessions import Browser, Signed
from app.identity.tokens import Claims
from app.kernel import db, rates, settings
from app.kernel.db import Work
from app.kernel.errors import AppError

FORMS = ("application/x-www-form-urlencoded", "multipart/form-data")


async def signed_of(connection: HTTPConnection) -> Signed | None:
    """The live session of this request, looked up once; writes down that the person is there."""
    if not hasattr(connection.state, "signed"):
        connection.state.signed = await _look_up(connection)
    found: Signed | None = connection.state.signed
    return found


async def person(request: Request) -> Principal:
    """The person of the browser session (SEC-34).

    Raises:
        AmbiguousCredentials, HumanSessionRequired, SignInRequired, CrossSite, CsrfToken: no person,
            or not a request that the person's own page made.
    """
    signed = await signed_of(request)
    try:
        guard.check(
            request.headers.items(),
            has_session=signed is not None,
            method=request.method,
            origin=settings.current().origin,
            token=await _token(request, signed),
        )
    except HumanSessionRequired:
        await _note_an_agent(request)
        raise
    if signed is None:
        raise SignInRequired
    rates.of_process().hit("session", signed.session.tenant_id, signed.session.id)
    return sessions.person(signed)


async def fresh_person(request: Request, who: Annotated[Principal, Depends(person)]) -> Principal:
    """A person who proved within five minutes who they are (SEC-38).

    Raises:
        StepUpNeeded: their sign-in is older; a page asks for it and goes on.
    """
    signed = await signed_of(request)
    if signed is None or not signed.is_fresh:
        raise StepUpNeeded
    return who


async def caller(request: Request) -> Principal:
    """A person by cookie or an agent by bearer, for `/v1` and `/aun/rpc`.

    Raises:
        AmbiguousCredentials: both.
        SignInRequired: neither.
        What `person` and the bearer check raise.
    """
    found = await person_or_claims(request)
    if isinstance(found, Principal):
        return found
    return await bearer.agent_of(request, Door.V1)


async def person_or_claims(request: Request) -> Principal | Claims:
    """A person, or what an agent's token says, for who looks in a transaction whether it stands.

    Raises:
        What `caller` raises, except for what only the database knows of an agent.
    """
    if "authorization" not in request.headers:
        return await person(request)
    if await signed_of(request) is not None:
        raise AmbiguousCredentials
    return await bearer.claims_of(request, Door.V1)


async def before_session(request: Request) -> str:
    """For forms before a session: the same origin rows, and a token of the browser's own cookie.

    Returns the value that marks this browser.

    Raises:
        CrossSite, CsrfToken: another page made the request.
    """
    value = cookies.pre_session(request)
    request.state.csrf = csrf.of_pre_session(value)
    if request.method not in SAFE_METHODS:
        guard.check_origin(request.headers.items(), settings.current().origin)
        if not csrf.is_of_pre_session(await _sent_token(request), value):
            raise CsrfToken
    return value


def browser_of(connection: HTTPConnection) -> Browser:
    """Where the request comes from, for the list of sessions and for throttling."""
    host = connection.client.host if connection.client else ""
    return Browser.of(host, connection.headers.get("user-agent", ""))


Person = Annotated[Principal, Depends(person)]
FreshPerson = Annotated[Principal, Depends(fresh_person)]
Caller = Annotated[Principal, Depends(caller)]
BeforeSession = Annotated[str, Depends(before_session)]


async def _look_up(connection: HTTPConnection) -> Signed | None:
    secret = cookies.session_secret(connection)
    if not secret:
        return None
    signed = await db.read(sessions.find, secret)
    if signed is None:
        return None
    if signed.has_new_epoch:
        made = await db.transaction(sessions.follow_epoch, signed, secret)
        if made is not None:
            cookies.give_session(connection, made)
    if signed.is_due_to_be_seen:
        await db.transaction(sessions.seen, signed.session.tenant_id, signed.session.id)
    return signed


async def _token(request: Request, signed: Signed | None) -> Token:
    if signed is None or request.method in SAFE_METHODS:
        return Token.WRONG
    is_right = csrf.is_of_session(await _sent_token(request), signed.session.id)
    return Token.RIGHT if is_right else Token.WRONG


async def _sent_token(request: Request) -> str:
    if sent := request.headers.get("x-csrf-token"):
        return sent
    if request.headers.get("content-type", "").startswith(FORMS):
        value = (await request.form(max_files=0)).get("_csrf")
        return value if isinstance(value, str) else ""
    return ""


async def _note_an_agent(request: Request) -> None:
    for door in Door:  # whichever it was made for, it knocked at one of people
        with contextlib.suppress(AppError):
            agent = await bearer.agent_of(request, door)
            await db.transaction(_record_an_agent, agent, _route_of(request))
            return


def _record_an_agent(work: Work, agent: Principal, route: str) -> None:
    facts.record(
        work,
        "identity.approval.forged" if "approval" in route else "identity.person.required",
        agent,
        outcome="refused",
        stage="authorize",
        reason="human_session_required",
        details={"route": route},
    )


def _route_of(request: Request) -> str:
    return str(getattr(request.scope.get("route"), "path", ""))
