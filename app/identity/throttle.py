"""Guessing gets slow: a growing wait for one (account, address prefix), kept as rows (SEC-41)."""

import ipaddress
from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlmodel import Session, col

from app.identity.models import SignInFailure
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import TooMany

FREE = 4  # failures before the first wait
FIRST_WAIT_S, LONGEST_WAIT_S = 1, 300
FORGOTTEN_AFTER = timedelta(hours=24)


def check(session: Session, tenant_id: str, login: str, ip_prefix: str) -> None:
    """Let a try pass, or not yet.

    Raises:
        TooMany: this pair failed too often; others are not held up by it.
    """
    row = session.get(SignInFailure, (tenant_id, ids.sha256(login), ip_prefix))
    if row is not None and (wait := (row.blocked_until - clock.now()).total_seconds()) > 0:
        raise TooMany(retry_after_s=int(wait) + 1)


def failed(work: Work, tenant_id: str, login: str, ip_prefix: str) -> None:
    """Count a failure; from the fifth on the wait doubles, 1 s to 5 min."""
    now = clock.now()
    key = (tenant_id, ids.sha256(login), ip_prefix)
    row = work.session.get(SignInFailure, key, with_for_update=True)
    if row is None:
        row = SignInFailure(
            tenant_id=tenant_id,
            account_sha256=key[1],
            ip_prefix=ip_prefix,
            last_failed_at=now,
            blocked_until=now,
        )
    elif now - row.last_failed_at > FORGOTTEN_AFTER:
        row.failures = 0
    row.failures += 1
    row.last_failed_at = now
    row.blocked_until = now + _wait(row.failures)
    work.session.add(row)


def succeeded(work: Work, tenant_id: str, login: str, ip_prefix: str) -> None:
    """Forget the failures of this pair."""
    row = work.session.get(SignInFailure, (tenant_id, ids.sha256(login), ip_prefix))
    if row is not None:
        work.session.delete(row)


def prefix_of(address: str) -> str:
    """The network an address is counted in: /24 of IPv4, /56 of IPv6."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "unknown"
    bits = 24 if parsed.version == 4 else 56
    return str(ipaddress.ip_network((parsed, bits), strict=False))


def forget_old(work: Work, before: datetime) -> None:
    """Drop pairs that did not fail since `before`; run by the scheduler."""
    work.session.execute(delete(SignInFailure).where(col(SignInFailure.last_failed_at) < before))


def _wait(failures: int) -> timedelta:
    if failures <= FREE:
        return timedelta(0)
    return timedelta(seconds=min(FIRST_WAIT_S * 2 ** min(failures - FREE - 1, 20), LONGEST_WAIT_S))
