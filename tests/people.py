"""A small world with people in it: two tenants, some organisations, and a signed-in browser each.

Everybody was made the way the product makes them; a browser is an HTTP client with the session
cookie, on the real application.
"""

import base64
import pickle
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import httpx2
import time_machine
from fastapi import FastAPI
from pydantic import SecretStr
from sqlmodel import Session

from app.audit import listening
from app.aun import evictions, identities, participation
from app.aun.pki import issuers
from app.commands import approval_closing, deciding, publishing, registry, rights
from app.identity import (
    agents,
    cookies,
    csrf,
    delegations,
    orgs,
    paging,
    roles,
    sessions,
    setup,
    signing_keys,
    tenants,
)
from app.identity import users as people
from app.identity.models import (
    Agent,
    BrowserSession,
    Delegation,
    Org,
    Role,
    Tenant,
    User,
    UserStatus,
)
from app.identity.principal import Principal, Scope
from app.identity.sessions import Browser
from app.kernel import clock, db, keyring, migrations, rates, sealing, settings
from app.kernel.db import Work
from app.kernel.settings import Settings
from app.runs import cancelling, ending
from tests import clock as clocks
from tests import databases, session
from tests.databases import Template

AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
SAME_ORIGIN = {"Sec-Fetch-Site": "same-origin"}
RINGS = (csrf.PURPOSE, paging.PURPOSE, deciding.PURPOSE)


_copied: dict[str, Path] = {}  # URL of a database made like a template → what is in it


@cache
def _sealed_settings() -> Settings:
    return Settings(master_key=SecretStr(base64.urlsafe_b64encode(bytes(32)).decode()))


@dataclass
class Company:
    """One tenant: its tree by name, its people by login, its agents by code."""

    tenant: Tenant
    root: Org
    orgs: dict[str, Org] = field(default_factory=dict)
    people: dict[str, User] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)
    delegations: dict[str, Delegation] = field(default_factory=dict)

    def __getitem__(self, login: str) -> User:
        return self.people[login]

    @property
    def id(self) -> str:
        """The tenant's id."""
        return self.tenant.id


class Joining(NamedTuple):
    """People who come to Acme besides, for many tests alike."""

    name: str
    join: Callable[[Work, Company], None]


class World:
    """Acme and Globex.

    In Acme: `olga` (owner), `ada` (administrator), `axel` (auditor), `alice` in Shanghai and `bob`
    in Sales, below Shanghai (members), `ines` (invited), `dora` (disabled); alice and bob let the
    agent `stock` act for them. In Globex: `gina` (owner) and `gus` (member).
    """

    def __init__(
        self, app: FastAPI, companies: "tuple[Company, Company]", admin: Principal
    ) -> None:
        self.app = app
        self.acme, self.globex = companies
        self._admin = admin

    def client(self, user: User, *, signed_in: timedelta = timedelta(0)) -> httpx2.AsyncClient:
        """A browser in which `user` signed in so long ago; its POSTs carry what a page's would."""
        secret, session_id = db.transact_now(_sign_in, user, signed_in)
        made = self.anonymous()
        made.cookies.set(cookies.session_name(), secret, domain="localhost.local")
        made.headers["X-CSRF-Token"] = csrf.of_session(session_id)
        return made

    def anonymous(self) -> httpx2.AsyncClient:
        """A browser nobody signed in with."""
        origin = settings.current().origin.replace("http://", "https://")  # Secure cookies
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(app=self.app, raise_app_exceptions=False),
            base_url=origin,
            headers={"User-Agent": AGENT, "Accept": "text/html", **SAME_ORIGIN},
        )

    def person(self, user: User) -> Principal:
        """`user`, as the person of a session of theirs."""
        return _person_of(user)

    @property
    def acme_admin(self) -> Principal:
        """`ada`, who acts; made once, so that a unit may ask for it."""
        return self._admin

    def user(self, user: User) -> User:
        """The row of `user` as it is now."""
        return db.read_now(people.one, user.tenant_id, user.id)

    def give(
        self,
        user: User,
        code: str,
        org: Org | None = None,
        *,
        ends_in: timedelta | None = None,
        grants: dict[str, str] | None = None,
    ) -> Role:
        """Let `user` hold the role `code` at `org` (their own where none is named).

        With `grants` the role is made, if the tenant has none of that code.
        """
        return db.transact_now(_give, user, code, org, ends_in, grants or {})


@dataclass
class _Kept:
    """What a database of `peopled` holds, for the processes that take a copy of it."""

    companies: tuple[Company, Company]
    admin: Principal
    rings: dict[str, list[bytes]]


@contextmanager
def ready(*, declared: bool = False, kept: _Kept | None = None) -> Iterator[None]:
    """What the start of the server does besides opening the database.

    Args:
        declared: what exists to be permitted is written down in it already.
        kept: what it holds, if it is a copy; then there is nothing to make.
    """
    sealing.open_with(_sealed_settings())
    rates.of_process.cache_clear()  # a process that starts has counted nobody yet
    registry.discover(settings.current().packs_dir)
    rights.hand_in()
    with ExitStack() as ends:
        ends.callback(publishing.listen())
        ends.callback(approval_closing.listen())
        ends.callback(listening.listen())
        ends.callback(participation.hand_in())
        ends.callback(issuers.listen())
        ends.callback(identities.listen())
        ends.callback(evictions.listen())
        ends.callback(cancelling.listen())
        ends.callback(ending.listen())
        ends.callback(keyring.close)
        ends.callback(signing_keys.close)
        if kept:
            keyring._rings.update({purpose: [*keys] for purpose, keys in kept.rings.items()})
        for purpose in RINGS:
            keyring.prepare(purpose)
        signing_keys.prepare()
        if not (declared or kept):
            db.transact_now(setup.declare)
        if kept:
            issuers.reload()
        else:
            issuers.prepare()
            identities.prepare()
        yield


@contextmanager
def world(create_app: Callable[[], FastAPI] | None = None, url: str = "") -> Iterator[World]:
    """The world on the open database, with the real application.

    Args:
        create_app: makes another application.
        url: the URL of the database, if it may be one of `peopled`.
    """
    from app.main import create_app as create  # late: the application need not load for all tests

    found = _copied.get(url)
    kept: _Kept | None = pickle.loads(found.read_bytes()) if found else None  # noqa: S301 - ours
    with ready(kept=kept):
        if kept is None:
            kept = _fetched()
        elif not time_machine.escape_hatch.is_travelling():
            db.transact_now(_sign_in_again, kept.admin)
        yield World((create_app or create)(), kept.companies, kept.admin)


@contextmanager
def peopled(kind: databases.Kind, folder: Path, more: Joining | None = None) -> Iterator[str]:
    """The URL of a new database with everybody in it: a copy, so that `world` is there at once.

    Everybody came in when the run began, or at the start of the frozen clock where it is that time.

    Args:
        kind: of the database.
        folder: where a file of it goes.
        more: who came to Acme besides.
    """
    if time_machine.escape_hatch.is_travelling() and datetime.now(UTC) != clocks.START:
        with databases.migrated(kind, folder) as url:
            yield url
        return
    name = "world_then" if time_machine.escape_hatch.is_travelling() else "world"
    kept = session.folder() / f"{name}_{kind}.pickle"
    template = Template(name, partial(_fill, kept))
    if more:
        base, kept = kept, session.folder() / f"{name}_{more.name}_{kind}.pickle"
        template = Template(f"{name}_{more.name}", partial(_fill_more, base, more, kept), template)
    with databases.copied(kind, folder, template) as url:
        _copied[url] = kept
        try:
            yield url
        finally:
            del _copied[url]


def _fill(kept: Path, url: str) -> None:
    migrations.upgrade(url)
    db.open(url)
    try:
        with ready():
            kept.write_bytes(pickle.dumps(_fetched()))
    finally:
        db.close()


def _fill_more(base: Path, more: Joining, kept: Path, url: str) -> None:
    found: _Kept = pickle.loads(base.read_bytes())  # noqa: S301 - ours
    db.open(url)
    try:
        with ready(kept=found):
            db.transact_now(more.join, found.companies[0])
            kept.write_bytes(pickle.dumps(found))
    finally:
        db.close()


def _fetched() -> _Kept:
    companies = db.transact_now(_acme), db.transact_now(_globex)
    rings = {purpose: keyring.keys(purpose) for purpose in RINGS}
    return _Kept(companies, _person_of(companies[0]["ada"]), rings)


def _person_of(user: User) -> Principal:
    secret, _ = db.transact_now(_sign_in, user, timedelta(0))
    signed = db.read_now(sessions.find, secret)
    assert signed is not None
    return sessions.person(signed)


def _acme(work: Work) -> Company:
    tenant, root = tenants.create(work, slug="acme", name="Acme 贸易")
    shanghai = orgs.create(work, None, root, "Shanghai 上海")
    beijing = orgs.create(work, None, root, "Beijing 北京")
    sales = orgs.create(work, None, shanghai, "Sales")
    made = Company(tenant, root, {"shanghai": shanghai, "beijing": beijing, "sales": sales})
    for login, name, org, role, status in (
        ("olga", "Olga Petrova", root, "owner", UserStatus.ACTIVE),
        ("ada", "Ada Lin", root, "administrator", UserStatus.ACTIVE),
        ("axel", "Axel Berg", root, "auditor", UserStatus.ACTIVE),
        ("alice", "Alice Wang 王爱丽", shanghai, "member", UserStatus.ACTIVE),
        ("bob", "陈博 Bob Chen", sales, "member", UserStatus.ACTIVE),
        ("ines", "Inés García", beijing, "member", UserStatus.INVITED),
        ("dora", "Dora Disabled", beijing, "member", UserStatus.DISABLED),
    ):
        made.people[login] = _person(work, org, login, name, role, status)
    _agents(work, made, "ada", ("alice", "bob"))
    return made


def _globex(work: Work) -> Company:
    tenant, root = tenants.create(work, slug="globex", name="Globex")
    made = Company(tenant, root, {"berlin": orgs.create(work, None, root, "Berlin")})
    active = UserStatus.ACTIVE
    made.people["gina"] = _person(work, root, "gina", "Gina Globex", "owner", active)
    made.people["gus"] = _person(work, made.orgs["berlin"], "gus", "Gus Globex", "member", active)
    _agents(work, made, "gina", ("gus",))
    return made


def _person(work: Work, org: Org, login: str, name: str, role: str, status: UserStatus) -> User:
    user = people.create(work, None, org, login=login, display_name=name, status=status)
    held = roles.by_code(work.session, org.tenant_id, role)
    assert held is not None
    roles.assign(work, None, user, held, org)
    return user


def _agents(work: Work, company: Company, admin: str, users: tuple[str, ...]) -> None:
    for code, name in (("expenses", "报销助手"), ("stock", "Stock")):
        content = {"instructions": f"You are {name}."}
        agent = agents.create(work, None, company[admin], code=code, name=name, content=content)
        agents.publish(work, None, agent)
        company.agents[code] = agent
    for login in users:
        company.delegations[login] = delegations.make_for(
            work, company[login], company.agents["stock"], [Scope.COMMANDS_READ]
        )


def _sign_in(work: Work, user: User, ago: timedelta) -> tuple[str, str]:
    row = people.one(work.session, user.tenant_id, user.id)
    secret = sessions.start(work, row, ["pwd"], Browser("192.0.2.0/24", AGENT))
    session = _session_of(work.session, user, secret)
    if ago:
        session.auth_time = clock.now() - ago
        work.session.add(session)
    return secret, session.id


def _sign_in_again(work: Work, person: Principal) -> None:
    """The copy is younger than its template, and so is the session of who acts in it."""
    row = work.session.get(BrowserSession, (person.tenant_id, person.session_id))
    assert row is not None
    passed = clock.now() - row.created_at
    for moment in ("created_at", "auth_time", "last_seen_at", "idle_until", "ends_at"):
        setattr(row, moment, getattr(row, moment) + passed)
    work.session.add(row)


def _session_of(session: Session, user: User, secret: str) -> BrowserSession:
    signed = sessions.find(session, secret)
    assert signed is not None, f"{user.login} cannot sign in"
    return signed.session


def _give(
    work: Work,
    user: User,
    code: str,
    org: Org | None,
    ends_in: timedelta | None,
    grants: dict[str, str],
) -> Role:
    tenant_id = user.tenant_id
    role = roles.by_code(work.session, tenant_id, code) or roles.create(
        work, None, tenant_id=tenant_id, code=code, name=code.title(), grants=grants
    )
    at = org or orgs.one(work.session, tenant_id, user.org_id)
    ends_at = clock.now() + ends_in if ends_in else None
    roles.assign(work, None, user, role, at, ends_at=ends_at)
    return role
