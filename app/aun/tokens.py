"""Access tokens of outside AIDs, and the refresh tokens that get new ones (aun.md, 4.4).

Another kind than ours (SEC-30): a key of each tenant's own, `typ` `aun+jwt`, audience `aun`. They
prove an AID to AUN's doors, and are nothing anywhere else.
"""

from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet
from sqlalchemy import ColumnElement, delete, update
from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.errors import BadToken
from app.aun.models import IdentityStatus
from app.aun.pki import issuers, keys
from app.aun.pki_models import RefreshToken, TokenKey
from app.identity.models import Tenant, TenantStatus
from app.kernel import clock, ids, sealing
from app.kernel.db import Work

TYPE, AUDIENCE, ALGORITHM = "aun+jwt", "aun", "ES256"
LIFE_S = 7_200
CHAIN_LIVES, CHAIN_LENGTH = timedelta(days=30), 720
PAUSE = timedelta(seconds=10)  # between two refreshes of a chain
KEY_LIVES = timedelta(days=90)
CLAIMS = {"aid", "sub", "iss", "aud", "iat", "exp", "jti"}


@dataclass(frozen=True, slots=True)
class Pair:
    """What a login or a refresh gives."""

    access_token: str
    refresh_token: str
    expires_in: int = LIFE_S


class NoRefresh(Exception):
    """The refresh token gives nothing; `says` is what the client reads."""

    def __init__(self, says: str, *, needs_login: bool) -> None:
        super().__init__(says)
        self.says, self.needs_login = says, needs_login


def access(work: Work, tenant_id: str, aid: str) -> str:
    """A new access token."""
    now = clock.epoch_s()
    claims = {
        "aid": aid,
        "sub": aid,
        "iss": _issuer(work.session, tenant_id),
        "aud": AUDIENCE,
        "iat": now,
        "exp": now + LIFE_S,
        "jti": ids.ulid(),
    }
    row = _signing_key(work, tenant_id)
    header = {"alg": ALGORITHM, "typ": TYPE, "kid": row.kid}
    keyset = KeySet([_jwk(row.tenant_id, row.kid, row.key_sealed)])
    return jws.serialize_compact(header, orjson.dumps(claims), keyset, algorithms=[ALGORITHM])


def verify(session: Session, token: str) -> tuple[str, str]:
    """The tenant and the AID that an access token proves, here and now.

    Raises:
        BadToken: it proves nothing, or not any more.
    """
    claims, tenant_id = _signed(session, token)
    aid, now = claims["aid"], clock.epoch_s()
    is_current = claims["iat"] <= now + 60 and now < claims["exp"]
    is_ours = claims["iss"] == _issuer(session, tenant_id) and claims["aud"] == AUDIENCE
    if not (is_ours and is_current and claims["sub"] == aid):
        raise BadToken("token expired or not for this server")
    found = queries.identity(session, tenant_id, aid)
    if found is None or found.status != IdentityStatus.ACTIVE:
        raise BadToken("token of an aid that is not active")
    if found.tokens_from is not None and claims["iat"] < found.tokens_from.timestamp():
        raise BadToken("token was revoked")
    tenant = session.get(Tenant, tenant_id)
    if tenant is None or tenant.status != TenantStatus.ACTIVE:
        raise BadToken("tenant is not active")
    return tenant_id, aid


def begin(work: Work, tenant_id: str, aid: str) -> Pair:
    """The tokens of a login: the first of a chain."""
    return _pair(work, tenant_id, aid, None)


def refresh(work: Work, refresh_token: str) -> Pair:
    """The next tokens of a chain; the refresh token that came is used up.

    Raises:
        NoRefresh: it is unknown, used, revoked, too old, or comes too soon.
    """
    found = _refresh_row(work.session, refresh_token)
    now = clock.now()
    if found is None or found.revoked_at or found.expires_at <= now or not _may(work, found):
        raise NoRefresh("invalid_or_expired_refresh_token", needs_login=True)
    if found.number and found.created_at + PAUSE > now:
        raise NoRefresh("refresh_too_soon", needs_login=False)
    if not _take(work, found):
        raise NoRefresh("invalid_or_expired_refresh_token", needs_login=True)
    if found.number + 1 >= CHAIN_LENGTH:
        raise NoRefresh("invalid_or_expired_refresh_token", needs_login=True)
    return _pair(work, found.tenant_id, found.aid, found)


def revoke(work: Work, tenant_id: str, aid: str) -> None:
    """End the chains of an AID, and every access token that was made for it."""
    work.session.execute(
        update(RefreshToken)
        .where(col(RefreshToken.tenant_id) == tenant_id, col(RefreshToken.aid) == aid)
        .where(col(RefreshToken.revoked_at).is_(None))
        .values(revoked_at=clock.now())
    )
    found = queries.identity(work.session, tenant_id, aid)
    if found is not None:
        found.tokens_from = clock.now()
        work.session.add(found)


def rotate(work: Work) -> None:
    """Let keys that are 90 days old sign nothing more; what they signed stays valid."""
    _retire(work, col(TokenKey.created_at) < clock.now() - KEY_LIVES)


def replace_keys(work: Work) -> None:
    """Let every tenant's next token be signed by a new key, before its time."""
    _retire(work)


def tidy(work: Work) -> None:
    """Let go of tokens and keys that are over."""
    over = col(TokenKey.retired_at) < clock.now() - timedelta(seconds=2 * LIFE_S)
    work.session.execute(delete(TokenKey).where(over))
    work.session.execute(delete(RefreshToken).where(col(RefreshToken.expires_at) < clock.now()))


def _retire(work: Work, *which: ColumnElement[bool]) -> None:
    live = col(TokenKey.retired_at).is_(None)
    work.session.execute(update(TokenKey).where(live, *which).values(retired_at=clock.now()))


def _pair(work: Work, tenant_id: str, aid: str, before: RefreshToken | None) -> Pair:
    secret, now = ids.secret(tenant_id), clock.now()
    started_at = before.chain_started_at if before else now
    work.session.add(
        RefreshToken(
            tenant_id=tenant_id,
            digest=ids.sha256(secret),
            aid=aid,
            chain_id=before.chain_id if before else ids.ulid(),
            number=before.number + 1 if before else 0,
            chain_started_at=started_at,
            created_at=now,
            expires_at=started_at + CHAIN_LIVES,
        )
    )
    return Pair(access(work, tenant_id, aid), secret)


def _refresh_row(session: Session, refresh_token: str) -> RefreshToken | None:
    tenant_id = ids.tenant_of(refresh_token)
    key = (tenant_id, ids.sha256(refresh_token))
    return session.get(RefreshToken, key) if tenant_id else None


def _may(work: Work, row: RefreshToken) -> bool:
    identity = queries.identity(work.session, row.tenant_id, row.aid)
    tenant = work.session.get(Tenant, row.tenant_id)
    is_active = identity is not None and identity.status == IdentityStatus.ACTIVE
    return is_active and tenant is not None and tenant.status == TenantStatus.ACTIVE


def _take(work: Work, row: RefreshToken) -> bool:
    """Whether it was unused until now; of two at once, one gets it."""
    taken = work.session.execute(
        update(RefreshToken)
        .where(col(RefreshToken.tenant_id) == row.tenant_id, col(RefreshToken.digest) == row.digest)
        .where(col(RefreshToken.used_at).is_(None), col(RefreshToken.revoked_at).is_(None))
        .values(used_at=clock.now())
    )
    return bool(taken.rowcount == 1)  # type: ignore[attr-defined]


def _issuer(session: Session, tenant_id: str) -> str:
    return f"auth.{issuers.domain_of(session, tenant_id)}"


def _signing_key(work: Work, tenant_id: str) -> TokenKey:
    query = select(TokenKey).where(
        TokenKey.tenant_id == tenant_id, col(TokenKey.retired_at).is_(None)
    )
    found = work.session.exec(query.order_by(col(TokenKey.kid).desc())).first()
    if found is not None:
        return found
    kid = ids.ulid()
    made = TokenKey(
        tenant_id=tenant_id,
        kid=kid,
        key_sealed=sealing.seal(keys.scalar(keys.generate()), _label(tenant_id, kid)),
        created_at=clock.now(),
    )
    work.session.add(made)
    work.session.flush()
    return made


def _signed(session: Session, token: str) -> tuple[dict[str, Any], str]:
    """The claims of a token that a key of a tenant of ours signed, and that tenant."""
    try:
        header = jws.extract_compact(token.encode("ascii")).headers()
        if header.keys() != {"alg", "typ", "kid"} or header["typ"] != TYPE:
            raise BadToken("not an AUN access token")
        row = _key(session, header["kid"])
        keyset = KeySet([_jwk(row.tenant_id, row.kid, row.key_sealed)])
        payload = jws.deserialize_compact(token, keyset, algorithms=[ALGORITHM]).payload
        claims = orjson.loads(payload)
    except (JoseError, ValueError, TypeError) as fault:
        raise BadToken("not an AUN access token") from fault
    if claims.keys() != CLAIMS:
        raise BadToken("not an AUN access token")
    return claims, row.tenant_id


def _key(session: Session, kid: object) -> TokenKey:
    is_one = isinstance(kid, str) and ids.is_ulid(kid)
    row = session.exec(select(TokenKey).where(TokenKey.kid == kid)).first() if is_one else None
    if row is None:
        raise BadToken("signed with a key that is not ours")
    return row


@lru_cache(maxsize=256)
def _jwk(tenant_id: str, kid: str, key_sealed: bytes) -> ECKey:
    key = keys.of_scalar(sealing.unseal(key_sealed, _label(tenant_id, kid)))
    return ECKey.import_key(keys.pem(key), {"kid": kid})


def _label(tenant_id: str, kid: str) -> str:
    return f"aun_token:{tenant_id}:{kid}"
