"""Versions of commands: from packs at start, from administrators in between (commands.md, 1).

A published version never changes; the newest is in force, unless it is retired. The draft of a
command is its version 0. Whatever is published, retired or restored is on record, and every process
hears of it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import structlog
from sqlalchemy import select as sql_select
from sqlmodel import Session, col, select

from app.commands import overrides, published, readiness, registry, sources
from app.commands.definition import CommandDefinition
from app.commands.models import CommandVersion, VersionStatus
from app.commands.overrides import Overrides
from app.commands.readiness import Finding, Known
from app.commands.stored import StoredDefinition
from app.identity import facts
from app.identity.facts import IdentityFact
from app.identity.models import Tenant
from app.identity.principal import Principal
from app.kernel import clock, db, events, ids
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import Conflict, FieldError, Invalid, NotFound
from app.kernel.events import Broadcast
from app.kernel.i18n import N_

log = structlog.get_logger(__name__)
_DUE = Due("published_commands")

READ, MANAGE = "command.definition.read", "command.definition.manage"
DRAFT = 0  # the version of what is not published yet


@dataclass(frozen=True, slots=True, kw_only=True)
class DefinitionsChanged(Broadcast):
    """Other versions are in force in a tenant: of `code`, or of whichever command."""

    code: str | None = None


class NotReady(Invalid):
    """The readiness check found errors; `findings` say what, the warnings among them."""

    reason = "not_ready"
    says = N_("The definition is not ready to be published.")

    def __init__(self, findings: Sequence[Finding]) -> None:
        refused = readiness.errors(findings)
        super().__init__(*(FieldError(each.field, each.says, dict(each.facts)) for each in refused))
        self.findings = tuple(findings)


class NothingToPublish(Conflict):
    """There is no draft, or not the one that was looked at."""

    reason = "no_such_draft"
    says = N_("This draft is gone, or somebody changed it meanwhile. Look at it again.")


class NoPackDeclares(Conflict):
    """A command cannot come back whose pack does not have it any more."""

    reason = "no_pack_declares_it"
    says = N_("No pack declares this command any more.")


@dataclass(frozen=True, slots=True)
class Standing:
    """Every version of one command, the newest first, and its draft.

    Attributes:
        base: the newest version that came from the pack; None where it has none.
    """

    code: str
    versions: tuple[CommandVersion, ...]
    draft: CommandVersion | None
    base: CommandVersion | None

    @property
    def newest(self) -> CommandVersion:
        """The version that is in force, or the one that was retired last."""
        return self.versions[0]

    @property
    def is_in_force(self) -> bool:
        """Whether the command can be called."""
        return self.newest.status == VersionStatus.PUBLISHED

    def says(self, declared: StoredDefinition) -> bool:
        """Whether it is what the pack declares, in force or retired by an administrator."""
        is_same = self.base is not None and self.base.content_hash == _hash_of(declared)
        return is_same and (self.is_in_force or self.newest.retired_by is not None)

    @property
    def is_overridden(self) -> bool:
        """Whether an administrator's words are in force instead of the pack's."""
        return self.newest.is_override


# From packs


def sync_everywhere() -> None:
    """Bring every tenant to what the packs declare; at start, once the packs are found.

    One that cannot be brought there keeps what was in force, and no other from its own.
    """
    for tenant_id in db.read_now(_tenants):
        with _DUE.trying((tenant_id,)):
            db.transact_now(sync, tenant_id)


def listen() -> Any:
    """Give each new tenant its commands, in the transaction that makes it; returns how to stop."""

    def given(work: Work, fact: IdentityFact) -> None:
        if fact.action == "identity.tenant.create" and fact.outcome == "done":
            sync(work, fact.tenant_id)

    return events.subscribe_inside(IdentityFact, given)


def sync(work: Work, tenant_id: str) -> list[str]:
    """Publish what packs declare anew or otherwise, retire what none declares; returns the codes.

    What an administrator said on top of a pack's version is said again on top of its next one. A
    definition with errors is not published: what was in force stays, and the log says why.
    """
    work.session.flush()
    declared = defined_in(work.session, tenant_id)
    if _is_up_to_date(work.session, tenant_id, declared):
        return []
    standing = _standing(work.session, tenant_id)
    in_force = {code for code, each in standing.items() if each.is_in_force}
    done: dict[str, tuple[int | None, int | None]] = {}
    for code in sorted(in_force - declared.keys()):
        _set_retired(work, standing[code].newest, None)
        done[code] = (standing[code].newest.version, None)
        in_force.remove(code)  # its names are free
    known = Known.of({**_said(standing), **declared}, in_force)
    for code, definition in declared.items():
        known = replace(known, taken=frozenset(in_force))
        number = _sync_one(work, tenant_id, definition, standing.get(code), known)
        if number is not None:
            done[code] = (standing[code].newest.version if code in standing else None, number)
            in_force.add(code)
    if done:
        work.session.flush()
        facts.record(
            work,
            "command.definition.sync",
            None,
            tenant_id=tenant_id,
            target=("command", "*"),
            changes=done,
        )
        work.announce(DefinitionsChanged(tenant_id=tenant_id))
    return sorted(done)


def declared_definitions() -> Mapping[str, StoredDefinition]:
    """What packs declare, as data, by code in their order."""
    return {code: _stored(code, command) for code, command in sorted(registry.declared().items())}


def defined_in(session: Session, tenant_id: str) -> Mapping[str, StoredDefinition]:
    """The same, with what a tenant's own rows define besides."""
    return {**declared_definitions(), **sources.definitions(session, tenant_id)}


# By administrators


def save_draft(
    work: Work,
    tenant_id: str,
    code: str,
    wanted: Overrides,
    by: Principal,
    *,
    expected: str | None = None,
) -> CommandVersion:
    """Keep what an administrator wants to say of a command; it counts once it is published.

    `expected` is the content hash of the draft that was edited, None where there was none.

    Raises:
        NotFound: the tenant has no such command.
        Invalid: it is less strict than the pack, at its field.
        NothingToPublish: somebody else changed the draft meanwhile.
    """
    standing = one(work.session, tenant_id, code)
    base = definition_of(standing.base or standing.newest)
    if less := overrides.loosened(base, wanted):
        raise Invalid(*less)
    if (standing.draft.content_hash if standing.draft else None) != expected:
        raise NothingToPublish
    definition = wanted.on(base)
    row = standing.draft or _row(tenant_id, definition, DRAFT, VersionStatus.DRAFT, by.user_id)
    before = definition_of(row) if standing.draft else definition_of(standing.newest)
    row.definition, row.content_hash = definition.data(), definition.content_hash
    row.is_override, row.created_by, row.created_at = True, by.user_id, clock.now()
    work.session.add(row)
    _record(work, "command.definition.draft", by, code, overrides.changed(before, definition))
    return row


def discard_draft(work: Work, tenant_id: str, code: str, by: Principal) -> None:
    """Do away with a draft.

    Raises:
        NotFound, NothingToPublish: there is none.
    """
    standing = one(work.session, tenant_id, code)
    if standing.draft is None:
        raise NothingToPublish
    work.session.delete(standing.draft)
    _record(work, "command.definition.discard", by, code, {})


def publish_draft(
    work: Work, tenant_id: str, code: str, by: Principal, *, expected: str | None = None
) -> CommandVersion:
    """Put the draft in force; `expected` is the content hash that was looked at.

    Raises:
        NotFound: the tenant has no such command.
        NothingToPublish: there is no draft, or another one.
        NotReady: the readiness check found errors.
    """
    draft = one(work.session, tenant_id, code).draft
    if draft is None or expected not in (None, draft.content_hash):
        raise NothingToPublish
    return publish(work, tenant_id, definition_of(draft), by)


def publish(
    work: Work, tenant_id: str, definition: StoredDefinition, by: Principal
) -> CommandVersion:
    """Put a definition in force as the command's next version; the same content changes nothing.

    Raises:
        NotFound: the tenant has no such command.
        Invalid: it changes what only the pack may say, or is less strict than the pack.
        NoPackDeclares: its pack is gone.
        NotReady: the readiness check found errors, a name clash among them (CMD-F19).
    """
    standing = one(work.session, tenant_id, definition.code)
    base = definition_of(standing.base or standing.newest)
    wanted = Overrides.of(definition)
    if less := overrides.loosened(base, wanted):
        raise Invalid(*less)
    if wanted.on(base) != definition:
        raise Invalid(FieldError("", N_("It changes what only the pack may say.")))
    if not _is_defined(work.session, tenant_id, definition.code):
        raise NoPackDeclares
    if standing.draft is not None:
        work.session.delete(standing.draft)
    if standing.is_in_force and standing.newest.content_hash == definition.content_hash:
        return standing.newest
    findings = readiness.check(definition, known_in(work.session, tenant_id, besides=definition))
    if readiness.errors(findings):
        raise NotReady(findings)
    work.session.flush()  # the draft goes before its content comes
    row = _published(work, tenant_id, definition, standing.newest.version + 1, by.user_id)
    row.is_override = definition != base
    before = definition_of(standing.newest)
    changes = {
        "version": (standing.newest.version, row.version),
        **overrides.changed(before, definition),
    }
    _record(work, "command.definition.publish", by, definition.code, changes)
    work.announce(DefinitionsChanged(tenant_id=tenant_id, code=definition.code))
    return row


def retire(work: Work, tenant_id: str, code: str, by: Principal) -> None:
    """Let nobody call a command any more; whatever runs already runs to its end.

    Raises:
        NotFound: the tenant has no such command.
        Conflict: it is retired already.
    """
    standing = one(work.session, tenant_id, code)
    if not standing.is_in_force:
        raise Conflict
    _set_retired(work, standing.newest, by.user_id)
    _record(work, "command.definition.retire", by, code, _status(standing.newest, restored=False))
    work.announce(DefinitionsChanged(tenant_id=tenant_id, code=code))


def restore(work: Work, tenant_id: str, code: str, by: Principal) -> None:
    """Let a retired command be called again, as it was.

    Raises:
        NotFound: the tenant has no such command.
        Conflict: it is in force; NoPackDeclares: its pack is gone.
        NotReady: it would not be published today.
    """
    standing = one(work.session, tenant_id, code)
    if standing.is_in_force:
        raise Conflict
    if not _is_defined(work.session, tenant_id, code):
        raise NoPackDeclares
    definition = definition_of(standing.newest)
    findings = readiness.check(definition, known_in(work.session, tenant_id, besides=definition))
    if readiness.errors(findings):
        raise NotReady(findings)
    _set_in_force(work, standing.newest)
    _record(work, "command.definition.restore", by, code, _status(standing.newest, restored=True))
    work.announce(DefinitionsChanged(tenant_id=tenant_id, code=code))


# What there is


def one(session: Session, tenant_id: str, code: str) -> Standing:
    """Every version of a command.

    Raises:
        NotFound: the tenant never had it.
    """
    found = _standing(session, tenant_id, code).get(code)
    if found is None:
        raise NotFound
    return found


def all_of(session: Session, tenant_id: str) -> list[Standing]:
    """Every command the tenant has or had, by code."""
    return [each for _, each in sorted(_standing(session, tenant_id).items())]


def known_in(session: Session, tenant_id: str, *, besides: StoredDefinition | None = None) -> Known:
    """What a definition of this tenant may name; `besides` stands for its own command."""
    rows = published.all_current(session, tenant_id)
    commands = {row.code: definition_of(row) for row in rows}
    if besides is not None:
        commands[besides.code] = besides
    return Known.of(commands, (row.code for row in rows))


def _is_defined(session: Session, tenant_id: str, code: str) -> bool:
    return code in registry.declared() or code in sources.definitions(session, tenant_id)


def _sync_one(
    work: Work,
    tenant_id: str,
    definition: StoredDefinition,
    standing: Standing | None,
    known: Known,
) -> int | None:
    """The number of the version that is in force now, None where nothing changed."""
    if standing and standing.says(definition):
        return None
    base = standing.base if standing else None
    if refused := readiness.errors(readiness.check(definition, known)):
        why = [each.text("en") for each in refused]
        log.error("command_not_ready", code=definition.code, why=why)
        return None
    if standing and base and base.content_hash == _hash_of(definition):
        _set_in_force(work, standing.newest)  # its pack was away
        return standing.newest.version
    row = _published(
        work, tenant_id, definition, standing.newest.version + 1 if standing else 1, None
    )
    if standing and base and standing.is_overridden:
        row = _said_again(work, row, definition_of(base), definition_of(standing.newest), known)
    if standing and not standing.is_in_force and standing.newest.retired_by is not None:
        _set_retired(work, row, standing.newest.retired_by)  # an administrator's word holds
    return row.version


def _said_again(
    work: Work, row: CommandVersion, old: StoredDefinition, ours: StoredDefinition, known: Known
) -> CommandVersion:
    """The next version with an administrator's words on top of the pack's new ones."""
    new = definition_of(row)
    again = overrides.carried(old, ours, new).on(new)
    if again == new:
        return row
    if refused := readiness.errors(readiness.check(again, known)):
        log.error("override_not_ready", code=new.code, why=[each.text("en") for each in refused])
        return row
    made = _published(work, row.tenant_id, again, row.version + 1, None)
    made.is_override = True
    return made


def _published(
    work: Work, tenant_id: str, definition: StoredDefinition, number: int, by: str | None
) -> CommandVersion:
    row = _row(tenant_id, definition, number, VersionStatus.PUBLISHED, by)
    row.is_override = by is not None
    row.published_at, row.published_by = row.created_at, by
    work.session.add(row)
    return row


def _row(
    tenant_id: str,
    definition: StoredDefinition,
    number: int,
    status: VersionStatus,
    by: str | None,
) -> CommandVersion:
    return CommandVersion(
        tenant_id=tenant_id,
        id=ids.ulid(),
        code=definition.code,
        version=number,
        status=status,
        pack=definition.pack,
        content_hash=_hash_of(definition),
        definition=definition.data(),
        created_at=clock.now(),
        created_by=by,
    )


def _set_retired(work: Work, row: CommandVersion, by: str | None) -> None:
    row.status, row.retired_at, row.retired_by = VersionStatus.RETIRED, clock.now(), by
    work.session.add(row)


def _set_in_force(work: Work, row: CommandVersion) -> None:
    row.status, row.retired_at, row.retired_by = VersionStatus.PUBLISHED, None, None
    work.session.add(row)


def _status(row: CommandVersion, *, restored: bool) -> dict[str, tuple[Any, Any]]:
    words = (VersionStatus.PUBLISHED.value, VersionStatus.RETIRED.value)
    return {"status": words[::-1] if restored else words, "version": (None, row.version)}


def _record(
    work: Work, action: str, by: Principal, code: str, changes: dict[str, tuple[Any, Any]]
) -> None:
    work.session.flush()
    facts.record(work, action, by, target=("command", code), changes=changes)


def _standing(session: Session, tenant_id: str, code: str | None = None) -> dict[str, Standing]:
    query = select(CommandVersion).where(CommandVersion.tenant_id == tenant_id).order_by(*_ORDER)
    if code is not None:
        query = query.where(CommandVersion.code == code)
    return _by_code(session.exec(query))


_ORDER = (col(CommandVersion.code), col(CommandVersion.version).desc())


def _by_code(found: Iterable[Any]) -> dict[str, Standing]:
    rows: dict[str, list[Any]] = {}
    for row in found:
        rows.setdefault(row.code, []).append(row)
    return {
        name: Standing(
            name,
            tuple(row for row in versions if row.version != DRAFT),
            next((row for row in versions if row.version == DRAFT), None),
            next((row for row in versions if row.version != DRAFT and not row.is_override), None),
        )
        for name, versions in rows.items()
        if versions[0].version != DRAFT
    }


def _is_up_to_date(
    session: Session, tenant_id: str, declared: Mapping[str, StoredDefinition]
) -> bool:
    """What a start finds in most tenants, without reading a definition."""
    query = (
        sql_select(
            *(col(CommandVersion.code), col(CommandVersion.version), col(CommandVersion.status)),
            *(col(CommandVersion.content_hash), col(CommandVersion.is_override)),
            col(CommandVersion.retired_by),
        )
        .where(col(CommandVersion.tenant_id) == tenant_id)
        .order_by(*_ORDER)
    )
    standing = _by_code(session.execute(query))
    is_gone = any(each.is_in_force and code not in declared for code, each in standing.items())
    found = (standing.get(code) for code in declared)
    is_said = all(
        each is not None and each.says(definition)
        for each, definition in zip(found, declared.values(), strict=True)
    )
    return is_said and not is_gone


def _said(standing: Mapping[str, Standing]) -> dict[str, StoredDefinition]:
    return {code: definition_of(each.newest) for code, each in standing.items() if each.is_in_force}


def _tenants(session: Session) -> list[str]:
    return list(session.exec(select(Tenant.id)).all())


_contents: dict[str, StoredDefinition] = {}  # by hash
_declared: dict[str, tuple[CommandDefinition, StoredDefinition, str]] = {}


def definition_of(row: CommandVersion) -> StoredDefinition:
    """What a version says."""
    return parsed(row.content_hash, lambda: row.definition)


def parsed(content_hash: str, read: Callable[[], dict[str, Any]]) -> StoredDefinition:
    """The definition with this hash; `read` gives its data where this process never saw it."""
    known = _contents.get(content_hash)
    if known is None:
        if len(_contents) >= published.CACHED:
            _contents.clear()
        known = _contents[content_hash] = StoredDefinition.model_validate(read())
    return known


def _stored(code: str, command: CommandDefinition) -> StoredDefinition:
    made = _declared.get(code)
    if made is None or made[0] is not command:
        stored = StoredDefinition.of(command, registry.pack_of(code) or "")
        made = _declared[code] = (command, stored, stored.content_hash)
        _contents[made[2]] = stored
    return made[1]


def _hash_of(definition: StoredDefinition) -> str:
    """Its content hash, which costs something, so that of what packs declare is kept."""
    made = _declared.get(definition.code)
    return made[2] if made and made[1] is definition else definition.content_hash
