"""A device asks for a code, a person types it elsewhere and lets the device in (SEC-16)."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from authlib.oauth2.rfc6749.errors import OAuth2Error, UnauthorizedClientError
from sqlalchemy import update
from sqlmodel import Session, col, select

from app.identity import agents, delegations, facts
from app.identity.models import BrowserSession, DeviceCode, DeviceState, OAuthClient
from app.identity.oauth import clients
from app.identity.oauth.adapter import (
    METHODS,
    Answer,
    PlainRequest,
    requested_scope,
    resource_of,
)
from app.identity.oauth.consent import DELEGATION_LIFE
from app.identity.oauth.server import of
from app.identity.principal import Principal
from app.kernel import clock, ids, settings
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_

LETTERS = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels, so no words; 20^8 is 34 bits
LENGTH = 8
LIFE = timedelta(minutes=10)
INTERVAL_S = 5
PAGE = "/oauth/device"


class CodeUnknown(AppError):
    """No device waits with this code, or its time is over."""

    reason = "code_unknown"
    status = 422
    says = N_("No device is waiting with this code. Compare it with the one on the device.")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A device that waits, and the application on it."""

    code: DeviceCode
    client: OAuthClient

    @property
    def scopes(self) -> list[str]:
        """What it asks for."""
        return self.code.scope.split()


def begin(work: Work, request: PlainRequest) -> Answer:
    """The unit of `POST /oauth/device_authorization`: a code for the device, one for its person."""
    server = of(work)
    try:
        request.payload.refuse_repeated()
        client = server.authenticate_client(request, METHODS)
        if not client.check_grant_type(clients.DEVICE):
            raise UnauthorizedClientError("The client has not registered this grant.")
        scope, resource = requested_scope(request), resource_of(request)
    except OAuth2Error as error:
        return server.handle_error_response(request, error)
    device_code, user_code = ids.random_token(), _user_code()
    work.session.add(
        DeviceCode(
            device_sha256=ids.sha256(device_code),
            user_code_sha256=ids.sha256(user_code),
            client_id=client.row.id,
            scope=scope,
            resource=resource,
            interval_s=INTERVAL_S,
            expires_at=clock.now() + LIFE,
        )
    )
    page, shown = settings.current().origin + PAGE, display(user_code)
    body = {
        "device_code": device_code,
        "user_code": shown,
        "verification_uri": page,
        "verification_uri_complete": f"{page}?user_code={shown}",
        "expires_in": int(LIFE.total_seconds()),
        "interval": INTERVAL_S,
    }
    return server.handle_response(200, body, [])


def waiting(session: Session, person: Principal, typed: str) -> Waiting:
    """The device that shows this code.

    Raises:
        CodeUnknown: none does, or it is not for people of this tenant.
    """
    query = select(DeviceCode).where(
        DeviceCode.user_code_sha256 == ids.sha256(normal(typed)),
        DeviceCode.state == DeviceState.OPEN,
        DeviceCode.expires_at > clock.now(),
    )
    code = session.exec(query).first()
    client = clients.usable(session, code.client_id) if code else None
    if code is None or client is None or not clients.is_for(client, person.tenant_id):
        raise CodeUnknown
    return Waiting(code, client)


def decide(work: Work, person: Principal, typed: str, *, allow: bool) -> Waiting:
    """Let the device in, or not; once.

    Raises:
        CodeUnknown: no device waits with this code any more.
    """
    found = waiting(work.session, person, typed)
    if not allow:
        _leave(work, found.code, state=DeviceState.DENIED)
        _record(work, person, found, "identity.consent.refuse")
        return found
    agent, _ = agents.external_for(work, person, found.client)
    delegation = delegations.make_or_widen(
        work, person, agent, found.scopes, clock.now() + DELEGATION_LIFE
    )
    signed = work.session.get_one(BrowserSession, (person.tenant_id, person.session_id))
    _leave(
        work,
        found.code,
        state=DeviceState.APPROVED,
        tenant_id=person.tenant_id,
        user_id=person.user_id,
        session_id=person.session_id,
        delegation_id=delegation.id,
        auth_time=signed.auth_time,
        amr=signed.amr,
    )
    _record(work, person, found, "identity.consent.give")
    return found


def display(user_code: str) -> str:
    """A user code as people read it: `WDJB-MJHT`."""
    return f"{user_code[:4]}-{user_code[4:]}"


def normal(typed: str) -> str:
    """What was typed, as it is stored: capitals, without dashes and spaces."""
    return "".join(letter for letter in typed.upper()[:64] if letter in LETTERS)


def _leave(work: Work, code: DeviceCode, **values: object) -> None:
    taken = work.session.execute(
        update(DeviceCode)
        .where(
            col(DeviceCode.device_sha256) == code.device_sha256,
            col(DeviceCode.state) == DeviceState.OPEN,
        )
        .values(**values)
        .execution_options(synchronize_session=False)
    )
    if taken.rowcount != 1:  # type: ignore[attr-defined]
        raise CodeUnknown


def _record(work: Work, person: Principal, found: Waiting, action: str) -> None:
    facts.record(
        work,
        action,
        person,
        target=("client", found.client.id),
        details={
            "flow": "device",
            "scope": found.code.scope,
            "resource": found.code.resource,
        },
    )


def _user_code() -> str:
    return "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
