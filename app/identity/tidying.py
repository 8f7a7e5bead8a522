"""What identity forgets when its time is over: codes, requests, links, sessions and form keys."""

from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlmodel import col, select

from app.identity import csrf, paging, sessions, throttle
from app.identity.models import (
    AuthorizationCode,
    BrowserSession,
    DeviceCode,
    OAuthClient,
    OAuthRequest,
    OidcState,
    OneTimeLink,
    PasskeyChallenge,
    RefreshToken,
    SetupLink,
    TokenFamily,
    UsedAssertion,
)
from app.kernel import clock, keyring
from app.kernel.db import Work

SHORT_LIVED = (
    AuthorizationCode,
    DeviceCode,
    OAuthRequest,
    OidcState,
    PasskeyChallenge,
    SetupLink,
    UsedAssertion,
)
KEPT = timedelta(days=1)  # after its end, so that a late second use is still told from a stranger's
LONG_KEPT = timedelta(days=30)


def tidy(work: Work) -> None:
    """Forget what ended long enough ago."""
    now = clock.now()
    throttle.forget_old(work, now - KEPT)
    for purpose in (csrf.PURPOSE, paging.PURPOSE):  # as long as a page may lie open
        keyring.end_retiring(work, purpose, now - sessions.LONGEST)
    for table in SHORT_LIVED:
        work.session.execute(delete(table).where(col(table.expires_at) < now - KEPT))
    _long_ended(work, now - LONG_KEPT)
    work.session.execute(delete(OAuthClient).where(col(OAuthClient.expires_at) < now))


def _long_ended(work: Work, before: datetime) -> None:
    work.session.execute(delete(OneTimeLink).where(col(OneTimeLink.expires_at) < before))
    work.session.execute(delete(BrowserSession).where(col(BrowserSession.ends_at) < before))
    ended = (
        (col(TokenFamily.tenant_id) == RefreshToken.tenant_id)
        & (col(TokenFamily.id) == RefreshToken.family_id)
        & (col(TokenFamily.ends_at) < before)
    )
    work.session.execute(delete(RefreshToken).where(select(TokenFamily.id).where(ended).exists()))
    work.session.execute(delete(TokenFamily).where(col(TokenFamily.ends_at) < before))
