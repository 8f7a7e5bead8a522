"""What a principal may call: one query, no other list (CMD-22).

In it is exactly what is published in the tenant, entitled, permitted in at least one data scope,
and left by the delegation. It is kept for seconds, and dropped at once when rights, features,
delegations or definitions change.
"""

import base64
import binascii
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial

import orjson
from sqlalchemy import ColumnElement, Connection, Engine, Text, and_, cast, or_
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, func

from app.access import entitlements, scope
from app.commands import publishing
from app.commands.descriptors import Descriptor
from app.commands.models import CommandVersion, VersionStatus
from app.commands.publishing import DefinitionsChanged
from app.commands.stored import StoredDefinition
from app.identity import paging
from app.identity.facts import AccessChanged
from app.identity.principal import Principal, Scope
from app.identity.search import LONGEST, TERMS_AT_MOST, fold
from app.kernel import clock, events, keyring
from app.kernel.errors import NotFound

LIVES_S = 4.0  # seconds; with the query itself never older than 5
KEPT = 2_000  # catalogues of a process
DESCRIBED = 4_096  # contents


@dataclass(frozen=True)
class Catalogue:
    """The commands of one principal, by code.

    Attributes:
        tenant_id: whose definitions these are.
    """

    tenant_id: str
    entries: tuple[Descriptor, ...]
    _key: "Key | None" = field(default=None, compare=False, repr=False)

    @property
    def is_recent(self) -> bool:
        """Whether `of` would give this very one: whoever holds it need not ask."""
        return self._key is not None and _kept.get(self._key) is self

    @cached_property
    def by_code(self) -> dict[str, Descriptor]:
        """The same by code."""
        return {each.code: each for each in self.entries}

    @cached_property
    def version(self) -> str:
        """A digest of what is in it: the same catalogue has the same."""
        said = "\n".join(f"{each.code} {each.version} {each.content_hash}" for each in self.entries)
        return hashlib.sha256(said.encode()).hexdigest()

    @cached_property
    def records(self) -> tuple[str, ...]:
        """The record types its commands are about."""
        return tuple(sorted({each.definition.record or "" for each in self.entries} - {""}))

    def find(self, code: str) -> Descriptor | None:
        """The command with this code, if it is in the catalogue."""
        return self.by_code.get(code)

    def one(self, code: str) -> Descriptor:
        """The same.

        Raises:
            NotFound: it is not in the catalogue, or there is no such command: the two look alike.
        """
        found = self.find(code)
        if found is None:
            raise NotFound
        return found

    def searched(
        self,
        q: str = "",
        *,
        risk: str = "",
        record: str = "",
        needs_approval: bool | None = None,
    ) -> tuple[Descriptor, ...]:
        """Those with every word of `q` in code, names or hint, in any language, and as chosen."""
        terms = fold(q[:LONGEST]).split()[:TERMS_AT_MOST]
        return tuple(
            each
            for each in self.entries
            if all(term in each.search for term in terms)
            and (not risk or each.definition.risk == risk)
            and (not record or each.definition.record == record)
            and (needs_approval is None or each.definition.needs_approval is needs_approval)
        )


@dataclass(frozen=True, slots=True)
class Page:
    """Some of a list, and the cursors of its neighbours, None where there is none."""

    entries: tuple[Descriptor, ...]
    total: int
    previous: str | None = None
    next: str | None = None


def of(session: Session, principal: Principal) -> Catalogue:
    """The principal's catalogue, as it is or was at most five seconds ago."""
    _listen()
    key = _key(session.get_bind().engine, principal)
    if (found := _kept.get(key)) is not None:
        return found
    asked, began = _kept.generation(principal.tenant_id), _Moment.now()
    made = Catalogue(principal.tenant_id, _entries(session, principal), key)
    _kept.put(key, made, began, asked)
    return made


def kept(connection: Connection, principal: Principal) -> Catalogue | None:
    """The catalogue that `of` would give without asking, None where it would have to."""
    return _kept.get(_key(connection.engine, principal))


def page(found: Sequence[Descriptor], cursor: str | None, size: int = paging.SIZE) -> Page:
    """The part of a list, sorted by code, at a signed cursor; one that is not ours is the first."""
    place = _place(cursor)
    codes = [each.code for each in found]
    begin = 0
    match place:
        case (paging.ON, code):
            begin = sum(1 for each in codes if each <= code)
        case (paging.BACK, code):
            begin = max(0, sum(1 for each in codes if each < code) - size)
    part = tuple(found[begin : begin + size])
    return Page(
        part,
        len(found),
        previous=_cursor(paging.BACK, part[0].code) if part and begin > 0 else None,
        next=_cursor(paging.ON, part[-1].code) if begin + size < len(found) else None,
    )


def published(session: Session, tenant_id: str) -> tuple[Descriptor, ...]:
    """Every command in force in a tenant, whoever may call it: for administrators and counts."""
    return _described(session, tenant_id, [_is_current(tenant_id)])


def is_permitted(principal: Principal, definition: StoredDefinition) -> bool:
    """Whether the credential itself leaves room for the command, whatever its user may do.

    An agent never has what is for people (SEC-2); it needs a scope to read, another to write.
    """
    if principal.is_person:
        return True
    if definition.people_only:
        return False
    needed = {Scope.COMMANDS_INVOKE}
    if not definition.writes:
        needed |= {Scope.COMMANDS_READ, Scope.CATALOG_READ}
    return bool(needed & principal.scopes)


def forget() -> None:
    """Drop every catalogue: packs were discovered anew."""
    _kept.clear()


def _listen() -> None:
    """Let changes of rights and definitions drop what is kept; once in a process."""
    global _is_listening
    if not _is_listening:
        _is_listening = True
        events.subscribe(AccessChanged, lambda change: _kept.drop(change.tenant_id))
        events.subscribe(DefinitionsChanged, lambda change: _kept.drop(change.tenant_id))


_is_listening = False

Key = tuple[str, str, str, str, frozenset[Scope], bool, int]


@dataclass(frozen=True, slots=True)
class _Moment:
    """By both clocks: rights end by the wall's, which may be set."""

    measured_s: float
    at: datetime

    @classmethod
    def now(cls) -> "_Moment":
        return cls(clock.monotonic_s(), clock.now())

    @property
    def is_recent(self) -> bool:
        passed = abs((clock.now() - self.at).total_seconds())
        return max(passed, clock.monotonic_s() - self.measured_s) < LIVES_S


@dataclass(slots=True)
class _Kept:
    """Catalogues of this process; an answer that was overtaken by a change is not kept."""

    catalogues: dict[Key, tuple[Catalogue, _Moment]] = field(default_factory=dict)
    generations: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def get(self, key: Key) -> Catalogue | None:
        found = self.catalogues.get(key)
        return found[0] if found is not None and found[1].is_recent else None

    def put(self, key: Key, made: Catalogue, began: _Moment, generation: int) -> None:
        with self.lock:
            if self.generations.get(key[1], 0) != generation:
                return
            if len(self.catalogues) >= KEPT:
                self.catalogues.clear()
            self.catalogues[key] = (made, began)

    def generation(self, tenant_id: str) -> int:
        return self.generations.get(tenant_id, 0)

    def drop(self, tenant_id: str) -> None:
        with self.lock:
            self.generations[tenant_id] = self.generations.get(tenant_id, 0) + 1
            for key in [each for each in self.catalogues if each[1] == tenant_id]:
                del self.catalogues[key]

    def clear(self) -> None:
        with self.lock:
            self.catalogues.clear()
            self.generations = {
                tenant_id: number + 1 for tenant_id, number in self.generations.items()
            }


_kept = _Kept()
_descriptors: dict[tuple[str, int], Descriptor] = {}


def _key(engine: Engine, principal: Principal) -> Key:
    return (
        str(engine.url.database),  # a process may open another one
        principal.tenant_id,
        principal.user_id,
        principal.delegation_id or "",
        principal.scopes,
        principal.is_person,
        principal.epoch,
    )


def _entries(session: Session, principal: Principal) -> tuple[Descriptor, ...]:
    content = CommandVersion.definition
    permission, feature = _text(content, "permission"), _text(content, "feature")
    held = scope.held(principal).subquery()
    conditions = [
        _is_current(principal.tenant_id),
        permission.in_(sql_select(held.c.permission)),
        or_(feature.is_(None), feature.in_(entitlements.entitled(principal.tenant_id))),
    ]
    found = _described(session, principal.tenant_id, conditions)
    return tuple(each for each in found if is_permitted(principal, each.definition))


def _described(
    session: Session, tenant_id: str, conditions: Sequence[ColumnElement[bool]]
) -> tuple[Descriptor, ...]:
    """Descriptors of the versions for which the conditions hold; a content is read once."""
    query = sql_select(
        col(CommandVersion.id),
        col(CommandVersion.code),
        col(CommandVersion.version),
        col(CommandVersion.content_hash),
    ).where(col(CommandVersion.tenant_id) == tenant_id, *conditions)
    # sorted here: a database may order `.` and `_` by its language, and cursors are compared here
    rows = sorted(session.execute(query).all(), key=lambda row: str(row.code))
    known = {row.id: _descriptors.get((row.content_hash, row.version)) for row in rows}
    unread = [id for id, found in known.items() if found is None]
    known |= _read(session, tenant_id, unread)
    return tuple(found for found in known.values() if found is not None)


def _read(session: Session, tenant_id: str, wanted: Sequence[str]) -> dict[str, Descriptor]:
    read: dict[str, Descriptor] = {}
    if len(_descriptors) + len(wanted) > DESCRIBED:
        _descriptors.clear()
    content = cast(col(CommandVersion.definition), Text)
    for begin in range(0, len(wanted), 500):  # parameters of one statement have an end
        query = sql_select(
            *(col(CommandVersion.id), col(CommandVersion.version)),
            *(col(CommandVersion.content_hash), content),
        ).where(
            col(CommandVersion.tenant_id) == tenant_id,
            col(CommandVersion.id).in_(wanted[begin : begin + 500]),
        )
        for id, version, digest, text in session.execute(query):
            definition = publishing.parsed(digest, partial(orjson.loads, text))
            made = Descriptor(definition, version, digest)
            read[id] = _descriptors[digest, version] = made
    return read


def _is_current(tenant_id: str) -> ColumnElement[bool]:
    """The newest version that is no draft, if it is not retired."""
    newest = CommandVersion.__table__.alias("newest")  # type: ignore[attr-defined]
    return and_(
        col(CommandVersion.status) == VersionStatus.PUBLISHED,
        col(CommandVersion.version)
        == sql_select(func.max(newest.c.version))
        .where(
            newest.c.tenant_id == tenant_id,
            newest.c.code == CommandVersion.code,
            newest.c.status != VersionStatus.DRAFT,
        )
        .correlate(CommandVersion.__table__)  # type: ignore[attr-defined]
        .scalar_subquery(),
    )


def _text(content: object, name: str) -> ColumnElement[str]:
    text: ColumnElement[str] = col(content)[name].as_string()
    return text


def _cursor(direction: str, code: str) -> str:
    place = base64.urlsafe_b64encode(f"{direction}{code}".encode()).decode().rstrip("=")
    return f"{place}.{keyring.sign(paging.PURPOSE, place)}"


def _place(cursor: str | None) -> tuple[str, str] | None:
    if not cursor or len(cursor) > paging.LONGEST:
        return None
    signed, _, mac = cursor.rpartition(".")
    if not keyring.verifies(paging.PURPOSE, signed, mac):
        return None
    try:
        padded = signed.encode("ascii") + b"=" * (-len(signed) % 4)
        said = base64.b64decode(padded, b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return (said[:1], said[1:]) if said[:1] in {paging.BACK, paging.ON} else None
