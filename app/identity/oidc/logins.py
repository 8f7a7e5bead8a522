"""Accounts of other providers: (issuer, subject) is who somebody is, never an address (SEC-23)."""

import re

from sqlmodel import Session, select

from app.identity import facts, orgs, roles, users, ways_in
from app.identity.models import ExternalLogin, Org, Tenant, TenantStatus, User, UserStatus
from app.identity.oidc.errors import LinkedElsewhere, NotLinked, ProviderUnusable
from app.identity.oidc.id_token import Claims
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.settings import OidcProvider

TRIES = 100  # logins that may be taken


def find(session: Session, tenant_id: str, issuer: str, subject: str) -> ExternalLogin | None:
    """The linked account, if it is linked."""
    return session.exec(
        select(ExternalLogin).where(
            ExternalLogin.tenant_id == tenant_id,
            ExternalLogin.issuer == issuer,
            ExternalLogin.subject == subject,
        )
    ).first()


def known_or_created(
    work: Work, tenant: Tenant, name: str, provider: OidcProvider, claims: Claims
) -> User:
    """The person this account is linked to, or a new one where the operator wants that.

    Raises:
        NotLinked: it is linked to nobody, and nobody is made.
        ProviderUnusable: the role or organisation for new people does not exist.
    """
    login = find(work.session, tenant.id, claims.iss, claims.sub)
    if login is None:
        if provider.accounts != "create":
            raise NotLinked
        user = _create(work, tenant, provider, claims)
        login = _link(work, None, user, name, claims)
    login.last_used_at = clock.now()
    work.session.add(login)
    return users.one(work.session, tenant.id, login.user_id)


def link(work: Work, person: Principal, name: str, claims: Claims) -> None:
    """Link the account to the person, who is signed in and fresh.

    Raises:
        LinkedElsewhere: it is linked already, to them or to somebody else.
    """
    user = users.one(work.session, person.tenant_id, person.user_id)
    if find(work.session, user.tenant_id, claims.iss, claims.sub) is not None:
        raise LinkedElsewhere
    _link(work, person, user, name, claims)


def unlink(work: Work, person: Principal, login_id: str) -> None:
    """Take an account of the person's own off.

    Raises:
        NotFound: there is none with this id, or it is somebody else's.
        LastWayIn: the person could not sign in again.
    """
    login = own(work.session, person, login_id)
    user = users.one(work.session, person.tenant_id, person.user_id)
    ways_in.keep_one_besides(work.session, user, login.id)
    facts.record(
        work,
        "identity.login.unlink",
        person,
        target=("external_login", login.id),
        changes={"issuer": (login.issuer, None), "subject": (login.subject, None)},
    )
    work.session.delete(login)


def own(session: Session, person: Principal, login_id: str) -> ExternalLogin:
    """A linked account of the person's own.

    Raises:
        NotFound: there is none with this id, or it is somebody else's.
    """
    login = session.get(ExternalLogin, (person.tenant_id, login_id))
    if login is None or login.user_id != person.user_id:
        raise NotFound
    return login


def tenant_of(session: Session, provider: OidcProvider) -> Tenant:
    """The tenant whose people sign in with this provider.

    Raises:
        ProviderUnusable: there is none, or it is not active.
    """
    tenant = session.exec(select(Tenant).where(Tenant.slug == provider.tenant)).first()
    if tenant is None or tenant.status != TenantStatus.ACTIVE:
        raise ProviderUnusable("tenant")
    return tenant


def _link(
    work: Work, person: Principal | None, user: User, name: str, claims: Claims
) -> ExternalLogin:
    login = ExternalLogin(
        tenant_id=user.tenant_id,
        id=ids.ulid(),
        user_id=user.id,
        provider=name,
        issuer=claims.iss,
        subject=claims.sub,
        linked_by_session=person.session_id if person else None,
        linked_at=clock.now(),
    )
    work.session.add(login)
    work.session.flush()
    facts.record(
        work,
        "identity.login.link",
        person,
        tenant_id=user.tenant_id,
        user_id=user.id,
        target=("external_login", login.id),
        changes={"issuer": (None, claims.iss), "subject": (None, claims.sub)},
    )
    return login


def _create(work: Work, tenant: Tenant, provider: OidcProvider, claims: Claims) -> User:
    role = roles.by_code(work.session, tenant.id, provider.role)
    org = _org(work.session, tenant.id, provider.org)
    if role is None or org is None:
        raise ProviderUnusable("accounts")
    user = users.create(
        work,
        None,
        org,
        login=_free_login(work.session, tenant.id, claims),
        display_name=(claims.name or claims.preferred_username or "").strip()[:200],
        email=claims.email[:254] if claims.email else None,
        status=UserStatus.ACTIVE,
    )
    user.email_verified = bool(claims.email) and claims.email_verified
    roles.assign(work, None, user, role, org)
    return user


def _org(session: Session, tenant_id: str, named: str) -> Org | None:
    if not named:
        return orgs.root(session, tenant_id)
    query = select(Org).where(Org.tenant_id == tenant_id)
    found = session.exec(query.where((Org.path == named) | (Org.name == named))).all()
    return found[0] if len(found) == 1 else None


def _free_login(session: Session, tenant_id: str, claims: Claims) -> str:
    """A login that nobody has: whoever has one with this name already is not this person."""
    wanted = claims.preferred_username or (claims.email or "").partition("@")[0] or claims.name
    base = re.sub(r"[^\w.@+-]+", "-", users.fold(wanted or "")).strip("-.")[:80] or "user"
    for number in range(1, TRIES):
        login = base if number == 1 else f"{base}-{number}"
        if users.by_login(session, tenant_id, login) is None:
            return login
    return f"{base}-{ids.ulid().lower()}"[-users.LOGIN_LENGTH :]
