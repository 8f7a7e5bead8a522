"""Access tokens: short statements of who acts, never of what they may do (security.md, 4).

A token is made and read here alone. Reading it proves who made it and for which door; whether its
user, delegation, agent and client still stand is one SELECT, at every request (SEC-25).
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, StrictStr, ValidationError
from sqlalchemy import Connection
from sqlmodel import Session

from app.identity import doors, signing_keys
from app.identity.models import (
    KeyUse,
)
from app.identity.principal import Principal, Scope
from app.kernel import clock, ids, settings
from app.kernel import json as strict_json
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.kernel.prepared import Prepared

TYPE = "at+jwt"
LIFE_S = 300
LEEWAY_S = 5
CHAIN = 3  # agents that may stand behind each other
LONGEST = 4096  # characters


# How many of the agents behind the one that acts are published and still allowed.
_PARENTS = """
SELECT count(*) FROM delegation p
  JOIN agent pa ON pa.tenant_id = p.tenant_id AND pa.id = p.agent_id AND pa.status = 'published'
 WHERE p.tenant_id = :tenant_id AND p.user_id = :user_id AND p.agent_id IN (:first, :second)
   AND p.revoked_at IS NULL AND (p.expires_at IS NULL OR p.expires_at > :now)
"""
_STANDING = Prepared(f"""
SELECT d.scopes, d.paused_at,
       (SELECT r.id FROM agent_release r WHERE r.tenant_id = a.tenant_id AND r.agent_id = a.id
         ORDER BY r.number DESC LIMIT 1) AS release_id,
       ({_PARENTS}) AS parents,
       ({_PARENTS} AND p.paused_at IS NOT NULL) AS paused_parents
  FROM tenant t
  JOIN "user" u ON u.tenant_id = t.id AND u.id = :user_id
  JOIN delegation d ON d.tenant_id = t.id AND d.id = :delegation_id
   AND d.user_id = u.id AND d.agent_id = :agent_id
  JOIN agent a ON a.tenant_id = t.id AND a.id = d.agent_id
  LEFT JOIN oauth_client c ON c.id = a.client_id
  LEFT JOIN token_family f ON f.tenant_id = t.id AND f.id = :family_id
 WHERE t.id = :tenant_id AND t.status = 'active'
   AND u.status = 'active' AND u.authz_epoch = :epoch
   AND d.revoked_at IS NULL AND (d.expires_at IS NULL OR d.expires_at > :now)
   AND a.status = 'published' AND coalesce(a.client_id, a.id) = :client_id
   AND (a.client_id IS NULL
        OR (c.status = 'active' AND (c.expires_at IS NULL OR c.expires_at > :now)))
   AND (CAST(:family_id AS TEXT) IS NULL OR (f.id IS NOT NULL AND f.revoked_at IS NULL))
""")  # noqa: S608 - a text of ours


class BearerRefused(AppError):
    """A token did not open a door; `headers` say how to get one that does (SEC-26)."""

    def __init__(self, **facts: Any) -> None:
        super().__init__(**facts)
        self.headers: dict[str, str] = {}


class InvalidToken(BearerRefused):
    """Whatever is wrong with a token, it is wrong in the same words (SEC-25)."""

    reason = "invalid_token"
    status = 401
    says = N_("The access token is missing, has ended or is not for this address.")


class InsufficientScope(BearerRefused):
    """The token is good, but its scopes do not reach so far."""

    reason = "insufficient_scope"
    status = 403
    says = N_("The access token does not allow this. Ask for the scopes that are missing.")


class DelegationPaused(BearerRefused):
    """The token is good, but its user or a limit paused the agent."""

    reason = "delegation_paused"
    status = 403
    says = N_("This agent was paused. Its user can let it go on.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """On whose behalf a token is made: a user, the chain of agents, and how it came about.

    `actors` are ids, the agent that acts first.
    """

    tenant_id: str
    user_id: str
    epoch: int
    actors: tuple[str, ...]
    client_id: str
    delegation_id: str
    auth_time: datetime
    amr: tuple[str, ...]
    family_id: str | None = None
    session_id: str | None = None
    ends_at_s: int | None = None  # not later than this, for an exchanged token


class _Actor(BaseModel):
    model_config = ConfigDict(extra="forbid")

    sub: StrictStr
    act: "_Actor | None" = None

    def chain(self) -> tuple[str, ...]:
        return (self.sub, *(self.act.chain() if self.act else ()))


class Claims(BaseModel):
    """The claims of SEC-24, present and typed; what else a token says is not looked at."""

    model_config = ConfigDict(extra="allow", frozen=True)

    iss: StrictStr
    aud: StrictStr
    sub: StrictStr
    tid: StrictStr
    act: _Actor
    client_id: StrictStr
    scope: StrictStr
    dlg: StrictStr
    fam: StrictStr | None = None
    sid: StrictStr | None = None
    epo: StrictInt
    auth_time: StrictInt
    amr: list[StrictStr]
    iat: StrictInt
    exp: StrictInt
    jti: StrictStr = Field(min_length=1)

    @cached_property
    def actors(self) -> tuple[str, ...]:
        """The chain of agents, the one that acts first."""
        return self.act.chain()

    @cached_property
    def scopes(self) -> frozenset[Scope]:
        """The scopes it names; a word that is none counts for nothing."""
        return Scope.among(self.scope.split())


def make(session: Session, standing: Standing, *, scope: str, audience: str) -> str:
    """A signed access token of at most 300 s."""
    now = clock.epoch_s()
    claims: dict[str, Any] = {
        "iss": settings.current().origin,
        "aud": audience,
        "sub": standing.user_id,
        "tid": standing.tenant_id,
        "act": _nested(standing.actors),
        "client_id": standing.client_id,
        "scope": scope,
        "dlg": standing.delegation_id,
        "epo": standing.epoch,
        "auth_time": int(standing.auth_time.timestamp()),
        "amr": list(standing.amr),
        "iat": now,
        "exp": min(now + LIFE_S, standing.ends_at_s or now + LIFE_S),
        "jti": ids.ulid(),
    }
    if standing.family_id:
        claims["fam"] = standing.family_id
    if standing.session_id:
        claims["sid"] = standing.session_id
    payload = strict_json.dumps(claims)
    return signing_keys.sign(session, KeyUse.ACCESS_TOKEN, payload, TYPE)


def read(token: str, audiences: frozenset[str]) -> Claims:
    """The claims of a token of ours for one of `audiences` that has not ended.

    Raises:
        InvalidToken: it is not one.
    """
    if len(token) > LONGEST or not token.isascii():
        raise InvalidToken
    signed = signing_keys.verified(KeyUse.ACCESS_TOKEN, token)
    if signed is None:
        raise InvalidToken
    header, payload = signed
    if header["typ"] != TYPE or header["alg"] != signing_keys.ALGORITHMS[0]:
        raise InvalidToken
    claims = _claims(payload)
    extra = claims.model_extra or {}
    if "cnf" in extra or claims.iss != settings.current().origin or claims.aud not in audiences:
        raise InvalidToken
    _check_times(claims)
    if not 1 <= len(claims.actors) <= CHAIN:
        raise InvalidToken
    return claims


@lru_cache(maxsize=4_096)  # a token comes with each request of its five minutes
def _claims(payload: bytes) -> Claims:
    try:
        return Claims.model_validate(strict_json.loads(payload))
    except (ValidationError, AppError, ValueError):
        raise InvalidToken from None


def principal(session: Session, claims: Claims) -> Principal:
    """Who acts, if everything behind the token stands now; one SELECT.

    Raises:
        InvalidToken, DelegationPaused: as `principal_now`.
    """
    return principal_now(session.connection(), claims)


def principal_now(connection: Connection, claims: Claims) -> Principal:
    """The same in a transaction that goes on, such as that of the call itself.

    Raises:
        InvalidToken: something does not.
        DelegationPaused: all stands, but a delegation of the chain is paused.
    """
    behind, row = sorted(set(claims.actors[1:])), _standing_now(connection, claims)
    if row is None or row.parents != len(behind):
        raise InvalidToken
    if row.paused_at is not None or row.paused_parents:
        raise DelegationPaused
    door = doors.of(claims.aud)
    if door is None or row.release_id is None:
        raise InvalidToken
    return Principal(
        tenant_id=claims.tid,
        user_id=claims.sub,
        agent_release_id=row.release_id,
        delegation_id=claims.dlg,
        session_id=claims.sid,
        channel=door.channel,
        actors=claims.actors,
        scopes=claims.scopes & frozenset(_listed(row.scopes)),
        epoch=claims.epo,
        family_id=claims.fam,
    )


def behind(standing: Standing, subject: Claims) -> Standing:
    """`standing` as an agent that acts behind the one of `subject`, and no longer than it."""
    return replace(standing, actors=(*standing.actors, *subject.actors), ends_at_s=subject.exp)


def left_s(claims: Claims) -> int:
    """How many seconds a token still has."""
    return max(0, claims.exp - clock.epoch_s())


def moment(epoch_s: int) -> datetime:
    """A time of a claim as an aware one."""
    return datetime.fromtimestamp(epoch_s, UTC)


def _check_times(claims: Claims) -> None:
    now = clock.epoch_s()
    if not claims.iat - LEEWAY_S <= now < claims.exp + LEEWAY_S:
        raise InvalidToken
    if not 0 < claims.exp - claims.iat <= LIFE_S:
        raise InvalidToken


def _standing_now(connection: Connection, claims: Claims) -> Any:
    behind = sorted(set(claims.actors[1:]))
    first, second = (*behind, None, None)[:2]
    return _STANDING.run(
        connection,
        tenant_id=claims.tid,
        user_id=claims.sub,
        epoch=claims.epo,
        delegation_id=claims.dlg,
        agent_id=claims.actors[0],
        client_id=claims.client_id,
        family_id=claims.fam,
        first=first,
        second=second,
        now=clock.now(),
    ).first()


def _listed(stored: Any) -> list[str]:
    found: list[str] = strict_json.of_column(stored)
    return found


def _nested(actors: tuple[str, ...]) -> dict[str, Any]:
    first, *rest = actors
    return {"sub": first, "act": _nested(tuple(rest))} if rest else {"sub": first}
