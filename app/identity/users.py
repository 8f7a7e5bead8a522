"""People of a tenant: invited, changed, disabled and enabled again; found by id or login."""

import unicodedata
from dataclasses import dataclass
from functools import cache
from typing import Literal
from zoneinfo import available_timezones

from sqlmodel import Session, select

from app.identity import epochs, facts, roles, search, stops
from app.identity.errors import NotUsableNow
from app.identity.models import Org, OrgStatus, User, UserStatus
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.i18n import LANGUAGES, N_

LOGIN_LENGTH = 100  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Preferences:
    """What a person chooses for themselves."""

    display_name: str
    locale: str | None
    time_zone: str | None
    theme: Literal["system", "light", "dark"]


def create(
    work: Work,
    actor: Principal | None,
    org: Org,
    *,
    login: str,
    display_name: str,
    email: str | None = None,
    status: UserStatus = UserStatus.INVITED,
) -> User:
    """A new person at `org`, who can sign in once they have a credential.

    Raises:
        Invalid: the login is taken or malformed, or the organisation is closed.
    """
    name = normal_login(login)
    if by_login(work.session, org.tenant_id, name):
        raise Invalid(FieldError("login", N_("Somebody else has this login.")))
    _open_org(org)
    user = User(
        tenant_id=org.tenant_id,
        id=ids.ulid(),
        login=name,
        display_name=display_name.strip() or name,
        email=email or None,
        org_id=org.id,
        status=status,
        created_at=clock.now(),
    )
    work.session.add(user)
    work.session.flush()
    facts.record(
        work,
        "identity.user.create",
        actor,
        tenant_id=user.tenant_id,
        target=("user", user.id),
        changes={
            "login": (None, name),
            "display_name": (None, user.display_name),
            "org_id": (None, org.id),
            "status": (None, str(status)),
        },
    )
    return user


def change(
    work: Work,
    actor: Principal,
    user: User,
    *,
    display_name: str,
    email: str | None,
    org: Org,
    expected_version: int,
) -> None:
    """Change what an administrator may change of a person.

    Raises:
        Conflict: somebody changed it meanwhile.
        Invalid: the organisation is closed.
    """
    if user.version != expected_version:
        raise Conflict
    moved = org.id != user.org_id
    if moved:
        _open_org(org)
    facts.record(
        work,
        "identity.user.change",
        actor,
        target=("user", user.id),
        changes={
            "display_name": (user.display_name, display_name),
            "email": (user.email, email or None),
            "org_id": (user.org_id, org.id),
        },
    )
    if (email or None) != user.email:
        user.email, user.email_verified = email or None, False
    user.display_name, user.org_id = display_name, org.id
    user.version += 1
    work.session.add(user)
    if moved:
        epochs.raise_for(work, user.tenant_id, [user.id], "org_changed")


def prefer(work: Work, actor: Principal, chosen: Preferences) -> User:
    """Keep a person's own choices.

    Raises:
        Invalid: a language or zone that does not exist.
    """
    if chosen.locale is not None and chosen.locale not in LANGUAGES:
        raise Invalid(FieldError("locale", N_("Choose one of the languages.")))
    if chosen.time_zone is not None and chosen.time_zone not in time_zones():
        raise Invalid(FieldError("time_zone", N_("There is no such time zone.")))
    user = one(work.session, actor.tenant_id, actor.user_id)
    facts.record(
        work,
        "identity.user.prefer",
        actor,
        target=("user", user.id),
        changes={
            "display_name": (user.display_name, chosen.display_name),
            "locale": (user.locale, chosen.locale),
            "time_zone": (user.time_zone, chosen.time_zone),
            "theme": (user.theme, chosen.theme),
        },
    )
    user.display_name, user.locale = chosen.display_name, chosen.locale
    user.time_zone, user.theme = chosen.time_zone, chosen.theme
    work.session.add(user)
    return user


@cache
def time_zones() -> frozenset[str]:
    """The names of all time zones; finding them reads hundreds of files, once."""
    return frozenset(available_timezones())


def activate(work: Work, user: User) -> None:
    """An invited person has a credential now."""
    if user.status == UserStatus.INVITED:
        user.status = UserStatus.ACTIVE
        work.session.add(user)


def disable(work: Work, actor: Principal, user: User) -> None:
    """Stop a person and everything that acts for them, at once (SEC-31).

    Raises:
        NotUsableNow: disabled already.
        LastOwner: it would leave the tenant without an active owner.
    """
    if user.status == UserStatus.DISABLED:
        raise NotUsableNow(state=user.status)
    roles.keep_an_owner(work, user)
    facts.record(
        work,
        "identity.user.disable",
        actor,
        target=("user", user.id),
        changes={"status": (user.status, UserStatus.DISABLED.value)},
    )
    user.status = UserStatus.DISABLED
    user.disabled_at, user.disabled_by = clock.now(), actor.user_id
    user.version += 1
    work.session.add(user)
    stops.end_user(work, user)


def enable(work: Work, actor: Principal, user: User) -> None:
    """Let a disabled person sign in again; nothing that ended comes back (SEC-33).

    Raises:
        NotUsableNow: the person is not disabled.
    """
    if user.status != UserStatus.DISABLED:
        raise NotUsableNow(state=user.status)
    facts.record(
        work,
        "identity.user.enable",
        actor,
        target=("user", user.id),
        changes={"status": (user.status, UserStatus.ACTIVE.value)},
    )
    user.status, user.disabled_at, user.disabled_by = UserStatus.ACTIVE, None, None
    user.version += 1
    work.session.add(user)
    epochs.raise_for(work, user.tenant_id, [user.id], "user_enabled")


def one(session: Session, tenant_id: str, user_id: str) -> User:
    """A person of the tenant, whatever their status.

    Raises:
        NotFound: there is none with this id.
    """
    user = session.get(User, (tenant_id, user_id))
    if user is None:
        raise NotFound
    return user


def by_login(session: Session, tenant_id: str, login: str) -> User | None:
    """The person with this (normal) login."""
    return session.exec(
        select(User).where(User.tenant_id == tenant_id, User.login == login)
    ).first()


def fold(login: str) -> str:
    """A login as it is compared: NFKC, casefolded, without space around it."""
    return search.fold(login).strip()


def normal_login(login: str) -> str:
    """A login as it is stored.

    Raises:
        Invalid: it is empty, too long, or has spaces, slashes or invisible characters in it.
    """
    name = fold(login)
    if not 1 <= len(name) <= LOGIN_LENGTH:
        raise Invalid(FieldError("login", N_("A login has 1 to 100 characters.")))
    if any(char == "/" or unicodedata.category(char)[0] in "CZ" for char in name):
        raise Invalid(
            FieldError("login", N_("A login has no spaces, slashes or invisible characters."))
        )
    return name


def _open_org(org: Org) -> None:
    if org.status != OrgStatus.ACTIVE:
        raise Invalid(FieldError("org_id", N_("This organisation is closed.")))
