"""There and back: a browser goes to a provider and returns with proof of who it is (SEC-22).

What has to hold between the two is a row: which browser, which provider, what for. It is taken by
one UPDATE, so a second return finds nothing. The provider's tokens live as long as this call.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal
from urllib.parse import quote, urlencode, urlsplit, urlunsplit

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.identity import sessions, sign_in
from app.identity.models import OidcState, Tenant, TenantStatus
from app.identity.oidc import discovery, id_token, logins
from app.identity.oidc.discovery import Metadata
from app.identity.oidc.errors import ProviderRefused, ProviderUnusable
from app.identity.oidc.id_token import Claims
from app.identity.sessions import Signed
from app.identity.sign_in import Arrival
from app.kernel import clock, db, http, ids, sealing, settings
from app.kernel import json as strict_json
from app.kernel.db import Work
from app.kernel.errors import Invalid, NotFound
from app.kernel.settings import OidcProvider

Purpose = Literal["sign_in", "link", "step_up"]

LIVES = timedelta(minutes=10)
SCOPE = "openid profile email"
PATH = 500  # characters of a path to come back to
ANSWER = 4_096  # characters of a parameter that comes back


@dataclass(frozen=True, slots=True)
class Answer:
    """The parameters a browser brings back."""

    state: str = ""
    code: str = ""
    iss: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """How it ended: where to go on, and the cookie's new secret, if there is one."""

    path: str
    secret: str | None


def provider_of(name: str) -> OidcProvider:
    """The provider the operator calls `name`.

    Raises:
        NotFound: there is none.
    """
    for known, provider in settings.current().oidc.items():
        if known.lower() == name:
            return provider
    raise NotFound


def offered(session: Session, tenant_id: str | None = None) -> list[tuple[str, str]]:
    """Name and label of each provider to sign in with; `tenant_id` narrows to one tenant."""
    slugs = {
        tenant.slug: tenant.id
        for tenant in session.exec(select(Tenant).where(Tenant.status == TenantStatus.ACTIVE))
    }
    return [
        (name.lower(), provider.label or name.title())
        for name, provider in sorted(settings.current().oidc.items())
        if provider.tenant in slugs and tenant_id in {None, slugs[provider.tenant]}
    ]


def label_of(name: str) -> str:
    """What people call a provider, whether it is still configured or not."""
    known = {each.lower(): one for each, one in settings.current().oidc.items()}
    return (known[name].label if name in known else "") or name.title()


async def begin(
    name: str, purpose: Purpose, browser_mark: str, path: str, signed: Signed | None = None
) -> str:
    """Start: returns the provider's address for this browser to go to.

    Raises:
        NotFound: there is no such provider, or not for this person's tenant.
        ProviderUnusable: it cannot be reached, or what it says of itself will not do.
    """
    provider = provider_of(name)
    metadata = await discovery.metadata(provider)
    state, nonce, verifier = ids.random_token(), ids.random_token(), ids.random_token()
    await db.transaction(
        _remember, name, provider, purpose, (state, nonce, verifier), browser_mark, path, signed
    )
    query = {
        "response_type": "code",
        "client_id": provider.client_id,
        "redirect_uri": redirect_uri(name),
        "scope": SCOPE,
        "state": state,
        "nonce": nonce,
        "code_challenge": _challenge(verifier),
        "code_challenge_method": "S256",
    }
    if purpose == "step_up":
        query |= {"prompt": "login", "max_age": "0"}
    parts = urlsplit(metadata.authorization_endpoint)
    joined = "&".join(filter(None, (parts.query, urlencode(query))))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, joined, ""))


async def finish(
    name: str, answer: Answer, browser_mark: str, signed: Signed | None, arrival: Arrival
) -> Outcome:
    """End: checks what came back, and signs in, links or confirms.

    Raises:
        ProviderRefused: one of the checks failed; there is no session.
        NotLinked, LinkedElsewhere, SignInFailed: the proof is good, its account is not.
        ProviderUnusable: the provider did not answer.
    """
    provider = provider_of(name)
    if not answer.state or len(answer.state) > ANSWER or len(answer.code) > ANSWER:
        raise ProviderRefused("state")
    row = await db.transaction(_take, name, answer.state, browser_mark)
    metadata = await discovery.metadata(provider)
    _check_issuer(answer, metadata)
    if answer.error is not None or not answer.code:
        raise ProviderRefused("declined" if answer.error == "access_denied" else "code")
    claims = await _proof(name, provider, metadata, answer.code, row)
    secret: str | None = None
    match row.purpose:
        case "sign_in":
            secret = await db.transaction(_sign_in, row, name, provider, claims, arrival)
        case "link":
            await db.transaction(_link, row, name, claims, signed)
        case _:
            secret = await db.transaction(_confirm, row, claims, signed)
    return Outcome(row.return_path, secret)


def redirect_uri(name: str) -> str:
    """Where the provider sends browsers back to; registered there."""
    return f"{settings.current().origin}/sign-in/{quote(name)}/callback"


def _remember(
    work: Work,
    name: str,
    provider: OidcProvider,
    purpose: Purpose,
    made: tuple[str, str, str],
    browser_mark: str,
    path: str,
    signed: Signed | None,
) -> None:
    state, nonce, verifier = made
    tenant = logins.tenant_of(work.session, provider)
    if signed is not None and signed.tenant.id != tenant.id:
        raise NotFound
    state_sha256 = ids.sha256(state)
    work.session.add(
        OidcState(
            state_sha256=state_sha256,
            tenant_id=tenant.id,
            provider=name,
            nonce=nonce,
            verifier=sealing.seal(verifier.encode(), _label(state_sha256)),
            browser_sha256=ids.sha256(browser_mark),
            purpose=purpose,
            session_id=signed.session.id if signed else None,
            return_path=path[:PATH],
            expires_at=clock.now() + LIVES,
        )
    )


def _take(work: Work, name: str, state: str, browser_mark: str) -> OidcState:
    now, state_sha256 = clock.now(), ids.sha256(state)
    taken = work.session.execute(
        update(OidcState)
        .where(col(OidcState.state_sha256) == state_sha256, col(OidcState.provider) == name)
        .where(col(OidcState.browser_sha256) == ids.sha256(browser_mark))
        .where(col(OidcState.used_at).is_(None), col(OidcState.expires_at) > now)
        .values(used_at=now)
    )
    row = work.session.get(OidcState, state_sha256)
    if taken.rowcount != 1 or row is None:  # type: ignore[attr-defined]
        raise ProviderRefused("state")
    return row


def _check_issuer(answer: Answer, metadata: Metadata) -> None:
    if answer.iss is None:
        if metadata.authorization_response_iss_parameter_supported:
            raise ProviderRefused("iss")
    elif answer.iss != metadata.issuer:
        raise ProviderRefused("iss")


async def _proof(
    name: str, provider: OidcProvider, metadata: Metadata, code: str, row: OidcState
) -> Claims:
    verifier = sealing.unseal(row.verifier, _label(row.state_sha256)).decode()
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": redirect_uri(name),
        "code_verifier": verifier,
    }
    headers = {"accept": "application/json"}
    if provider.client_secret is None:
        form["client_id"] = provider.client_id
    else:
        headers["authorization"] = _basic(
            provider.client_id, provider.client_secret.get_secret_value()
        )
    try:
        async with http.client(discovery.allowed(provider)) as client:
            status, _, body = await http.fetch(
                client, "POST", metadata.token_endpoint, data=form, headers=headers
            )
        tokens: Any = strict_json.loads(body) if status == 200 else None
    except Invalid:
        raise ProviderRefused("token") from None
    except (http.Refused, http.Unreachable) as refused:
        raise ProviderUnusable(refused.rule) from None
    if not isinstance(tokens, dict) or not isinstance(tokens.get("id_token"), str):
        raise ProviderRefused("token")
    access_token = tokens.get("access_token")
    return await id_token.read(
        provider,
        metadata,
        tokens["id_token"],
        row.nonce,
        access_token if isinstance(access_token, str) else None,
    )


def _sign_in(
    work: Work, row: OidcState, name: str, provider: OidcProvider, claims: Claims, arrival: Arrival
) -> str:
    tenant = work.session.get(Tenant, row.tenant_id)
    if tenant is None:
        raise ProviderUnusable("tenant")
    user = logins.known_or_created(work, tenant, name, provider, claims)
    secret, _ = sign_in.begin(work, tenant.id, user.id, sign_in.PROVIDER, arrival)
    return secret


def _link(work: Work, row: OidcState, name: str, claims: Claims, signed: Signed | None) -> None:
    logins.link(work, sessions.person(_same(row, signed)), name, claims)


def _confirm(work: Work, row: OidcState, claims: Claims, signed: Signed | None) -> str:
    same = _same(row, signed)
    login = logins.find(work.session, row.tenant_id, claims.iss, claims.sub)
    if login is None or login.user_id != same.user.id:
        raise ProviderRefused("account")
    began_at = row.expires_at - LIVES
    if claims.auth_time is None or _time(claims.auth_time) < began_at - id_token.LEEWAY:
        raise ProviderRefused("auth_time")
    return sessions.step_up(work, same, [sign_in.PROVIDER])


def _same(row: OidcState, signed: Signed | None) -> Signed:
    """The session that began this, which is still the browser's."""
    if signed is None or row.session_id is None:
        raise ProviderRefused("session")
    if not hmac.compare_digest(signed.session.id, row.session_id):
        raise ProviderRefused("session")
    return signed


def _time(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        raise ProviderRefused("auth_time") from None


def _challenge(verifier: str) -> str:
    digest = hashlib.sha256(verifier.encode()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _basic(client_id: str, client_secret: str) -> str:
    pair = f"{quote(client_id, safe='')}:{quote(client_secret, safe='')}"
    return "Basic " + base64.b64encode(pair.encode()).decode()


def _label(state_sha256: str) -> str:
    return f"oidc_state:{state_sha256}"
