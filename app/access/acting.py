"""Who acts, read again in the call's own transaction: no commit after a deactivation (SEC-33).

One statement says whether tenant, user, delegation and agent all stand now; on PostgreSQL they are
held until the commit, so that a deactivation waits for it or comes first. All calls of a tenant
share their hold of it; one that has to be alone takes it for itself before it holds anything else,
since two that share a row and both want more of it would wait for each other.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection

from app.identity.errors import SignInRequired
from app.identity.principal import Principal, Scope
from app.identity.tokens import DelegationPaused, InvalidToken
from app.kernel import json
from app.kernel.prepared import Prepared

_PERSON = """
SELECT u.org_id, u.display_name
  FROM "user" u JOIN tenant t ON t.id = u.tenant_id
 WHERE u.tenant_id = :tenant_id AND u.id = :user_id AND u.status = 'active' AND t.status = 'active'
"""
_AGENT = """
SELECT u.org_id, u.display_name, d.scopes, d.paused_at FROM delegation d
  JOIN agent a ON a.tenant_id = d.tenant_id AND a.id = d.agent_id AND a.status = 'published'
  JOIN "user" u ON u.tenant_id = d.tenant_id AND u.id = d.user_id
   AND u.status = 'active' AND u.authz_epoch = :epoch
  JOIN tenant t ON t.id = d.tenant_id AND t.status = 'active'
 WHERE d.tenant_id = :tenant_id AND d.id = :delegation_id AND d.user_id = :user_id
   AND d.agent_id = :agent_id AND d.revoked_at IS NULL
   AND (d.expires_at IS NULL OR d.expires_at > :now)
"""
_ROLES = """
SELECT DISTINCT r.code FROM role_assignment x
  JOIN role r ON r.tenant_id = x.tenant_id AND r.id = x.role_id
 WHERE x.tenant_id = :tenant_id AND x.user_id = :user_id
   AND (x.ends_at IS NULL OR x.ends_at > :now) ORDER BY r.code
"""


class _Held(Prepared):
    """A SELECT that holds the rows it names against changes until the commit."""

    def __init__(self, sql: str, tables: str) -> None:
        super().__init__(sql)
        self._postgresql += f" FOR SHARE OF {tables}"


class _HeldAlone(Prepared):
    """A SELECT that holds a row against all who hold it too; on SQLite the writer is alone."""

    def __init__(self, sql: str) -> None:
        super().__init__(sql)
        self._postgresql += " FOR NO KEY UPDATE"  # new rows may still refer to it


_tenant = _HeldAlone("SELECT id FROM tenant WHERE id = :tenant_id")
_person, _agent = _Held(_PERSON, "u, t"), _Held(_AGENT, "d, u, t")
_roles = Prepared(_ROLES)


@dataclass(slots=True)
class Acting:
    """The user behind a call, as the database knows them in this transaction."""

    id: str
    org_id: str
    display_name: str
    scopes: frozenset[Scope] | None  # None: a person, who stays in none
    _connection: Connection
    _tenant_id: str
    _now: datetime
    _roles: tuple[str, ...] | None = None

    @property
    def roles(self) -> Sequence[str]:
        """Codes of the roles they hold now; asked for only where a rule reads them."""
        if self._roles is None:
            found = _roles.run(
                self._connection, tenant_id=self._tenant_id, user_id=self.id, now=self._now
            )
            self._roles = tuple(row[0] for row in found)
        return self._roles


def now_acting(
    connection: Connection, principal: Principal, now: datetime, *, alone: bool = False
) -> Acting:
    """The user behind `principal`, if everything the principal stands on still stands.

    With `alone`, all others who act in the tenant have come to their end, and new ones wait.

    Raises:
        SignInRequired: the user was disabled, or the tenant suspended.
        InvalidToken: the delegation ended, or the agent is no longer there.
        DelegationPaused: the user paused the agent.
    """
    if alone:
        _tenant.run(connection, tenant_id=principal.tenant_id)
    found: Any = (_person_now if principal.is_person else _agent_now)(connection, principal, now)
    return Acting(
        principal.user_id,
        found.org_id,
        found.display_name,
        None if principal.is_person else _scopes(found.scopes) & principal.scopes,
        connection,
        principal.tenant_id,
        now,
    )


def _person_now(connection: Connection, principal: Principal, _now: datetime) -> Any:
    who = {"tenant_id": principal.tenant_id, "user_id": principal.user_id}
    found = _person.run(connection, **who).first()
    if found is None:
        raise SignInRequired
    return found


def _agent_now(connection: Connection, principal: Principal, now: datetime) -> Any:
    found = _agent.run(
        connection,
        tenant_id=principal.tenant_id,
        user_id=principal.user_id,
        delegation_id=principal.delegation_id,
        agent_id=principal.agent_id,
        epoch=principal.epoch,
        now=now,
    ).first()
    if found is None:
        raise InvalidToken
    if found.paused_at is not None:
        raise DelegationPaused
    return found


def _scopes(stored: Any) -> frozenset[Scope]:
    return Scope.among(json.of_column(stored))
