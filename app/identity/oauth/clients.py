"""Applications that ask to act for people: how they are known, and what they may use (SEC-13).

A client that a tenant registered is for people of that tenant; a metadata document or a dynamic
registration belongs to nobody here, so a tenant that wants none of it disables the agent instead.
"""

import hmac
from collections.abc import Sequence
from datetime import timedelta

from sqlmodel import Session, select

from app.identity import facts, stops
from app.identity.errors import NotUsableNow
from app.identity.models import (
    Agent,
    AuthMethod,
    ClientSource,
    ClientStatus,
    OAuthClient,
)
from app.identity.oauth import redirects
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

CODE = "authorization_code"
REFRESH = "refresh_token"
DEVICE = "urn:ietf:params:oauth:grant-type:device_code"
EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
GRANT_TYPES = (CODE, REFRESH, DEVICE, EXCHANGE)
UNUSED_FOR = timedelta(hours=24)  # then a client that registered itself ends
USE_NOTED_EVERY = timedelta(hours=1)
REDIRECTS_AT_MOST = 20


def create(
    work: Work,
    actor: Principal,
    *,
    name: str,
    redirect_uris: Sequence[str] = (),
    grant_types: Sequence[str] = (CODE, REFRESH),
    auth_method: AuthMethod = AuthMethod.NONE,
    client_id: str = "",
) -> tuple[OAuthClient, str | None]:
    """A client for the people of the actor's tenant, and its secret, which is shown once.

    Raises:
        Invalid: a redirect URI or a grant will not do, or the id is taken.
    """
    check(redirect_uris, grant_types, auth_method, custom_schemes=True)
    if client_id and work.session.get(OAuthClient, client_id) is not None:
        raise Invalid(FieldError("client_id", N_("Another client has this id.")))
    client, secret = _made(
        work,
        source=ClientSource.REGISTERED,
        name=name,
        redirect_uris=redirect_uris,
        grant_types=grant_types,
        auth_method=auth_method,
        client_id=client_id,
        owner_tenant_id=actor.tenant_id,
    )
    _record(work, actor, client, "identity.client.create", name=(None, name))
    return client, secret


def create_for(work: Work, actor: Principal | None, agent: Agent) -> tuple[OAuthClient, str]:
    """The client of a hosted agent, with which it exchanges tokens; its secret is shown once.

    Raises:
        NotUsableNow: the agent has one.
    """
    if agent.client_id is not None:
        raise NotUsableNow(state="has_client")
    client, secret = _made(
        work,
        source=ClientSource.HOSTED,
        name=agent.name,
        redirect_uris=(),
        grant_types=(EXCHANGE,),
        auth_method=AuthMethod.CLIENT_SECRET_BASIC,
        owner_tenant_id=agent.tenant_id,
    )
    agent.client_id = client.id
    work.session.add(agent)
    work.session.flush()
    _record(work, actor, client, "identity.client.create", name=(None, client.name))
    return client, secret or ""


def register(
    work: Work,
    *,
    name: str,
    redirect_uris: Sequence[str],
    grant_types: Sequence[str],
    auth_method: AuthMethod,
) -> tuple[OAuthClient, str | None]:
    """A client that registered itself; it ends in 24 h unless somebody uses it.

    Raises:
        Invalid: a redirect URI or a grant will not do.
    """
    check(redirect_uris, grant_types, auth_method)
    client, secret = _made(
        work,
        source=ClientSource.DCR,
        name=name,
        redirect_uris=redirect_uris,
        grant_types=grant_types,
        auth_method=auth_method,
    )
    client.expires_at = clock.now() + UNUSED_FOR
    work.session.add(client)
    return client, secret


def grants(redirect_uris: Sequence[str], *, by_code: bool) -> tuple[str, ...]:
    """What an application may use: by an address for its answers, by a code people type, or both.

    With neither it stays one that has to say where the answer goes.
    """
    offered = () if by_code and not redirect_uris else (CODE,)
    return (*offered, REFRESH, *((DEVICE,) if by_code else ()))


def change(
    work: Work,
    actor: Principal,
    client: OAuthClient,
    *,
    name: str,
    redirect_uris: Sequence[str],
    by_code: bool,
) -> None:
    """Rename a registered client, send its answers elsewhere, or let it ask by a code.

    Raises:
        Invalid: a redirect URI will not do.
    """
    usable = grants(redirect_uris, by_code=by_code)
    check(redirect_uris, usable, AuthMethod(client.auth_method), custom_schemes=True)
    _record(
        work,
        actor,
        client,
        "identity.client.change",
        name=(client.name, name),
        redirect_uris=(client.redirect_uris, list(redirect_uris)),
        grant_types=(client.grant_types, list(usable)),
    )
    client.name, client.redirect_uris = name, list(redirect_uris)
    client.grant_types = list(usable)
    work.session.add(client)


def rotate_secret(work: Work, actor: Principal, client: OAuthClient) -> str:
    """A new secret, shown once; the old one is void at once.

    Raises:
        NotUsableNow: it has none.
    """
    if client.auth_method != AuthMethod.CLIENT_SECRET_BASIC:
        raise NotUsableNow(state="public")
    secret = ids.random_token()
    client.secret_sha256 = ids.sha256(secret)
    work.session.add(client)
    _record(work, actor, client, "identity.client.rotate_secret")
    return secret


def block(work: Work, actor: Principal, client: OAuthClient) -> None:
    """End a client and every token family of it, at once.

    Raises:
        NotUsableNow: it is blocked already.
    """
    if client.status == ClientStatus.BLOCKED:
        raise NotUsableNow(state=client.status)
    _move(work, actor, client, ClientStatus.BLOCKED, "identity.client.block")
    query = select(Agent.tenant_id).where(Agent.client_id == client.id).distinct()
    stops.end_client(work, list(work.session.exec(query)), client)


def unblock(work: Work, actor: Principal, client: OAuthClient) -> None:
    """Let a client be used again; tokens that ended stay ended.

    Raises:
        NotUsableNow: it is not blocked.
    """
    if client.status != ClientStatus.BLOCKED:
        raise NotUsableNow(state=client.status)
    _move(work, actor, client, ClientStatus.ACTIVE, "identity.client.unblock")


def of_tenant(session: Session, tenant_id: str) -> Sequence[OAuthClient]:
    """The clients a tenant registered, by name."""
    query = select(OAuthClient).where(OAuthClient.owner_tenant_id == tenant_id)
    return session.exec(query.order_by(OAuthClient.name, OAuthClient.id)).all()


def own(session: Session, tenant_id: str, client_id: str) -> OAuthClient:
    """A client the tenant registered.

    Raises:
        NotFound: there is none with this id, or it is not the tenant's.
    """
    client = session.get(OAuthClient, client_id)
    if client is None or client.owner_tenant_id != tenant_id:
        raise NotFound
    return client


def usable(session: Session, client_id: str) -> OAuthClient | None:
    """The client with this id, if it may be used now."""
    if not client_id.isascii() or not client_id.isprintable():
        return None
    client = session.get(OAuthClient, client_id)
    if client is None or client.status != ClientStatus.ACTIVE:
        return None
    if client.expires_at is not None and client.expires_at <= clock.now():
        return None
    return client


def has_secret(client: OAuthClient, secret: str) -> bool:
    """Whether `secret` is the client's."""
    known = client.secret_sha256 or ""
    return bool(known) and hmac.compare_digest(known, ids.sha256(secret))


def is_for(client: OAuthClient, tenant_id: str) -> bool:
    """Whether people of the tenant may let it act."""
    return client.owner_tenant_id is None or client.owner_tenant_id == tenant_id


def note_use(work: Work, client: OAuthClient) -> None:
    """Remember that tokens were made for it, now and then; one in use does not run out."""
    now = clock.now()
    if client.last_used_at is None or client.last_used_at < now - USE_NOTED_EVERY:
        client.last_used_at, client.expires_at = now, None
        work.session.add(client)


def check(
    redirect_uris: Sequence[str],
    grant_types: Sequence[str],
    auth_method: AuthMethod,
    *,
    custom_schemes: bool = False,
) -> None:
    """Whether a client may be like this.

    Raises:
        Invalid: `redirect_uris` or `grant_types` say why not.
    """
    wrong = [uri for uri in redirect_uris if not redirects.is_acceptable(uri, custom_schemes=True)]
    errors = []
    if wrong:
        errors.append(
            FieldError(
                "redirect_uris",
                N_("Each must be https, or http on this machine, without # or @: %(uri)s"),
                {"uri": wrong[0]},
            )
        )
    elif not custom_schemes and not all(map(redirects.is_acceptable, redirect_uris)):
        errors.append(FieldError("redirect_uris", N_("A scheme of its own must be registered.")))
    elif len(redirect_uris) > REDIRECTS_AT_MOST:
        errors.append(FieldError("redirect_uris", N_("These are too many.")))
    elif CODE in grant_types and not redirect_uris:
        errors.append(FieldError("redirect_uris", N_("Say where the answer goes.")))
    if not grant_types or not set(grant_types) <= set(GRANT_TYPES):
        errors.append(FieldError("grant_types", N_("Choose among the offered grants.")))
    elif EXCHANGE in grant_types and auth_method == AuthMethod.NONE:
        errors.append(FieldError("grant_types", N_("Exchanging tokens takes a client secret.")))
    if errors:
        raise Invalid(*errors)


def _made(
    work: Work,
    *,
    source: ClientSource,
    name: str,
    redirect_uris: Sequence[str],
    grant_types: Sequence[str],
    auth_method: AuthMethod,
    client_id: str = "",
    owner_tenant_id: str | None = None,
) -> tuple[OAuthClient, str | None]:
    secret = ids.random_token() if auth_method == AuthMethod.CLIENT_SECRET_BASIC else None
    client = OAuthClient(
        id=client_id or ids.ulid(),
        source=source,
        name=name,
        redirect_uris=list(redirect_uris),
        grant_types=list(grant_types),
        auth_method=auth_method,
        secret_sha256=ids.sha256(secret) if secret else None,
        owner_tenant_id=owner_tenant_id,
        created_at=clock.now(),
    )
    work.session.add(client)
    work.session.flush()
    return client, secret


def _move(
    work: Work, actor: Principal, client: OAuthClient, status: ClientStatus, action: str
) -> None:
    _record(work, actor, client, action, status=(client.status, status.value))
    client.status = status
    work.session.add(client)


def _record(
    work: Work,
    actor: Principal | None,
    client: OAuthClient,
    action: str,
    **changes: tuple[object, object],
) -> None:
    facts.record(
        work,
        action,
        actor,
        tenant_id=client.owner_tenant_id or "",
        target=("client", client.id),
        changes=changes,
    )
