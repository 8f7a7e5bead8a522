"""Token families: the refresh tokens that descend from one grant, and how they end (SEC-27)."""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.identity import facts
from app.identity.facts import AccessChanged
from app.identity.models import Agent, OAuthClient, RefreshToken, TokenFamily
from app.identity.principal import Principal
from app.identity.tokens import Standing
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound

LIFE = timedelta(days=90)
REFRESH_LIFE = timedelta(days=30)


def begin(work: Work, standing: Standing, *, scope: str, resource: str) -> None:
    """Store the family that `standing` names."""
    now = clock.now()
    work.session.add(
        TokenFamily(
            tenant_id=standing.tenant_id,
            id=standing.family_id or "",
            user_id=standing.user_id,
            agent_id=standing.actors[0],
            delegation_id=standing.delegation_id,
            client_id=standing.client_id,
            session_id=standing.session_id,
            scope=scope,
            resource=resource,
            auth_time=standing.auth_time,
            amr=list(standing.amr),
            created_at=now,
            ends_at=now + LIFE,
            last_used_at=now,
        )
    )
    work.session.flush()


def add_refresh(work: Work, family: TokenFamily, secret: str, number: int) -> None:
    """Store one refresh token, as a digest."""
    now = clock.now()
    work.session.add(
        RefreshToken(
            tenant_id=family.tenant_id,
            family_id=family.id,
            number=number,
            secret_sha256=ids.sha256(secret),
            issued_at=now,
            expires_at=min(now + REFRESH_LIFE, family.ends_at),
        )
    )
    work.session.flush()


def take_refresh(work: Work, token: RefreshToken) -> bool:
    """Use a refresh token up: whether this caller, and nobody else, did."""
    done = work.session.execute(
        update(RefreshToken)
        .where(
            col(RefreshToken.tenant_id) == token.tenant_id,
            col(RefreshToken.family_id) == token.family_id,
            col(RefreshToken.number) == token.number,
            col(RefreshToken.used_at).is_(None),
        )
        .values(used_at=clock.now())
        .execution_options(synchronize_session=False)
    )
    return bool(done.rowcount == 1)  # type: ignore[attr-defined]


def note_use(work: Work, family: TokenFamily) -> None:
    """Remember when the family was last used."""
    work.session.execute(
        update(TokenFamily)
        .where(col(TokenFamily.tenant_id) == family.tenant_id, col(TokenFamily.id) == family.id)
        .values(last_used_at=clock.now())
        .execution_options(synchronize_session=False)
    )


def find_refresh(session: Session, secret: str) -> tuple[RefreshToken, TokenFamily] | None:
    """The refresh token of this secret, used ones and those of ended families too."""
    if (tenant_id := ids.tenant_of(secret)) is None:
        return None
    query = (
        select(RefreshToken, TokenFamily)
        .where(
            RefreshToken.tenant_id == tenant_id,
            RefreshToken.secret_sha256 == ids.sha256(secret),
        )
        .where(
            TokenFamily.tenant_id == RefreshToken.tenant_id,
            TokenFamily.id == RefreshToken.family_id,
        )
    )
    return session.exec(query).first()


def one(session: Session, tenant_id: str, family_id: str) -> TokenFamily | None:
    """A family of the tenant."""
    return session.get(TokenFamily, (tenant_id, family_id))


@dataclass(frozen=True, slots=True)
class Granted:
    """An application that may fetch tokens for a user: what for, and for whom it acts."""

    family: TokenFamily
    client_name: str
    agent: Agent


def live_of(session: Session, person: Principal, family_id: str | None = None) -> list[Granted]:
    """The applications with live tokens of a person, the last used first; or one of them."""
    query = (
        select(TokenFamily, OAuthClient.name, Agent)
        .where(TokenFamily.client_id == OAuthClient.id)
        .where(Agent.tenant_id == TokenFamily.tenant_id, Agent.id == TokenFamily.agent_id)
        .where(TokenFamily.tenant_id == person.tenant_id, TokenFamily.user_id == person.user_id)
        .where(col(TokenFamily.revoked_at).is_(None), TokenFamily.ends_at > clock.now())
        .order_by(col(TokenFamily.last_used_at).desc(), col(TokenFamily.id).desc())
    )
    if family_id is not None:
        query = query.where(TokenFamily.id == family_id)
    return [Granted(*row) for row in session.exec(query)]


def own(session: Session, person: Principal, family_id: str) -> Granted:
    """One of a person's live ones.

    Raises:
        NotFound: it is somebody else's, or has ended.
    """
    found = live_of(session, person, family_id)
    if not found:
        raise NotFound
    return found[0]


def end_own(work: Work, person: Principal, family_id: str) -> None:
    """A person takes an application's tokens back: it has to ask again.

    Raises:
        NotFound: it is somebody else's, or has ended.
    """
    own(work.session, person, family_id)
    end(work, person.tenant_id, family_id, "by_user", actor=person)


def end(
    work: Work, tenant_id: str, family_id: str, why: str, *, actor: Principal | None = None
) -> None:
    """End a family, once; its access tokens are void with it."""
    ended = work.session.execute(
        update(TokenFamily)
        .where(
            col(TokenFamily.tenant_id) == tenant_id,
            col(TokenFamily.id) == family_id,
            col(TokenFamily.revoked_at).is_(None),
        )
        .values(revoked_at=clock.now(), revoked_why=why)
        .execution_options(synchronize_session=False)
    )
    family = one(work.session, tenant_id, family_id)
    if family is None:
        return
    facts.record(
        work,
        "identity.token.reuse" if why == "reuse" else "identity.token.revoke",
        actor,
        tenant_id=tenant_id,
        user_id=family.user_id,
        target=("token_family", family_id),
        outcome="refused" if why == "reuse" else "done",
        reason=why,
        details={"client_id": family.client_id, "agent_id": family.agent_id},
    )
    if ended.rowcount:  # type: ignore[attr-defined]
        work.announce(
            AccessChanged(
                tenant_id=tenant_id,
                user_id=family.user_id,
                delegation_id=family.delegation_id,
                ends=False,
                why=why,
            )
        )
