"""A company of some size for benches: 1,000 people with an agent each, 100,000 reports.

Tenant, organisation and agent are made as the product makes them; what comes by the thousand is
inserted in one go. The audit trail tells nothing of that, which is no matter to a bench.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import delete, func, insert, select, text, update
from sqlmodel import col

from app.audit import chain
from app.audit.models import AuditEntry, AuditHead
from app.commands import catalogue
from app.commands.models import CommandVersion, VersionStatus
from app.commands.rows import table_of
from app.commands.stored import StoredDefinition
from app.identity import agents, roles, tenants, tokens, users
from app.identity.doors import Door
from app.identity.models import Agent, Delegation, RoleAssignment, User, UserStatus
from app.identity.principal import Principal, Scope
from app.identity.tokens import Standing
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.packs.expenses.models import Report
from tests.bench.load import Caller

PEOPLE, REPORTS_EACH, COMMANDS = 1_000, 100, 500
CODE, MODEL = "expense.report.update", "expense.report.get"
SCOPES = f"{Scope.COMMANDS_READ} {Scope.COMMANDS_INVOKE}"


@dataclass(frozen=True, slots=True)
class Person:
    """A user with the delegation of their agent and their reports."""

    tenant_id: str
    id: str
    delegation_id: str
    agent_id: str
    release_id: str
    reports: tuple[str, ...]

    @property
    def principal(self) -> Principal:
        """Their agent, as the API knows it."""
        return Principal(
            tenant_id=self.tenant_id,
            user_id=self.id,
            agent_release_id=self.release_id,
            delegation_id=self.delegation_id,
            session_id=None,
            channel=Door.V1.channel,
            actors=(self.agent_id,),
            scopes=frozenset({Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE}),
            epoch=1,
        )


def make() -> list[Person]:
    """Fill the open database; the pack's own commands are published with the tenant."""
    return db.transact_now(_make)


def callers(people: list[Person]) -> list[Caller]:
    """Clients with fresh tokens of `people`."""
    return db.read_now(_callers, people)


def publish_more(tenant_id: str) -> None:
    """Publish copies of a command until there are 500; the next start retires them."""
    db.transact_now(_publish_more, tenant_id)


def lengthen_trail(tenant_id: str, entries: int) -> None:
    """Let the trail have so many entries, with copies of its last one; on SQLite."""
    db.transact_now(_lengthen_trail, tenant_id, entries)


def _make(work: Work) -> list[Person]:
    tenant, root = tenants.create(work, slug="bench", name="Bench 公司")
    admin = users.create(
        work, None, root, login="admin", display_name="Admin", status=UserStatus.ACTIVE
    )
    agent = agents.create(
        work, None, admin, code="helper", name="Helper", content={"instructions": "Help."}
    )
    release = agents.publish(work, None, agent)
    member = roles.by_code(work.session, tenant.id, "member")
    assert member is not None
    work.session.flush()
    people = [
        Person(
            tenant.id,
            ids.ulid(),
            ids.ulid(),
            agent.id,
            release.id,
            tuple(ids.ulid() for _ in range(REPORTS_EACH)),
        )
        for _ in range(PEOPLE)
    ]
    filled: list[tuple[Any, list[dict[str, Any]]]] = [
        (User, [_user(each, number, root.id) for number, each in enumerate(people)]),
        (RoleAssignment, [_assignment(each, member.id, root.id) for each in people]),
        (Delegation, [_delegation(each) for each in people]),
        (Report, [row for each in people for row in _reports(each, root.id)]),
    ]
    for table, rows in filled:
        work.connection.execute(insert(table.__table__), rows)
    return people


def _row(table: Any, **values: Any) -> dict[str, Any]:
    fields = table.model_fields
    defaults = {
        name: None if field.is_required() else field.get_default(call_default_factory=True)
        for name, field in fields.items()
    }
    return {**defaults, **values}


def _user(person: Person, number: int, org_id: str) -> dict[str, Any]:
    login = f"person-{number}"
    return _row(
        User,
        tenant_id=person.tenant_id,
        id=person.id,
        login=login,
        display_name=f"Person {number} 员工",
        org_id=org_id,
        status=UserStatus.ACTIVE,
        created_at=clock.now(),
        search=login,
    )


def _assignment(person: Person, role_id: str, org_id: str) -> dict[str, Any]:
    return _row(
        RoleAssignment,
        tenant_id=person.tenant_id,
        user_id=person.id,
        role_id=role_id,
        org_id=org_id,
        assigned_at=clock.now(),
    )


def _delegation(person: Person) -> dict[str, Any]:
    return _row(
        Delegation,
        tenant_id=person.tenant_id,
        id=person.delegation_id,
        user_id=person.id,
        agent_id=person.agent_id,
        scopes=SCOPES.split(),
        created_at=clock.now(),
    )


def _reports(person: Person, org_id: str) -> list[dict[str, Any]]:
    now, defaults = clock.now(), table_of(Report).defaults()
    return [
        {
            **defaults,
            "tenant_id": person.tenant_id,
            "id": id,
            "org_id": org_id,
            "owner_id": person.id,
            "state": "draft",
            "version": 1,
            "created_at": now,
            "updated_at": now,
            "created_by": person.id,
            "updated_by": person.id,
            "number": f"EXP-{id}",
            "title": "October trip to Shanghai",
            "period": "2026-10",
            "currency": "CNY",
            "payee_name": "Person 员工",
            "payee_account": "6222020200112345678",
        }
        for id in person.reports
    ]


def _callers(session: Any, people: list[Person]) -> list[Caller]:
    agent = session.get(Agent, (people[0].tenant_id, people[0].agent_id))
    return [
        Caller(
            tokens.make(
                session,
                Standing(
                    tenant_id=each.tenant_id,
                    user_id=each.id,
                    epoch=1,
                    actors=(each.agent_id,),
                    client_id=agent.client_id or agent.id,
                    delegation_id=each.delegation_id,
                    auth_time=datetime.now(UTC),
                    amr=("pwd",),
                ),
                scope=SCOPES,
                audience=Door.V1.resource,
            ),
            each.reports,
        )
        for each in people
    ]


def _publish_more(work: Work, tenant_id: str) -> None:
    work.connection.execute(
        delete(CommandVersion).where(col(CommandVersion.code).startswith("bench."))
    )
    there = catalogue.published(work.session, tenant_id)
    [model] = [each.definition for each in there if each.code == MODEL]
    rows = []
    for number in range(COMMANDS - len(there)):
        made = StoredDefinition.model_validate({**model.data(), "code": f"bench.thing.no{number}"})
        row = _row(
            CommandVersion,
            tenant_id=tenant_id,
            id=ids.ulid(),
            code=made.code,
            version=1,
            status=VersionStatus.PUBLISHED,
            pack="expenses",
            content_hash=made.content_hash,
            definition=made.data(),
            created_at=clock.now(),
            published_at=clock.now(),
        )
        rows.append(row)
    work.connection.execute(insert(CommandVersion.__table__), rows)  # type: ignore[attr-defined]


def _lengthen_trail(work: Work, tenant_id: str, entries: int) -> None:
    head = select(func.max(AuditEntry.seq)).where(col(AuditEntry.tenant_id) == tenant_id)
    last = int(work.connection.execute(head).scalar_one())
    own = {
        "seq": "n",
        "hash": "printf('%064x', n)",
        "call_id": "printf('%026d', n)",
        "target_id": "printf('R%d', n % 5000)",
        "user_id": "printf('U%d', n % 1000)",
    }
    columns = ", ".join(chain.COLUMNS)
    chosen = ", ".join(own.get(name, f"e.{name}") for name in chain.COLUMNS)
    work.connection.execute(
        text(
            f"INSERT INTO audit_entry ({columns}) "  # noqa: S608 - our columns
            "WITH RECURSIVE t(n) AS (SELECT :last + 1 UNION ALL SELECT n + 1 FROM t WHERE n < :all)"
            f" SELECT {chosen} FROM t JOIN audit_entry e "
            "ON e.tenant_id = :tenant_id AND e.seq = :last"
        ),
        {"last": last, "all": entries, "tenant_id": tenant_id},
    )
    moved = update(AuditHead).where(col(AuditHead.tenant_id) == tenant_id)
    work.connection.execute(moved.values(seq=entries, hash=f"{entries:064x}"))
