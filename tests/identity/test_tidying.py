"""What is over is forgotten in time, and what still counts stays."""

from datetime import timedelta

import pytest
from sqlmodel import Session, SQLModel, col, func, select

from app.identity import csrf, sessions, throttle, tidying
from app.identity.models import (
    BrowserSession,
    OAuthRequest,
    OneTimeLink,
    PasskeyChallenge,
    RefreshToken,
    SetupLink,
    SignInFailure,
    TokenFamily,
)
from app.kernel import clock as clocks
from app.kernel import db, ids, keyring
from app.kernel.db import Work
from tests.clock import Clock
from tests.identity.test_users import open_family
from tests.people import World

SHORT = (OAuthRequest, PasskeyChallenge, SetupLink)
LONG = (BrowserSession, OneTimeLink, RefreshToken, TokenFamily)


def count(session: Session, table: type[SQLModel]) -> int:
    return session.exec(select(func.count()).select_from(table)).one()


def counts(*tables: type[SQLModel]) -> dict[str, int]:
    return {table.__name__: db.read_now(count, table) for table in tables}


def leave_something_of_each(work: Work, world: World) -> None:
    alice, soon = world.acme["alice"], clocks.now() + timedelta(minutes=10)
    throttle.failed(work, world.acme.id, "alice", "192.0.2.0/24")
    work.session.add(OAuthRequest(id=ids.ulid(), parameters={}, expires_at=soon))
    work.session.add(SetupLink(secret_sha256=ids.sha256("setup"), expires_at=soon))
    work.session.add(
        PasskeyChallenge(
            challenge_sha256=ids.sha256("challenge"),
            purpose="sign_in",
            bound_to="",
            expires_at=soon,
        )
    )
    work.session.add(
        OneTimeLink(
            tenant_id=world.acme.id,
            id=ids.ulid(),
            purpose="reset",
            user_id=alice.id,
            secret_sha256=ids.sha256("link"),
            expires_at=soon,
        )
    )
    family = work.session.exec(
        select(TokenFamily).where(col(TokenFamily.user_id) == alice.id)
    ).first()
    assert family is not None
    work.session.add(
        RefreshToken(
            tenant_id=family.tenant_id,
            family_id=family.id,
            number=7,
            secret_sha256=ids.sha256("refresh"),
            issued_at=soon,
            expires_at=soon,
        )
    )


def test_everything_goes_when_its_time_is_over_and_not_before(clock: Clock, world: World) -> None:
    db.transact_now(open_family, world)
    db.transact_now(leave_something_of_each, world)
    made = counts(*SHORT, *LONG, SignInFailure)
    assert all(made.values())

    db.transact_now(tidying.tidy)
    assert counts(*SHORT, *LONG, SignInFailure) == made

    clock.move(days=2)
    db.transact_now(tidying.tidy)
    assert not any(counts(*SHORT, SignInFailure).values())
    assert counts(*LONG) == {name: made[name] for name in counts(*LONG)}

    clock.move(days=150)
    db.transact_now(tidying.tidy)
    assert not any(counts(*LONG).values())


@pytest.mark.requirement("SEC-82")
def test_a_replaced_form_key_counts_as_long_as_a_session_may_last(
    clock: Clock, world: World
) -> None:
    token = csrf.of_session("session")
    db.transact_now(keyring.rotate, csrf.PURPOSE)

    clock.move(seconds=int(sessions.LONGEST.total_seconds()) - 1)
    db.transact_now(tidying.tidy)
    keyring.reload()
    assert csrf.is_of_session(token, "session")

    clock.move(seconds=2)
    db.transact_now(tidying.tidy)
    keyring.reload()
    assert not csrf.is_of_session(token, "session")
    assert csrf.is_of_session(csrf.of_session("session"), "session")
