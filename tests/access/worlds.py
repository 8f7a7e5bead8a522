"""A random world of tenants, organisations, roles and records, and what it should allow."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from sqlalchemy import Column, MetaData, String, Table
from sqlmodel import SQLModel

from app.identity.models import (
    Grant,
    Org,
    Permission,
    Role,
    RoleAssignment,
    Tenant,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.principal import Channel, Principal
from app.kernel import clock, db, ids
from app.kernel.db import Work

RECORDS = Table(
    "probe_record",
    MetaData(),
    Column("tenant_id", String(26), primary_key=True),
    Column("id", String(26), primary_key=True),
    Column("owner_id", String(26)),
    Column("org_id", String(26)),
)
SCOPES = ("self", "org", "org_and_below", "all", "everything", "")  # the last two are unknown
DECLARED = tuple(f"thing.p{number}" for number in range(9))
UNDECLARED = "thing.unknown"


@dataclass
class World:
    """Every row that matters for access, in plain lists."""

    tenants: list[Tenant] = field(default_factory=list)
    orgs: list[Org] = field(default_factory=list)
    users: list[User] = field(default_factory=list)
    roles: list[Role] = field(default_factory=list)
    grants: list[Grant] = field(default_factory=list)
    assignments: list[RoleAssignment] = field(default_factory=list)
    records: list[dict[str, str | None]] = field(default_factory=list)
    _known: dict[tuple[str, str], list[tuple[str, str]]] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)

    def principal(self, user: User) -> Principal:
        return Principal.person(
            tenant_id=user.tenant_id,
            user_id=user.id,
            session_id="S",
            epoch=user.authz_epoch,
            channel=Channel.CONSOLE,
        )

    def allows(self, user: User, permission: str, record: dict[str, str | None]) -> bool:
        """The oracle: the words of SEC-6, in Python, with no look at the SQL."""
        if record["tenant_id"] != user.tenant_id:
            return False
        where = record["org_id"]
        for data_scope, org_id in self._held(user, permission):
            reached = {
                "all": True,
                "self": record["owner_id"] == user.id,
                "org": where is not None and where == org_id,
                "org_and_below": where is not None
                and self._path(where).startswith(self._path(org_id)),
            }
            if reached.get(data_scope, False):
                return True
        return False

    def _held(self, user: User, permission: str) -> list[tuple[str, str]]:
        """(data scope, organisation) of every grant the user has by a live assignment."""
        known = self._known.get((user.id, permission))
        if known is not None:
            return known
        tenant = next(each for each in self.tenants if each.id == user.tenant_id)
        is_active = tenant.status == "active" and user.status == "active"
        self._known[user.id, permission] = held = [
            (grant.data_scope, assignment.org_id)
            for assignment in self.assignments
            if assignment.user_id == user.id
            and (assignment.ends_at is None or assignment.ends_at > clock.now())
            for grant in self.grants
            if grant.role_id == assignment.role_id and grant.permission == permission
            if is_active and permission in DECLARED
        ]
        return held

    def _path(self, org_id: str) -> str:
        if not self._paths:
            self._paths = {org.id: org.path for org in self.orgs}
        return self._paths[org_id]


def make(seed: int, *, users: int, records: int) -> World:
    """A world in the open database."""
    chosen = random.Random(seed)  # noqa: S311 - a seed, not a secret
    world = World()
    for number in range(3):
        _tenant(world, chosen, number, users // 3, records // 3)
    db.transact_now(_store, world)
    return world


def _tenant(world: World, chosen: random.Random, number: int, users: int, records: int) -> None:
    now = clock.now()
    tenant = Tenant(id=ids.ulid(), slug=f"t{number}", name="T", created_at=now)
    tenant.status = TenantStatus.SUSPENDED if number == 2 else TenantStatus.ACTIVE
    world.tenants.append(tenant)
    orgs = [_org(tenant.id, None)]
    for _ in range(9):
        orgs.append(_org(tenant.id, chosen.choice(orgs)))
    roles = [
        Role(tenant_id=tenant.id, id=ids.ulid(), code=f"r{role}", name="R") for role in range(8)
    ]
    for role in roles:
        for permission in chosen.sample([*DECLARED, UNDECLARED], 4):
            world.grants.append(
                Grant(
                    tenant_id=tenant.id,
                    role_id=role.id,
                    permission=permission,
                    data_scope=chosen.choice(SCOPES),
                )
            )
    people = [
        User(
            tenant_id=tenant.id,
            id=ids.ulid(),
            login=f"u{user}",
            display_name="U",
            org_id=chosen.choice(orgs).id,
            status=chosen.choice([UserStatus.ACTIVE] * 6 + [UserStatus.DISABLED]),
            created_at=now,
        )
        for user in range(users)
    ]
    for user in people:
        for role in chosen.sample(roles, chosen.randint(0, 3)):
            world.assignments.append(
                RoleAssignment(
                    tenant_id=tenant.id,
                    user_id=user.id,
                    role_id=role.id,
                    org_id=chosen.choice(orgs).id,
                    assigned_at=now,
                    ends_at=chosen.choice(
                        [None, None, now + timedelta(days=1), now - timedelta(seconds=1), now]
                    ),
                )
            )
    for _ in range(records):
        world.records.append(
            {
                "tenant_id": tenant.id,
                "id": ids.ulid(),
                "owner_id": chosen.choice([None, *(user.id for user in people)]),
                "org_id": chosen.choice([None, *(org.id for org in orgs)]),
            }
        )
    world.orgs += orgs
    world.roles += roles
    world.users += people


def _org(tenant_id: str, parent: Org | None) -> Org:
    id_ = ids.ulid()
    above = parent.path if parent else "/"
    return Org(
        tenant_id=tenant_id,
        id=id_,
        parent_id=parent.id if parent else None,
        path=f"{above}{id_}/",
        name="O",
    )


def _store(work: Work, world: World) -> None:
    RECORDS.create(work.connection)
    declared = [Permission(code=code, pack="t", title={}) for code in DECLARED]
    batches: list[Sequence[SQLModel]] = [world.tenants, world.orgs, world.users, world.roles]
    for rows in (*batches, declared, world.grants, world.assignments):
        work.session.add_all(type(row)(**row.model_dump()) for row in rows)
        work.session.flush()
    work.connection.execute(RECORDS.insert(), world.records)
