"""The ES256 keys we sign with: one active per use, replaced in time or at once (SEC-81).

Public parts are kept in memory and read again when any process changes them; the private part is
sealed in its row and opened by the unit that signs, so a key that was dropped signs nothing more.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet
from sqlalchemy import text, update
from sqlmodel import Session, col, select

from app.identity.facts import AccessChanged, record
from app.identity.models import KeyState, KeyUse, SigningKey, TokenFamily
from app.identity.principal import Principal
from app.kernel import clock, db, events, sealing
from app.kernel.db import Work
from app.kernel.events import Broadcast

ALGORITHMS = ["ES256"]
LIFE = timedelta(days=90)
PUBLISHED_FOR = timedelta(hours=24)  # before it signs
VERIFIES_FOR: dict[KeyUse, timedelta | None] = {
    KeyUse.ACCESS_TOKEN: timedelta(minutes=10),
    KeyUse.ID_JAG: timedelta(hours=24),
    KeyUse.CHECKPOINT: None,  # for ever
}
LOOK_AGAIN_S = 2.0  # while news of other processes does not arrive


@dataclass(frozen=True, slots=True, kw_only=True)
class SigningKeysChanged(Broadcast):
    """A key was made, took over, or went; every process reads them again."""


@dataclass(frozen=True, slots=True)
class _Known:
    use: KeyUse
    state: KeyState
    retired_at: datetime | None
    key: ECKey

    def verifies(self) -> bool:
        if self.state == KeyState.ACTIVE:
            return True
        window = VERIFIES_FOR[self.use]
        return self.state == KeyState.RETIRING and (
            window is None or self.retired_at is None or clock.now() < self.retired_at + window
        )


class _Cache:
    """The published keys, by kid."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        self.known: dict[str, _Known] = {}
        self.read_at_s = float("-inf")

    def read(self, session: Session) -> None:
        self.known = {row.kid: _known(row) for row in _published(session)}
        self.read_at_s = clock.monotonic_s()


_cache = _Cache()
_listening = threading.Lock()
_ends_listening: list[Any] = []


def prepare() -> None:
    """Make the first keys where there are none, keep the public ones; at start, not in a unit."""
    db.transact_now(_make_missing)
    db.read_now(_cache.read)
    with _listening:
        if not _ends_listening:
            _ends_listening.append(events.subscribe(SigningKeysChanged, _read_again))


def close() -> None:
    """Forget every key, as the process lets go of its database."""
    with _listening:
        while _ends_listening:
            _ends_listening.pop()()
    _cache.forget()


def reload() -> None:
    """Read the keys again, as a command in another process may have changed them; not in a unit."""
    db.read_now(_cache.read)


async def freshen() -> None:
    """Read the keys again if news of other processes may have been missed.

    On SQLite such news never arrives, and `rotate-keys --emergency` is another process.
    """
    may_miss = db.is_sqlite() or not db.hears_others()
    if may_miss and clock.monotonic_s() - _cache.read_at_s > LOOK_AGAIN_S:
        await db.read(_cache.read)


def verifying(use: KeyUse, kid: str) -> KeySet | None:
    """The set of the one key `kid`, if it verifies what is signed for `use` now."""
    known = _cache.known.get(kid)
    if known is None or known.use != use or not known.verifies():
        return None
    return KeySet([known.key])


def published() -> list[dict[str, Any]]:
    """The public keys as a JWK set lists them: next, active and those that still verify."""
    return [
        {**known.key.as_dict(private=False), "use": "sig", "alg": ALGORITHMS[0]}
        for known in _cache.known.values()
        if known.state == KeyState.NEXT or known.verifies()
    ]


def signs_with(session: Session, use: KeyUse) -> ECKey:
    """The active private key of `use`, with its kid."""
    row = session.exec(
        select(SigningKey).where(SigningKey.use == use, SigningKey.state == KeyState.ACTIVE)
    ).one()
    if row.private is None:  # pragma: no cover - an active key has one
        raise RuntimeError("the active key has no private part")
    jwk = orjson.loads(sealing.unseal(row.private, _label(row.kid)))
    return ECKey.import_key(jwk)


def sign(session: Session, use: KeyUse, payload: bytes, typ: str) -> str:
    """`payload` as a compact JWS of type `typ` under the active key of `use`."""
    key = signs_with(session, use)
    header = {"typ": typ, "alg": ALGORITHMS[0], "kid": key.kid}
    return jws.serialize_compact(header, payload, KeySet([key]), algorithms=ALGORITHMS)


def verified(use: KeyUse, token: str) -> tuple[dict[str, Any], bytes] | None:
    """Header and payload of a compact JWS that a key of `use` signed, or None.

    The header may hold `typ`, `alg` and `kid` and nothing else, and must hold all three.
    """
    try:
        header = _header(token)
        if header.keys() != {"typ", "alg", "kid"} or not isinstance(header["kid"], str):
            return None
        if verifying(use, header["kid"]) is None:
            return None
        payload = _signed_payload(token, header["kid"])
    except (JoseError, ValueError, TypeError):
        return None
    return header, payload


@lru_cache(maxsize=4_096)
def _header(token: str) -> dict[str, Any]:
    return jws.extract_compact(token.encode("ascii")).headers()


@lru_cache(maxsize=4_096)  # a token comes with each request of its five minutes
def _signed_payload(token: str, kid: str) -> bytes:
    # a kid is its key's thumbprint: whether that key still verifies is asked before, each time
    key = _cache.known[kid].key
    return jws.deserialize_compact(token, KeySet([key]), algorithms=ALGORITHMS).payload


def rotate_due(work: Work) -> None:
    """Let time do its part; a unit for the scheduler, hourly or so.

    A key that is 90 days old, less the day its successor is published, gets a successor; a
    published one takes over after 24 h; what verified long enough retires.
    """
    _alone(work)
    now = clock.now()
    changed = False
    for use in KeyUse:
        rows = _of_use(work.session, use)
        active = [row for row in rows if row.state == KeyState.ACTIVE]
        following = [row for row in rows if row.state == KeyState.NEXT]
        if following and following[0].created_at + PUBLISHED_FOR <= now:
            _hand_over(work, active, following[0])
            changed = True
        elif not following and any(_age(row, now) >= LIFE - PUBLISHED_FOR for row in active):
            _make(work, use, KeyState.NEXT)
            changed = True
        changed |= _retire(work, use, rows, now)
    if changed:
        _tell(work, "identity.key.rotate", None)


def rotate(work: Work, actor: Principal | None = None, *, emergency: bool = False) -> None:
    """Replace the keys before their time; a unit.

    The successors are published now and sign in 24 h. In an emergency they sign at once, tokens
    of the old keys are void and every token family ends.
    """
    _alone(work)
    for use in KeyUse:
        rows = _of_use(work.session, use)
        following = [row for row in rows if row.state == KeyState.NEXT]
        if emergency:
            _drop(work, use, rows)
            _make(work, use, KeyState.ACTIVE)
        elif not following:
            _make(work, use, KeyState.NEXT)
    if emergency:
        _end_families(work)
    _tell(work, "identity.key.replace" if emergency else "identity.key.rotate", actor)


def _read_again(_event: SigningKeysChanged) -> None:
    db.read_now(_cache.read)


def _make_missing(work: Work) -> None:
    _alone(work)
    for use in KeyUse:
        if not any(row.state == KeyState.ACTIVE for row in _of_use(work.session, use)):
            _make(work, use, KeyState.ACTIVE)
            work.announce(SigningKeysChanged(tenant_id=""))


def _make(work: Work, use: KeyUse, state: KeyState) -> SigningKey:
    key = ECKey.generate_key("P-256", private=True)
    kid = key.thumbprint()
    jwk = {**key.as_dict(private=True), "kid": kid}
    now = clock.now()
    row = SigningKey(
        kid=kid,
        use=use,
        state=state,
        public_jwk={"kid": kid, **{name: str(part) for name, part in key.as_dict(False).items()}},
        private=sealing.seal(orjson.dumps(jwk), _label(kid)),
        created_at=now,
        activated_at=now if state == KeyState.ACTIVE else None,
    )
    work.session.add(row)
    work.session.flush()
    return row


def _hand_over(work: Work, active: Iterable[SigningKey], following: SigningKey) -> None:
    now = clock.now()
    for row in active:
        row.state, row.retired_at, row.private = KeyState.RETIRING, now, None
        work.session.add(row)
    following.state, following.activated_at = KeyState.ACTIVE, now
    work.session.add(following)
    work.session.flush()


def _retire(work: Work, use: KeyUse, rows: Iterable[SigningKey], now: datetime) -> bool:
    window = VERIFIES_FOR[use]
    over = [
        row
        for row in rows
        if row.state == KeyState.RETIRING
        and window is not None
        and row.retired_at is not None
        and row.retired_at + window <= now
    ]
    for row in over:
        row.state = KeyState.RETIRED
        work.session.add(row)
    return bool(over)


def _drop(work: Work, use: KeyUse, rows: Iterable[SigningKey]) -> None:
    """A checkpoint stays verifiable for ever; what else a lost key signed is void."""
    for row in rows:
        if row.state in {KeyState.NEXT, KeyState.ACTIVE}:
            keeps_verifying = use == KeyUse.CHECKPOINT and row.state == KeyState.ACTIVE
            row.state = KeyState.RETIRING if keeps_verifying else KeyState.RETIRED
            row.retired_at, row.private = clock.now(), None
        elif row.state == KeyState.RETIRING and use != KeyUse.CHECKPOINT:
            row.state = KeyState.RETIRED
        work.session.add(row)


def _end_families(work: Work) -> None:
    live = col(TokenFamily.revoked_at).is_(None)
    tenants = work.session.exec(select(TokenFamily.tenant_id).where(live).distinct()).all()
    work.session.execute(
        update(TokenFamily).where(live).values(revoked_at=clock.now(), revoked_why="keys_replaced")
    )
    for tenant_id in tenants:
        record(work, "identity.token.revoke_all", None, tenant_id=tenant_id, reason="keys_replaced")
        work.announce(AccessChanged(tenant_id=tenant_id, why="keys_replaced", ends=False))


def _tell(work: Work, action: str, actor: Principal | None) -> None:
    record(work, action, actor)
    work.announce(SigningKeysChanged(tenant_id=""))


def _alone(work: Work) -> None:
    """One process at a time, or a first start of two would make two active keys."""
    if work.connection.dialect.name == "postgresql":
        work.connection.execute(text("LOCK TABLE signing_key IN EXCLUSIVE MODE"))


def _published(session: Session) -> list[SigningKey]:
    query = select(SigningKey).where(SigningKey.state != KeyState.RETIRED)
    return list(session.exec(query.order_by(col(SigningKey.created_at), col(SigningKey.kid))))


def _of_use(session: Session, use: KeyUse) -> list[SigningKey]:
    return [row for row in _published(session) if row.use == use]


def _known(row: SigningKey) -> _Known:
    return _Known(
        KeyUse(row.use), KeyState(row.state), row.retired_at, ECKey.import_key({**row.public_jwk})
    )


def _age(row: SigningKey, now: datetime) -> timedelta:
    return now - (row.activated_at or row.created_at)


def _label(kid: str) -> str:
    return f"signing_key:{kid}"
