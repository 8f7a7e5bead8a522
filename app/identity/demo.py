"""`--demo`: two workspaces with people and agents, in an empty database (SEC-43).

What slices and packs have to show, they add as a step (`demo.step`); all steps run in the one
transaction that makes the workspaces, so there are all of them or none.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import orjson
from sqlmodel import Session, col, select

from app.identity import agents, delegations, orgs, passwords, roles, tenants, users
from app.identity.models import (
    Agent,
    DataScope,
    Org,
    Role,
    Tenant,
    User,
    UserStatus,
)
from app.identity.oauth import clients
from app.identity.principal import Scope
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.kernel.settings import Settings

MARK = "demo"  # key of a tenant's settings
ALPHABET = frozenset("abcdefghjkmnpqrstuvwxyz23456789")  # nothing that looks like something else
ZONE = "Asia/Shanghai"


class NoDemoHere(AppError):
    """The examples do not belong into this database, or to this address."""

    reason = "no_demo_here"
    status = 409
    says = N_("The demo needs a database without other workspaces, and an address on this machine.")


class NotOurFile(AppError):
    """The file for the sign-ins is somebody else's."""

    reason = "not_our_file"
    status = 409
    says = N_("%(path)s exists and was not written by Assent for you. Name another file.")


@dataclass(frozen=True, slots=True)
class DemoUser:
    """A person of the demo; `password` only when just made."""

    tenant: str
    username: str
    password: str
    roles: tuple[str, ...]
    org: str


@dataclass(frozen=True, slots=True)
class DemoAgent:
    """An agent of the demo."""

    slug: str
    aid: str | None
    client_id: str | None


@dataclass(frozen=True, slots=True)
class DemoResult:
    """Who can sign in, and which agents there are."""

    users: tuple[DemoUser, ...]
    agents: tuple[DemoAgent, ...]

    @property
    def is_fresh(self) -> bool:
        """Whether it was made just now, so that there are passwords to tell."""
        return any(user.password for user in self.users)


@dataclass(slots=True)
class Workspace:
    """One demo tenant while it is filled: what steps find by name."""

    tenant: Tenant
    root: Org
    orgs: dict[str, Org] = field(default_factory=dict)
    roles: dict[str, Role] = field(default_factory=dict)
    people: dict[str, User] = field(default_factory=dict)
    agents: dict[str, Agent] = field(default_factory=dict)


Step = Callable[[Work, dict[str, Workspace]], None]
_steps: list[Step] = []


def step(function: Step) -> Step:
    """Register what else the demo shows; it gets the workspaces by slug, in that transaction."""
    if function not in _steps:
        _steps.append(function)
    return function


async def seed(settings: Settings) -> DemoResult:
    """Fill an empty database with the demo; on the same data again it changes nothing.

    Raises:
        NoDemoHere: there are other tenants, or the public origin is not on this machine.
    """
    if not _is_loopback(settings.origin):
        raise NoDemoHere
    if await db.read(_is_made):
        return await db.read(_result, {})
    secrets = {(slug, one.login): _password() for slug, one in _who_sign_in()}
    made = await asyncio.gather(*map(passwords.digest, secrets.values()))
    await db.transaction(_fill, dict(zip(secrets, made, strict=True)))
    return await db.read(_result, secrets)


def check_credentials(path: Path) -> None:
    """Whether the sign-ins may be written to `path`; to be asked before anything is made.

    Raises:
        NotOurFile: something else is there.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return
    except OSError as fault:
        raise NotOurFile(path=str(path)) from fault
    with os.fdopen(descriptor, "rb") as file:
        is_ours = os.fstat(descriptor).st_uid == os.geteuid() and _looks_like_ours(
            file.read(1 << 20)
        )
    if not is_ours:
        raise NotOurFile(path=str(path))


def write_credentials(path: Path, result: DemoResult, setup_url: str | None) -> None:
    """Write the sign-ins as JSON for this account alone (0600); left as it is on a second run.

    Raises:
        NotOurFile: something else is there.
    """
    check_credentials(path)
    if not result.is_fresh and path.exists():
        return
    content: dict[str, Any] = {
        **({"setup_url": setup_url} if setup_url else {}),
        "users": [asdict(user) for user in result.users if user.password],
        "agents": [asdict(agent) for agent in result.agents],
    }
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(orjson.dumps(content, option=orjson.OPT_INDENT_2) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()
        raise


@dataclass(frozen=True, slots=True)
class _Person:
    login: str
    name: str
    org: str
    roles: tuple[str, ...]
    status: UserStatus = UserStatus.ACTIVE


_ORGS = {  # name → (label, parent); the root has no name
    "shanghai": ("上海分公司 Shanghai", ""),
    "sales": ("销售部 Sales", "shanghai"),
    "warehouse": ("仓储部 Warehouse", "shanghai"),
    "beijing": ("北京分公司 Beijing", ""),
    "finance": ("财务部 Finance", ""),
}
_SIGN_IN = {
    "acme": (
        _Person("alice", "王爱丽 Alice Wang", "sales", ("employee",)),
        _Person("bob", "陈博 Bob Chen", "shanghai", ("employee", "manager")),
        _Person("fiona", "方宁 Fiona Fang", "finance", ("employee", "finance")),
        _Person("frank", "Frank Weber", "finance", ("employee", "finance")),
        _Person("audrey", "Audrey Martin", "", ("employee", "auditor")),
        _Person("owen", "刘欧文 Owen Liu", "", ("administrator", "owner")),
    ),
    "globex": (
        _Person("gina", "Gina Rossi", "", ("administrator", "owner")),
        _Person("gus", "Gus Novak", "berlin", ("employee",)),
    ),
}
COLLEAGUES = Path(__file__).with_name("demo_colleagues.txt")  # a name a line
_ROLES: dict[str, tuple[str, dict[str, DataScope]]] = {
    "employee": (
        "员工 Employee",
        {
            "identity.agent.read": DataScope.ALL,
            "identity.user.read": DataScope.SELF,
            "outside.tool.read": DataScope.ALL,
            "outside.tool.use": DataScope.ALL,
        },
    ),
    "manager": (
        "经理 Manager",
        {
            "identity.user.read": DataScope.ORG_AND_BELOW,
            "identity.org.read": DataScope.ORG_AND_BELOW,
            "identity.delegation.read": DataScope.ORG_AND_BELOW,
        },
    ),
    "finance": (
        "财务 Finance",
        {"identity.user.read": DataScope.ALL, "identity.org.read": DataScope.ALL},
    ),
}
_ACTS = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE, Scope.AUN_MESSAGE)
_LOOKS = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.AUN_MESSAGE)
_AGENTS = {
    "expenses": (
        "报销助手",
        "Prepares and submits expense reports. 帮您填写并提交报销单。",
        (
            "You help people with their expense reports. Read before you act, say in one sentence "
            "what you are about to do, and never guess an amount: ask for it. Answer in the "
            "language you are spoken to.\n\n"
            "您帮助同事处理报销单。先查询、再行动；金额不确定时请询问，不要猜测。"
        ),
    ),
    "stock": (
        "Stock",
        "Knows what lies where in the warehouse. 查询库存与出入库记录。",
        (
            "You answer questions about stock and movements. Name the item, the place and the time "
            "of every figure. If the figures disagree, say so."
        ),
    ),
}
_LETS = (
    ("alice", "expenses", _ACTS),
    ("alice", "stock", _LOOKS),
    ("bob", "expenses", _ACTS),
    ("fiona", "expenses", _ACTS),
)


def _who_sign_in() -> list[tuple[str, _Person]]:
    return [(slug, one) for slug, listed in _SIGN_IN.items() for one in listed]


def _is_made(session: Session) -> bool:
    found = session.exec(select(Tenant)).all()
    if any(tenant.slug not in _SIGN_IN or not tenant.settings.get(MARK) for tenant in found):
        raise NoDemoHere
    return bool(found)


def _fill(work: Work, digests: dict[tuple[str, str], str]) -> None:
    if _is_made(work.session):
        return  # another process was faster
    acme = _workspace(work, "acme", "Acme 贸易", _ORGS)
    globex = _workspace(work, "globex", "Globex", {"berlin": ("Berlin", "")})
    made = {"acme": acme, "globex": globex}
    for (slug, login), argon2id in digests.items():
        passwords.keep(work, made[slug].people[login], argon2id)
    _colleagues(work, acme)
    for code in _AGENTS:
        _agent(work, acme, code)
    _agent(work, globex, "stock")
    for login, code, scopes in _LETS:
        delegations.make_for(work, acme.people[login], acme.agents[code], scopes)
    delegations.make_for(work, globex.people["gus"], globex.agents["stock"], _LOOKS)
    for further in _steps:
        further(work, made)


def _workspace(work: Work, slug: str, name: str, tree: dict[str, tuple[str, str]]) -> Workspace:
    tenant, root = tenants.create(work, slug=slug, name=name)
    tenant.settings = {MARK: True}
    work.session.add(tenant)
    made = Workspace(tenant, root, orgs={"": root})
    for key, (label, parent) in tree.items():
        made.orgs[key] = orgs.create(work, None, made.orgs[parent], label)
    for role in roles.of_tenant(work.session, tenant.id):
        made.roles[role.code] = role
    for code, (title, grants) in _ROLES.items():
        every = {**grants, **roles.brought_to(code)}
        plain = {permission: reach.value for permission, reach in every.items()}
        made.roles[code] = roles.create(
            work, None, tenant_id=tenant.id, code=code, name=title, grants=plain
        )
    for one in _SIGN_IN[slug]:
        _person(work, made, one)
    return made


def _person(work: Work, made: Workspace, one: _Person) -> None:
    org = made.orgs[one.org]
    user = users.create(
        work,
        None,
        org,
        login=one.login,
        display_name=one.name,
        email=f"{one.login}@{made.tenant.slug}.example",
        status=one.status,
    )
    user.time_zone = ZONE if made.tenant.slug == "acme" else "Europe/Berlin"
    if one.status == UserStatus.DISABLED:
        user.disabled_at = clock.now()
    work.session.add(user)
    made.people[one.login] = user
    for code in one.roles:
        roles.assign(work, None, user, made.roles[code], org)


def _colleagues(work: Work, acme: Workspace) -> None:
    """People who make lists worth searching; nobody of them can sign in."""
    places = ("sales", "warehouse", "beijing", "shanghai", "sales")
    for number, name in enumerate(COLLEAGUES.read_text("utf-8").splitlines()):
        status = UserStatus.ACTIVE
        if number % 9 == 4:
            status = UserStatus.INVITED
        elif number % 11 == 7:
            status = UserStatus.DISABLED
        plain = "".join(char for char in name.lower() if char.isascii() and char.isalpha())
        login = f"{plain[:12]}{number:02}"
        place = places[number % len(places)]
        _person(work, acme, _Person(login, name, place, ("employee",), status))


def _agent(work: Work, made: Workspace, code: str) -> None:
    name, description, instructions = _AGENTS[code]
    admin = next(user for login, user in made.people.items() if login in {"owen", "gina"})
    agent = agents.create(
        work,
        None,
        admin,
        code=code,
        name=name,
        description=description,
        content={"instructions": instructions},
    )
    agents.publish(work, None, agent)
    clients.create_for(work, None, agent)
    made.agents[code] = agent


def _result(session: Session, secrets: dict[tuple[str, str], str]) -> DemoResult:
    listed = []
    for slug, one in _who_sign_in():
        tenant = tenants.by_slug(session, slug)
        user = users.by_login(session, tenant.id, one.login) if tenant else None
        if tenant is None or user is None:
            continue  # renamed or removed since
        held = [role.code for _, role, _ in roles.assignments_of(session, user)]
        org = orgs.one(session, tenant.id, user.org_id).name
        secret = secrets.get((slug, one.login), "")
        listed.append(DemoUser(slug, user.login, secret, tuple(sorted(held)), org))
    return DemoResult(tuple(listed), tuple(map(_demo_agent, _agents_of(session, "acme"))))


def _agents_of(session: Session, slug: str) -> Sequence[Agent]:
    query = (
        select(Agent)
        .join(Tenant, col(Tenant.id) == Agent.tenant_id)
        .where(Tenant.slug == slug, col(Agent.code).in_(_AGENTS))
        .order_by(col(Agent.code))
    )
    return session.exec(query).all()


def _demo_agent(agent: Agent) -> DemoAgent:
    return DemoAgent(agent.code, agent.aid, agent.client_id)


def _password() -> str:
    letters = ""
    while len(letters) < 16:
        letters += "".join(char for char in ids.random_token() if char in ALPHABET)
    return "-".join(letters[start : start + 4] for start in range(0, 16, 4))


def _is_loopback(origin: str) -> bool:
    host = urlsplit(origin).hostname or ""
    return host in {"localhost", "127.0.0.1", "::1"} or host.endswith(".localhost")


def _looks_like_ours(content: bytes) -> bool:
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and set(found) - {"setup_url"} == {"users", "agents"}
