"""The verifier: is the trail what was written, whole and in order? Offline, read-only (SEC-78).

It reads each chain once, in batches, and holds every entry against the one before it, against the
signed checkpoints and the head; slices add checks of their rows against their entries.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain as together
from pathlib import Path
from typing import Any

import orjson
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, KeySet
from sqlalchemy import Connection, text
from sqlmodel import Session, select

from app.audit import chain, checkpoints
from app.audit.checkpoints import Checkpoint
from app.audit.models import AuditHead
from app.identity.models import KeyUse, SigningKey, Tenant
from app.kernel import db
from app.kernel.i18n import N_

BATCH = 2_000  # rows in memory at once
SHOWN = 20  # problems of one kind that are listed
ASKED = 200_000  # the newest entries that are looked at while somebody waits for it


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong. `seq` is the entry, None without one; `says` is English source text."""

    seq: int | None
    says: str
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The sentence in English, for the command."""
        return self.says % self.facts


@dataclass(slots=True)
class TenantReport:
    """What was found of one tenant."""

    tenant_id: str
    slug: str
    entries: int = 0
    checkpoints: int = 0
    head_seq: int = 0
    since: int = 0  # the entry it began with; 0: the first
    problems: list[Problem] = field(default_factory=list)

    @property
    def first_bad_seq(self) -> int | None:
        """The first entry that is not as it was written."""
        return min((each.seq for each in self.problems if each.seq is not None), default=None)


@dataclass(slots=True)
class Report:
    """What was found of all of them."""

    tenants: list[TenantReport] = field(default_factory=list)

    @property
    def is_ok(self) -> bool:
        """Whether nothing is wrong."""
        return not any(tenant.problems for tenant in self.tenants)

    def as_json(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "ok": self.is_ok,
            "tenants": [
                {
                    "tenant": tenant.tenant_id,
                    "slug": tenant.slug,
                    "entries": tenant.entries,
                    "checkpoints": tenant.checkpoints,
                    "head_seq": tenant.head_seq,
                    "first_bad_seq": tenant.first_bad_seq,
                    "problems": [
                        {"seq": problem.seq, "what": problem.text} for problem in tenant.problems
                    ],
                }
                for tenant in self.tenants
            ],
        }

    def lines(self) -> Iterator[str]:
        """The report for people: one line for each tenant, one for each problem."""
        for tenant in self.tenants:
            state = "ok" if not tenant.problems else "WRONG"
            yield (
                f"{tenant.slug or tenant.tenant_id}: {state}, {tenant.entries} entries, "
                f"head {tenant.head_seq}, {tenant.checkpoints} checkpoints"
            )
            for problem in tenant.problems:
                where = f"seq {problem.seq}: " if problem.seq is not None else ""
                yield f"  {where}{problem.text}"


CrossCheck = Callable[[Session, str], Iterable[Problem]]
_cross_checks: dict[str, CrossCheck] = {}


def register_cross_check(name: str, check: CrossCheck) -> None:
    """Let a slice hold the rows of one tenant against its entries; a second `name` replaces."""
    _cross_checks[name] = check


def verify(url: str, folder: Path, *, tenant: str | None = None, since: int = 0) -> Report:
    """Check the trail in the database at `url` against itself and the checkpoints in `folder`.

    `tenant` is a slug or an id; `since` is the number of an entry known to be good.

    Raises:
        LookupError: there is no such tenant.
    """
    engine = db.engine_for(url, read_only=True)
    try:
        with engine.connect() as connection, Session(connection) as session:
            report = Report()
            tenants = _tenants(session, tenant)
            keys = _keys(session)
            for found in tenants:
                report.tenants.append(_verify_one(connection, session, found, keys, folder, since))
            if tenant is None:
                report.tenants += _orphans(folder, {found.tenant_id for found in tenants}, keys)
            return report
    finally:
        engine.dispose()


def newest(session: Session, tenant_id: str, folder: Path, most: int = ASKED) -> TenantReport:
    """Check the newest entries of one tenant, at most `most`, for who asks in the product.

    It takes a while: for a reader's thread. The whole chain is the operator's command.
    """
    head = session.get(AuditHead, tenant_id)
    since = max(0, head.seq - most + 1) if head else 0
    slug = session.exec(select(Tenant.slug).where(Tenant.id == tenant_id)).one()
    report = TenantReport(tenant_id, slug, since=since)
    return _verify_one(session.connection(), session, report, _keys(session), folder, since)


def _tenants(session: Session, wanted: str | None) -> list[TenantReport]:
    query = select(Tenant.id, Tenant.slug).order_by(Tenant.slug)
    found = [TenantReport(*row) for row in session.exec(query)]
    if wanted is None:
        return found
    chosen = [each for each in found if wanted in {each.tenant_id, each.slug}]
    if not chosen:
        raise LookupError(f"there is no tenant {wanted}")
    return chosen


def _keys(session: Session) -> KeySet | None:
    query = select(SigningKey.public_jwk).where(SigningKey.use == KeyUse.CHECKPOINT)
    keys = [ECKey.import_key(dict(jwk)) for jwk in session.exec(query)]
    return KeySet(list(keys)) if keys else None


def _verify_one(
    connection: Connection,
    session: Session,
    report: TenantReport,
    keys: KeySet | None,
    folder: Path,
    since: int,
) -> TenantReport:
    signed, problems = _read_checkpoints(folder, report.tenant_id, keys)
    report.checkpoints = len(signed)
    report.problems += problems
    last = _walk(connection, report, {each.seq: each.hash for each in signed}, since)
    head = session.exec(
        select(AuditHead.seq, AuditHead.hash).where(AuditHead.tenant_id == report.tenant_id)
    ).first()
    report.head_seq = head[0] if head else 0
    if last is not None:
        report.problems += _end(last, head, signed)
    for name, check in _cross_checks.items():
        found = iter(check(session, report.tenant_id))
        for number, problem in enumerate(found, 1):
            if number > SHOWN:
                more = N_("There is more of the kind %(check)s.")
                report.problems.append(Problem(None, more, {"check": name}))
                break
            report.problems.append(problem)
    return report


def _read_checkpoints(
    folder: Path, tenant_id: str, keys: KeySet | None
) -> tuple[list[Checkpoint], list[Problem]]:
    """The checkpoints of a file that are signed and hang together, up to the first that is not."""
    path = checkpoints.file_of(folder, tenant_id)
    if not path.exists():
        return [], []
    good: list[Checkpoint] = []
    before: bytes | None = None
    with path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            if not raw.endswith(b"\n"):
                break  # a power cut while it was written; the next one is written over it
            line = raw[:-1]
            checkpoint = _signed(line, keys)
            claimed = _claimed_seq(line)
            if checkpoint is None:
                says = N_("Line %(line)s of the checkpoints is not signed by a key of ours.")
                return good, [Problem(claimed, says, {"line": number})]
            if (
                checkpoint.previous != checkpoints.digest(before)
                or checkpoint.tenant != tenant_id
                or (good and checkpoint.seq <= good[-1].seq)
            ):
                says = N_("Line %(line)s of the checkpoints does not follow from the one before.")
                return good, [Problem(claimed, says, {"line": number})]
            good.append(checkpoint)
            before = line
    return good, []


def _signed(line: bytes, keys: KeySet | None) -> Checkpoint | None:
    if keys is None:
        return None
    try:
        found = jws.deserialize_compact(line, keys, algorithms=["ES256"])
        if found.headers().get("typ") != checkpoints.TYP:
            return None
        return Checkpoint.parse(found.payload)
    except (JoseError, ValueError, TypeError, KeyError):
        return None


def _claimed_seq(line: bytes) -> int | None:
    try:
        return int(Checkpoint.parse(checkpoints.payload_of(line)).seq)
    except (ValueError, TypeError):
        return None


def _walk(
    connection: Connection, report: TenantReport, known: dict[int, str], since: int
) -> tuple[int, str] | None:
    """Follow the chain; its end, or None where it broke and a problem was noted."""
    expected, previous = 1, chain.GENESIS
    with closing(_rows(connection, report.tenant_id, since)) as rows:
        first = next(rows, None)
        if since > 0:
            if first is None or first[0] != since:
                says = N_("There is no entry with this number to start from.")
                report.problems.append(Problem(since, says))
                return None
            expected, previous = since, first[1]
        for seq, prev_hash, stored_hash, values in together([first] if first else [], rows):
            fault = _fault(expected, previous, seq, prev_hash, stored_hash, values, known)
            if fault is not None:
                report.problems.append(Problem(min(expected, seq), fault))
                return None
            report.entries += 1
            expected, previous = seq + 1, stored_hash
    return expected - 1, previous


def _fault(
    expected: int,
    previous: str,
    seq: int,
    prev_hash: str,
    stored_hash: str,
    values: dict[str, Any] | None,
    known: dict[int, str],
) -> str | None:
    if seq > expected:
        return N_("The entry is missing.")
    if seq < expected:
        return N_("An entry was put in here.")
    if prev_hash != previous:
        return N_("The entry does not follow from the one before it.")
    if values is None or _hash(previous, values) != stored_hash:
        return N_("The entry was changed: its hash is not that of what it says.")
    if seq in known and known[seq] != stored_hash:
        return N_("The trail was rewritten: a signed checkpoint names another hash here.")
    return None


def _hash(previous: str, values: dict[str, Any]) -> str | None:
    try:
        return chain.link(previous, values)
    except (TypeError, ValueError):  # what was put there has no canonical form
        return None


def _end(
    last: tuple[int, str], head: Sequence[Any] | None, signed: list[Checkpoint]
) -> Iterator[Problem]:
    seq, made = last
    if signed and signed[-1].seq > seq:
        says = N_(
            "Entries up to %(seq)s were signed, the trail ends before: its tail was cut, or an old "
            "backup was put back."
        )
        yield Problem(seq + 1, says, {"seq": signed[-1].seq})
    if head is None:
        if seq:
            yield Problem(seq, N_("The head of the chain is gone."))
    elif head[0] > seq:
        yield Problem(seq + 1, N_("The head names entries that are missing at the end."))
    elif head[0] < seq:
        yield Problem(head[0] + 1, N_("Entries stand behind the head of the chain."))
    elif head[1] != made and seq:
        yield Problem(seq, N_("The head names another hash than the last entry has."))


def _rows(
    connection: Connection, tenant_id: str, since: int
) -> Generator[tuple[int, str, str, dict[str, Any] | None], None, None]:
    """(seq, prev_hash, hash, what is hashed) in order; the last is None where it is unreadable."""
    is_sqlite = connection.dialect.name == "sqlite"
    listed = ", ".join(_selected(name, is_sqlite) for name in ("prev_hash", "hash", *chain.HASHED))
    query = text(
        f"SELECT {listed} FROM audit_entry "  # noqa: S608 - names of our columns
        "WHERE tenant_id = :tenant_id AND seq >= :since ORDER BY seq"
    )
    parameters = {"tenant_id": tenant_id, "since": max(since, 1)}
    streaming = connection.execution_options(stream_results=True, max_row_buffer=BATCH)
    result = streaming.execute(query, parameters)
    place = chain.HASHED.index("seq") + 2
    try:
        for batch in result.partitions(BATCH):
            for row in batch:
                yield row[place], row[0], row[1], _values(row, is_sqlite)
    finally:
        result.close()


def _selected(name: str, is_sqlite: bool) -> str:
    if is_sqlite:
        return name
    if name in chain.TIMES:
        return f"""to_char({name} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24\\:MI\\:SS.US"Z"')"""
    return f"{name}::text" if name in chain.DOCUMENTS else name


def _values(row: Any, is_sqlite: bool) -> dict[str, Any] | None:
    values = dict(zip(chain.HASHED, row[2:], strict=True))
    try:
        for name in chain.DOCUMENTS:
            if values[name] is not None:
                values[name] = orjson.loads(values[name])
        if is_sqlite:
            for name in chain.TIMES:
                if values[name] is not None:
                    values[name] = f"{values[name][:10]}T{values[name][11:]}Z"
            for name in ("idempotent", "reversible"):
                if values[name] in (0, 1):
                    values[name] = bool(values[name])
    except (ValueError, TypeError):
        return None
    return values


def _orphans(folder: Path, known: set[str], keys: KeySet | None) -> Iterator[TenantReport]:
    """Checkpoints of tenants that the database does not know: it is older than they are."""
    for path in sorted(folder.glob("*.jsonl")) if folder.exists() else []:
        if path.stem not in known:
            signed, problems = _read_checkpoints(folder, path.stem, keys)
            says = N_("There are checkpoints of a tenant that is not in this database.")
            yield TenantReport(
                path.stem, "", checkpoints=len(signed), problems=[*problems, Problem(None, says)]
            )
