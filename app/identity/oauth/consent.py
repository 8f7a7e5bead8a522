"""An authorization request while a person reads it, and what their answer does (SEC-15).

The parameters stay here; the page carries the request's id, which is bound to the session and taken
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from authlib.oauth2.rfc6749.errors import InvalidClientError, OAuth2Error
from sqlalchemy import update
from sqlmodel import Session, col, select

from app.identity import agents, delegations, facts, users
from app.identity.errors import NotUsableNow
from app.identity.models import Agent, AgentStatus, BrowserSession, OAuthClient, OAuthRequest
from app.identity.oauth import clients, server
from app.identity.oauth.adapter import (
    Answer,
    PlainRequest,
    requested_scope,
    resource_of,
)
from app.identity.oauth.grants import CodeGrant, Consent
from app.identity.oauth.standing import Origin
from app.identity.principal import Principal, Scope
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_

PATH = "/oauth/authorize"
LIFE = timedelta(minutes=10)
DELEGATION_LIFE = timedelta(days=90)


class ClientUnknown(AppError):
    """An application nobody knows here, or that was blocked; its errors stay on this page."""

    reason = "invalid_client"
    status = 400
    says = N_("The application that sent you here is not known to this server.")


class BadRedirect(AppError):
    """The answer would go to an address that is not the application's."""

    reason = "invalid_redirect_uri"
    status = 400
    says = N_(
        "The application asked to send the answer to an address it did not register. "
        "Nothing was sent there."
    )


class RequestGone(AppError):
    """The stored request was answered, is too old, or is of another session."""

    reason = "request_gone"
    status = 409
    says = N_("This request was answered already or is too old. Start again in the application.")


@dataclass(frozen=True, slots=True)
class Question:
    """What the page asks: may this application act for this person, how far, until when."""

    request_id: str
    client: OAuthClient
    login: str
    redirect_uri: str
    scopes: Sequence[str]
    resource: str
    agent: Agent | None
    ends_at: datetime


def ask(work: Work, person: Principal, request: PlainRequest) -> Question | Answer:
    """Keep a sound request and put the question; or the error, on its way to the client.

    Raises:
        ClientUnknown, BadRedirect: the error must not go anywhere.
    """
    made = server.of(work)
    grant = server.authorization(made, request)
    try:
        redirect_uri = _validate(grant, person)
    except OAuth2Error as error:
        if not error.redirect_uri:
            raise _page_of(error) from error
        return made.handle_error_response(request, error)
    row = OAuthRequest(
        id=ids.ulid(),
        session_id=person.session_id,
        parameters={"sent": [list(item) for item in _items(request)]},
        expires_at=clock.now() + LIFE,
    )
    work.session.add(row)
    client: OAuthClient = request.client.row  # type: ignore[union-attr]
    return Question(
        request_id=row.id,
        client=client,
        login=users.one(work.session, person.tenant_id, person.user_id).login,
        redirect_uri=redirect_uri,
        scopes=requested_scope(request).split(),
        resource=resource_of(request),
        agent=agent_of(work.session, person, client),
        ends_at=clock.now() + DELEGATION_LIFE,
    )


def answer(work: Work, person: Principal, request_id: str, *, allow: bool) -> Answer:
    """Take the request and send the person back: with a code, or with their no.

    Raises:
        RequestGone: it was taken, has ended or is of another session.
        ClientUnknown, BadRedirect: the client changed meanwhile.
    """
    request = _take(work, person, request_id)
    made = server.of(work)
    grant = server.authorization(made, request)
    try:
        redirect_uri = _validate(grant, person)
    except OAuth2Error as error:
        if not error.redirect_uri:
            raise _page_of(error) from error
        return made.handle_error_response(request, error)
    client: OAuthClient = request.client.row  # type: ignore[union-attr]
    scope = requested_scope(request)
    _record(work, person, client, scope, resource_of(request), allow=allow)
    if not allow:
        return grant.answer(redirect_uri, None)
    agent, _ = agents.external_for(work, person, client)
    delegation = delegations.make_or_widen(
        work, person, agent, scope.split(), clock.now() + DELEGATION_LIFE
    )
    signed = work.session.get_one(BrowserSession, (person.tenant_id, person.session_id))
    origin = Origin(auth_time=signed.auth_time, amr=signed.amr, session_id=signed.id)
    return grant.answer(redirect_uri, Consent(person, delegation, origin))


def agent_of(session: Session, person: Principal, client: OAuthClient) -> Agent | None:
    """The agent the client is in the person's tenant, if anybody let it in before.

    Raises:
        NotUsableNow: an administrator disabled it.
    """
    query = select(Agent).where(Agent.tenant_id == person.tenant_id, Agent.client_id == client.id)
    agent = session.exec(query).first()
    if agent is not None and agent.status != AgentStatus.PUBLISHED:
        raise NotUsableNow(state=agent.status)
    return agent


WORDS = {
    Scope.CATALOG_READ: N_("See which commands you may use"),
    Scope.COMMANDS_READ: N_(
        "Read what you may read, and look at its own calls, runs and approvals"
    ),
    Scope.COMMANDS_INVOKE: N_("Carry out commands in your name; risky ones still ask you first"),
    Scope.EVENTS_READ: N_("Follow what happens, as far as you may see it"),
    Scope.AUDIT_READ: N_("Read the audit trail, as far as you may"),
    Scope.AUN_MESSAGE: N_("Send and receive messages as this agent"),
    Scope.OFFLINE_ACCESS: N_("Stay connected while you are away"),
}


def _validate(grant: CodeGrant, person: Principal) -> str:
    redirect_uri = grant.validate_authorization_request()
    client: OAuthClient = grant.request.client.row  # type: ignore[union-attr]
    if not clients.is_for(client, person.tenant_id):
        raise InvalidClientError(description="The client is unknown here.")
    return redirect_uri


def _page_of(error: OAuth2Error) -> AppError:
    return ClientUnknown() if isinstance(error, InvalidClientError) else BadRedirect()


def _take(work: Work, person: Principal, request_id: str) -> PlainRequest:
    now = clock.now()
    taken = work.session.execute(
        update(OAuthRequest)
        .where(
            col(OAuthRequest.id) == request_id,
            col(OAuthRequest.session_id) == person.session_id,
            col(OAuthRequest.used_at).is_(None),
            col(OAuthRequest.expires_at) > now,
        )
        .values(used_at=now)
        .execution_options(synchronize_session=False)
    )
    if taken.rowcount != 1:  # type: ignore[attr-defined]
        raise RequestGone
    row = work.session.get_one(OAuthRequest, request_id)
    return PlainRequest("GET", PATH, [(name, value) for name, value in row.parameters["sent"]])


def _items(request: PlainRequest) -> list[tuple[str, str]]:
    return [(name, value) for name, values in request.payload.datalist.items() for value in values]


def _record(
    work: Work, person: Principal, client: OAuthClient, scope: str, resource: str, *, allow: bool
) -> None:
    facts.record(
        work,
        "identity.consent.give" if allow else "identity.consent.refuse",
        person,
        target=("client", client.id),
        details={"flow": "code", "scope": scope, "resource": resource},
    )
