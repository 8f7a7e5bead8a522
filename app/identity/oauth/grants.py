"""The grants there are: code with PKCE, refresh and device; `exchange.py` has the fourth (SEC-12).

Each takes what it presents by one conditional UPDATE in `save_token`, which Authlib calls last,
when all else was checked; whoever comes second ends the family (SEC-18).
"""

from datetime import timedelta
from typing import Any

from authlib.oauth2.rfc6749 import grants as core
from authlib.oauth2.rfc6749.errors import (
    AccessDeniedError,
    InvalidClientError,
    InvalidGrantError,
    InvalidRequestError,
    OAuth2Error,
    UnauthorizedClientError,
    UnsupportedResponseTypeError,
)
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc8628 import DeviceCodeGrant as CoreDeviceGrant
from sqlalchemy import update
from sqlmodel import col, select

from app.identity.models import (
    AuthorizationCode,
    Delegation,
    DeviceCode,
    DeviceState,
    RefreshToken,
    TokenFamily,
)
from app.identity.oauth import clients, families, redirects, standing
from app.identity.oauth.adapter import (
    METHODS,
    Answer,
    Client,
    Grounds,
    PlainRequest,
    Server,
    requested_resource,
    requested_scope,
    resource_of,
    same_resource,
    to_client,
)
from app.identity.oauth.standing import Origin
from app.identity.principal import Principal, Scope
from app.kernel import clock, ids
from app.kernel.db import Work

CODE_LIFE = timedelta(seconds=60)
SLOWER_BY_S = 5


class InteractionRequired(OAuth2Error):  # type: ignore[misc]
    """Consent is always shown, so `prompt=none` cannot be served (SEC-15)."""

    error = "interaction_required"
    description = "Consent is asked for every time."


class RequestNotSupported(OAuth2Error):  # type: ignore[misc]
    """Request objects, by value or by reference, are off."""

    error = "request_not_supported"
    description = "Send the parameters themselves."


class Consent:
    """A person let the client act: what the code is stored with."""

    def __init__(self, person: Principal, delegation: Delegation, origin: Origin) -> None:
        self.person = person
        self.delegation = delegation
        self.origin = origin


class S256(CodeChallenge):  # type: ignore[misc]
    """PKCE for every client, S256 and nothing else, refused before a code exists (SEC-20)."""

    DEFAULT_CODE_CHALLENGE_METHOD = "S256"
    SUPPORTED_CODE_CHALLENGE_METHOD = ["S256"]  # noqa: RUF012 - the name is Authlib's
    CODE_CHALLENGE_METHODS = {  # noqa: RUF012
        "S256": CodeChallenge.CODE_CHALLENGE_METHODS["S256"]
    }

    def validate_code_challenge(self, grant: "CodeGrant", redirect_uri: str) -> None:
        """Raises InvalidRequestError unless there is a challenge by S256."""
        sent = grant.request.payload.data
        if not sent.get("code_challenge") or sent.get("code_challenge_method") != "S256":
            raise InvalidRequestError("A code_challenge by S256 is required.")
        super().validate_code_challenge(grant, redirect_uri)


class CodeGrant(core.AuthorizationCodeGrant):  # type: ignore[misc]
    """A code for a consent, and tokens for a code."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    request: PlainRequest
    server: Server

    def validate_authorization_request(self) -> str:
        """The redirect URI of a sound request; what is wrong before it is known stays here.

        Raises:
            OAuth2Error: with `redirect_uri` where the client may hear of it.
        """
        request = self.request
        payload = request.payload
        repeated = [name for name, values in payload.datalist.items() if len(values) > 1]
        client = self.server.query_client(payload.client_id or "")
        if client is None or "client_id" in repeated:
            raise InvalidClientError(description="The client is unknown here.")
        if "redirect_uri" in repeated:
            raise InvalidRequestError("The redirect URI stands twice.")
        redirect_uri = _redirect_uri(client, payload.redirect_uri)
        request.client = client
        try:
            self._check(client)
            self.execute_hook("after_validate_authorization_request_payload", redirect_uri)
            request.scope = requested_scope(request)
            requested_resource(request)
        except OAuth2Error as error:
            error.redirect_uri = redirect_uri
            raise
        return redirect_uri

    def create_authorization_response(self, redirect_uri: str, grant_user: Consent | None) -> Any:
        """Never: `answer` is what gives the code, with `iss`."""
        raise RuntimeError("ask `answer`, which adds `iss`")

    def answer(self, redirect_uri: str, consent: Consent | None) -> Answer:
        """The way back to the client: with a code, or with the person's no."""
        state = self.request.payload.state
        if consent is None:
            denied = AccessDeniedError(description="The person said no.")
            return to_client(redirect_uri, state, **dict(denied.get_body()))
        code = ids.random_token()
        self._keep(code, redirect_uri, consent)
        return to_client(redirect_uri, state, code=code)

    def query_authorization_code(self, code: str, client: Client) -> "_Code | None":
        """The code, also a used one: `save_token` tells them apart."""
        row = self.server.work.session.get(AuthorizationCode, ids.sha256(code))
        if row is None or row.client_id != client.row.id:
            return None
        if row.used_at is None and row.expires_at <= clock.now():
            return None
        return _Code(row)

    def authenticate_user(self, code: "_Code") -> Grounds:
        """What the tokens are made on.

        Raises:
            InvalidGrantError: the user, the delegation or the agent no longer stands.
        """
        row = code.row
        return _grounds(
            self.server.work,
            self.request,
            tenant_id=row.tenant_id,
            delegation_id=row.delegation_id,
            resource=row.resource,
            origin=Origin(auth_time=row.auth_time, amr=row.amr, session_id=row.session_id),
            family_id=ids.ulid(),
        )

    def generate_token(self, *, user: Grounds, scope: str, include_refresh_token: bool) -> Any:
        """Tokens; a refresh token for `offline_access` only (SEC-27)."""
        return super().generate_token(
            user=user,
            scope=scope,
            include_refresh_token=include_refresh_token and _is_offline(scope),
        )

    def save_token(self, token: dict[str, Any]) -> None:
        """Take the code and store the family.

        Raises:
            InvalidGrantError: it was taken; the family it made ends.
        """
        work, row = self.server.work, self.request.authorization_code.row
        grounds: Grounds = self.request.user
        taken = work.session.execute(
            update(AuthorizationCode)
            .where(
                col(AuthorizationCode.code_sha256) == row.code_sha256,
                col(AuthorizationCode.used_at).is_(None),
            )
            .values(used_at=clock.now(), family_id=grounds.standing.family_id)
            .execution_options(synchronize_session=False)
        )
        if taken.rowcount != 1:  # type: ignore[attr-defined]
            query = select(AuthorizationCode.family_id).where(
                AuthorizationCode.code_sha256 == row.code_sha256
            )
            _reused(work, row.tenant_id, work.session.exec(query).one())
        _begin(work, grounds, self.request, row.scope, token)

    def delete_authorization_code(self, code: "_Code") -> None:
        """It stays, used, so that a second use is seen."""

    def _check(self, client: Client) -> None:
        payload = self.request.payload
        if any(len(values) > 1 for name, values in payload.datalist.items() if name != "resource"):
            raise InvalidRequestError("A parameter stands twice.")
        if any("\x00" in name + value for name, value in payload.data.items()):
            raise InvalidRequestError("A parameter is malformed.")
        if {"request", "request_uri"} & payload.data.keys():
            raise RequestNotSupported()
        if payload.response_type != "code":
            raise UnsupportedResponseTypeError("")
        if payload.data.get("response_mode", "query") != "query":
            raise InvalidRequestError("The answer comes in the query.")
        if not client.check_grant_type(clients.CODE):
            raise UnauthorizedClientError("The client has not registered this grant.")
        if "none" in payload.data.get("prompt", "").split():
            raise InteractionRequired()

    def _keep(self, code: str, redirect_uri: str, consent: Consent) -> None:
        person = consent.person
        self.server.work.session.add(
            AuthorizationCode(
                code_sha256=ids.sha256(code),
                client_id=self.request.payload.client_id,
                tenant_id=person.tenant_id,
                user_id=person.user_id,
                session_id=consent.origin.session_id,
                delegation_id=consent.delegation.id,
                redirect_uri=redirect_uri,
                scope=self.request.scope,
                resource=resource_of(self.request),
                code_challenge=self.request.payload.data["code_challenge"],
                auth_time=consent.origin.auth_time,
                amr=list(consent.origin.amr),
                expires_at=clock.now() + CODE_LIFE,
            )
        )


class RefreshGrant(core.RefreshTokenGrant):  # type: ignore[misc]
    """New tokens for a refresh token, which is used up by it."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    INCLUDE_NEW_REFRESH_TOKEN = True
    request: PlainRequest
    server: Server

    def authenticate_refresh_token(self, secret: str) -> "_Refresh | None":
        """The token, also a used one: `save_token` tells them apart."""
        found = families.find_refresh(self.server.work.session, secret)
        if found is None:
            return None
        token, family = found
        if token.used_at is None and token.expires_at <= clock.now():
            return None
        return _Refresh(token, family)

    def authenticate_user(self, refresh: "_Refresh") -> Grounds:
        """What the tokens are made on, read again.

        Raises:
            InvalidGrantError: the family ended, or somebody behind it no longer stands.
        """
        family = refresh.family
        if family.revoked_at is not None:
            raise InvalidGrantError()
        return _grounds(
            self.server.work,
            self.request,
            tenant_id=family.tenant_id,
            delegation_id=family.delegation_id,
            resource=family.resource,
            origin=Origin(auth_time=family.auth_time, amr=family.amr, session_id=family.session_id),
            family_id=family.id,
        )

    def save_token(self, token: dict[str, Any]) -> None:
        """Take the refresh token and store its successor.

        Raises:
            InvalidGrantError: it was taken; the family ends.
        """
        work, refresh = self.server.work, self.request.refresh_token
        if not families.take_refresh(work, refresh.token):
            _reused(work, refresh.family.tenant_id, refresh.family.id)
        families.add_refresh(work, refresh.family, token["refresh_token"], refresh.token.number + 1)
        families.note_use(work, refresh.family)
        _note_use(work, self.request)

    def revoke_old_credential(self, refresh: "_Refresh") -> None:
        """`save_token` did."""


class DeviceGrant(CoreDeviceGrant):  # type: ignore[misc]
    """Tokens for a device that a person let in elsewhere."""

    TOKEN_ENDPOINT_AUTH_METHODS = METHODS
    request: PlainRequest
    server: Server

    def query_device_credential(self, device_code: str) -> "_Device":
        """The device code, also a used one: `save_token` tells them apart.

        Raises:
            InvalidGrantError: there is none.
        """
        row = self.server.work.session.get(DeviceCode, ids.sha256(device_code))
        if row is None:
            raise InvalidGrantError()
        return _Device(row)

    def query_user_grant(self, _user_code: str) -> tuple[Grounds | None, bool] | None:
        """What became of it: nothing yet, or yes or no."""
        row = self.server.work.session.get(
            DeviceCode, ids.sha256(self.request.payload.data["device_code"])
        )
        if row is None or row.state == DeviceState.OPEN:
            return None
        if row.state == DeviceState.DENIED:
            return None, False
        if row.delegation_id is None or row.tenant_id is None or row.auth_time is None:
            raise InvalidGrantError()
        grounds = _grounds(
            self.server.work,
            self.request,
            tenant_id=row.tenant_id,
            delegation_id=row.delegation_id,
            resource=row.resource,
            origin=Origin(auth_time=row.auth_time, amr=row.amr, session_id=row.session_id),
            family_id=ids.ulid(),
            client_id=row.client_id,
        )
        return grounds, True

    def should_slow_down(self, device: "_Device") -> bool:
        """Whether the device asks more often than it was told; then it is told to wait longer."""
        row, now = device.row, clock.now()
        is_hasty = (
            row.polled_at is not None
            and row.polled_at <= now
            and now < row.polled_at + timedelta(seconds=row.interval_s)
        )
        row.polled_at = now
        row.interval_s += SLOWER_BY_S if is_hasty else 0
        self.server.work.session.add(row)
        return is_hasty

    def generate_token(self, *, user: Grounds, scope: str, include_refresh_token: bool) -> Any:
        """Tokens; a refresh token for `offline_access` only (SEC-27)."""
        return super().generate_token(
            user=user,
            scope=scope,
            include_refresh_token=include_refresh_token and _is_offline(scope),
        )

    def save_token(self, token: dict[str, Any]) -> None:
        """Take the device code and store the family.

        Raises:
            InvalidGrantError: it was taken; the family it made ends.
        """
        work, row = self.server.work, self.request.credential.row
        grounds: Grounds = self.request.user
        taken = work.session.execute(
            update(DeviceCode)
            .where(
                col(DeviceCode.device_sha256) == row.device_sha256,
                col(DeviceCode.state) == DeviceState.APPROVED,
            )
            .values(state=DeviceState.USED, family_id=grounds.standing.family_id)
            .execution_options(synchronize_session=False)
        )
        if taken.rowcount != 1:  # type: ignore[attr-defined]
            query = select(DeviceCode.family_id).where(
                DeviceCode.device_sha256 == row.device_sha256
            )
            _reused(work, row.tenant_id, work.session.exec(query).one())
        _begin(work, grounds, self.request, row.scope, token)


class _Code:
    """A stored code, in the words Authlib asks in."""

    code_challenge_method = "S256"

    def __init__(self, row: AuthorizationCode) -> None:
        self.row = row
        self.code_challenge = row.code_challenge

    def get_redirect_uri(self) -> str:
        return self.row.redirect_uri

    def get_scope(self) -> str:
        return self.row.scope


class _Refresh:
    """A refresh token and its family, in the words Authlib asks in."""

    def __init__(self, token: RefreshToken, family: TokenFamily) -> None:
        self.token = token
        self.family = family

    def check_client(self, client: Client) -> bool:
        return self.family.client_id == client.row.id

    def get_scope(self) -> str:
        return self.family.scope


class _Device:
    """A device code, in the words Authlib asks in."""

    def __init__(self, row: DeviceCode) -> None:
        self.row = row

    def get_client_id(self) -> str:
        return self.row.client_id

    def get_scope(self) -> str:
        return self.row.scope

    def get_user_code(self) -> str:
        return ""

    def is_expired(self) -> bool:
        return self.row.state != DeviceState.USED and self.row.expires_at <= clock.now()


def _redirect_uri(client: Client, wanted: str | None) -> str:
    registered = client.row.redirect_uris
    if wanted:
        if not redirects.matches(wanted, registered):
            raise InvalidRequestError("The redirect URI is not one of the client's.")
        return wanted
    if len(registered) != 1:
        raise InvalidRequestError("The redirect URI is missing.")
    return registered[0]


def _grounds(
    work: Work,
    request: PlainRequest,
    *,
    tenant_id: str,
    delegation_id: str,
    resource: str,
    origin: Origin,
    family_id: str,
    client_id: str = "",
) -> Grounds:
    found = standing.now(
        work.session,
        tenant_id=tenant_id,
        delegation_id=delegation_id,
        client_id=client_id or (request.client.row.id if request.client else ""),
        origin=origin,
        family_id=family_id,
    )
    if found is None:
        raise InvalidGrantError()
    stands, delegation = found
    return Grounds(stands, same_resource(request, resource), frozenset(delegation.scopes))


def _begin(
    work: Work, grounds: Grounds, request: PlainRequest, scope: str, token: dict[str, Any]
) -> None:
    families.begin(work, grounds.standing, scope=scope, resource=grounds.resource)
    if "refresh_token" in token:
        family = families.one(
            work.session, grounds.standing.tenant_id, grounds.standing.family_id or ""
        )
        if family is not None:
            families.add_refresh(work, family, token["refresh_token"], 1)
    _note_use(work, request)


def _note_use(work: Work, request: PlainRequest) -> None:
    if request.client is not None:
        clients.note_use(work, request.client.row)


def _reused(work: Work, tenant_id: str | None, family_id: str | None) -> None:
    if tenant_id and family_id:
        families.end(work, tenant_id, family_id, "reuse")
    raise InvalidGrantError(description="It was used before.")


def _is_offline(scope: str) -> bool:
    return Scope.OFFLINE_ACCESS in scope.split()
