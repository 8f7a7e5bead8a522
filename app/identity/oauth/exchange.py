"""Token exchange: one agent hands part of its authority to another of the same user (SEC-28)."""

from typing import Any

from authlib.oauth2.rfc6749 import BaseGrant, TokenEndpointMixin
from authlib.oauth2.rfc6749.errors import (
    InvalidGrantError,
    InvalidRequestError,
    InvalidScopeError,
    UnauthorizedClientError,
)
from sqlmodel import select

from app.identity import delegations, facts, tokens
from app.identity.doors import Door
from app.identity.models import Agent, AuthMethod
from app.identity.oauth import clients, standing
from app.identity.oauth.adapter import (
    Grounds,
    InvalidTarget,
    PlainRequest,
    Server,
    resource_of,
)
from app.identity.oauth.standing import Origin
from app.identity.principal import Principal, Scope
from app.identity.tokens import CHAIN, BearerRefused, Claims

ACCESS_TOKEN = "urn:ietf:params:oauth:token-type:access_token"  # noqa: S105 - a type
ACTOR = ("actor_token", "actor_token_type")


class ExchangeGrant(BaseGrant, TokenEndpointMixin):  # type: ignore[misc]
    """A token for the agent that authenticated, on behalf of the user of `subject_token`."""

    GRANT_TYPE = clients.EXCHANGE
    TOKEN_ENDPOINT_AUTH_METHODS = [AuthMethod.CLIENT_SECRET_BASIC.value]  # noqa: RUF012
    request: PlainRequest
    server: Server

    def __init__(self, request: PlainRequest, server: Server) -> None:
        super().__init__(request, server)
        self._subject: Claims
        self._holder: Principal

    def validate_token_request(self) -> None:
        """Check the client, the parameters and the subject token.

        Raises:
            OAuth2Error: one of them will not do.
        """
        client = self.authenticate_token_endpoint_client()
        if not client.check_grant_type(self.GRANT_TYPE):
            raise UnauthorizedClientError("The client has not registered this grant.")
        self.request.client = client
        sent = self.request.payload.data
        if any(name in sent for name in ACTOR):
            raise InvalidRequestError("The actor is who authenticated; send no actor_token.")
        if sent.get("subject_token_type") != ACCESS_TOKEN or not sent.get("subject_token"):
            raise InvalidRequestError("The subject_token must be an access token of ours.")
        if sent.get("requested_token_type", ACCESS_TOKEN) != ACCESS_TOKEN:
            raise InvalidRequestError("Access tokens are the only ones there are.")
        if "audience" in sent:
            raise InvalidTarget()
        self._subject, self._holder = self._read(sent["subject_token"])

    def create_token_response(self) -> tuple[int, dict[str, Any], list[tuple[str, str]]]:
        """A token of the same user, narrower in scope and not longer in time; no refresh token."""
        agent, grounds = self._grounds()
        wanted = self._wanted_scope()
        self.request.user = grounds
        token = self.generate_token(user=grounds, scope=wanted, include_refresh_token=False)
        token["issued_token_type"] = ACCESS_TOKEN
        token["expires_in"] = min(token["expires_in"], tokens.left_s(self._subject))
        self.save_token(token)
        self._record(agent, grounds, token["scope"])
        return 200, token, self.TOKEN_RESPONSE_HEADER

    def save_token(self, _token: dict[str, Any]) -> None:
        """Nothing is used up by an exchange; the client was used."""
        clients.note_use(self.server.work, self.request.client.row)  # type: ignore[union-attr]

    def _read(self, token: str) -> tuple[Claims, Principal]:
        try:
            claims = tokens.read(token, frozenset(door.resource for door in Door))
            return claims, tokens.principal(self.server.work.session, claims)
        except BearerRefused as refused:
            raise InvalidGrantError(description="The subject token is not live.") from refused

    def _grounds(self) -> tuple[Agent, Grounds]:
        subject, session = self._subject, self.server.work.session
        client_id = self.request.client.row.id  # type: ignore[union-attr]
        agent = session.exec(
            select(Agent).where(Agent.tenant_id == subject.tid, Agent.client_id == client_id)
        ).first()
        if agent is None or len(subject.actors) >= CHAIN or not _may_act(subject, agent):
            raise InvalidGrantError(description="This agent may not act here.")
        delegation = delegations.live(session, subject.tid, subject.sub, agent.id)
        if delegation is None or delegation.paused_at is not None:
            raise InvalidGrantError(description="The user does not let this agent act.")
        found = standing.now(
            session,
            tenant_id=subject.tid,
            delegation_id=delegation.id,
            client_id=client_id,
            origin=Origin(
                auth_time=tokens.moment(subject.auth_time),
                amr=subject.amr,
                session_id=subject.sid,
            ),
            family_id=subject.fam,
        )
        if found is None:
            raise InvalidGrantError(description="The user does not let this agent act.")
        stands, delegation = found
        allowed = self._holder.scopes & frozenset(delegation.scopes) - {Scope.OFFLINE_ACCESS}
        resource = resource_of(self.request)
        behind = tokens.behind(stands, subject)
        return agent, Grounds(behind, resource, frozenset(allowed))

    def _wanted_scope(self) -> str:
        """What was asked for, which the subject must have; all it has where nothing was."""
        wanted = str(self.request.payload.scope or "").split()
        if not set(wanted) <= set(self._subject.scope.split()):
            raise InvalidScopeError()
        return " ".join(wanted) or self._subject.scope

    def _record(self, agent: Agent, grounds: Grounds, scope: str) -> None:
        facts.record(
            self.server.work,
            "identity.token.exchange",
            self._holder,
            target=("agent", agent.id),
            details={
                "actors": list(grounds.standing.actors),
                "client_id": grounds.standing.client_id,
                "resource": grounds.resource,
                "scope": scope,
            },
        )


def _may_act(subject: Claims, agent: Agent) -> bool:
    named = (subject.model_extra or {}).get("may_act")
    if named is None:
        return True
    return isinstance(named, dict) and named.get("sub") in {agent.id, agent.client_id}
