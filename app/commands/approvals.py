"""Approvals as a call meets them: opened by a refusal, consumed once, ended by a failure (CMD-14).

Deciding is in `deciding.py`, reading for people in `approval_reading.py`. An approval runs one
call, once: one conditional UPDATE in the transaction of the change, whose row count is the
permission to go on.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sqlmodel import Session, select

from app.commands import approval_closing, approval_digest, approval_events
from app.commands.approval_digest import Binding
from app.commands.approval_models import Approval, ApprovalState
from app.commands.approved import Consent
from app.commands.call import Call, Origin
from app.commands.errors import Rejected
from app.commands.governed import GovernedRecord
from app.commands.outcome import Preview
from app.identity.principal import Principal
from app.kernel import clock, ids, json, keyring, sealing, settings
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.kernel.prepared import Prepared

if TYPE_CHECKING:
    from app.commands.context import Context
    from app.commands.published import Published

OWN_TTL_S = 600  # where the requester confirms
OTHERS_TTL_S = 86_400  # where another person decides

_CONSUME = Prepared(
    "UPDATE approval SET state = 'consumed', consumed_by_call = :call_id, closed_at = :now, "
    "rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'approved' AND digest = :digest "
    "AND user_id = :user_id AND expires_at > :now"
)
_FAIL = Prepared(
    "UPDATE approval SET state = 'failed', consumed_by_call = :call_id, closed_at = :now, "
    "failed_stage = :stage, failed_reason = :reason, rev = rev + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND state = 'approved'"
)


@dataclass(frozen=True, slots=True)
class Opened:
    """An approval that waits for a person, as a refused caller is told of it."""

    approval_id: str
    expires_at: str
    row: Approval | None = None  # that is new, and still to be told of

    @property
    def url(self) -> str:
        """The page where a person decides."""
        return url_of(self.approval_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a person is asked about: a call, the version that would run, what it would do.

    Attributes:
        org_id: where the user behind the call belongs.
        record: the target as the call found it.
        replaces: the approval whose place this one takes (CMD-28).
        changed_by: the person who changed its arguments; None where they are the same.
    """

    call: Call
    published: "Published"
    org_id: str
    record: GovernedRecord | None
    preview: Preview
    replaces: Approval | None = None
    changed_by: str | None = None


def open(work: Work, ctx: "Context", preview: Preview) -> Opened:
    """Ask a person about the call that `ctx` could not go on with.

    The same question, while it is open, is the same approval. News of a new one come after the
    refusal's entry, in the order of `approval_events`.
    """
    asked = Asked(
        call=ctx.call,
        published=ctx.published,
        org_id=ctx.user.org_id,
        record=ctx.record,
        preview=preview,
    )
    made = draw_up(work, asked)
    if (known := asked_already(work, made)) is not None:
        return Opened(known.id, clock.rfc3339(known.expires_at))
    store(work, made)
    return Opened(made.id, clock.rfc3339(made.expires_at), made)


def store(work: Work, row: Approval) -> None:
    """Write an approval that was drawn up; from now on it waits. `approval_events.tell` follows."""
    work.session.add(row)
    work.session.flush()


def url_of(approval_id: str) -> str:
    """The address of an approval's page."""
    return f"{settings.current().origin}/approvals/{approval_id}"


def target_versions(record: GovernedRecord | None) -> dict[str, int]:
    """The versions of records that an approval is bound to."""
    return {record.id: record.version} if record is not None else {}


def consume(ctx: "Context") -> Consent:
    """Use up the approval that this call names, in its own transaction.

    Raises:
        Rejected: `approval_required`, there is none for this call; `approval_stale`, what it was
            given for has changed; `approval_expired`, `_denied`, `_consumed`: it is over.
    """
    call, work = ctx.call, ctx.work
    row = _found(work.session, call)
    if row is None or not _is_about(row, ctx):
        raise Rejected("approval_required")
    _refuse_closed(row)
    if row.digest not in _digests(work, ctx):
        raise Rejected("approval_stale", approvalId=row.id)
    if row.state == ApprovalState.OPEN:
        raise Rejected("approval_required")
    now = clock.now()
    won = _CONSUME.run(
        work.connection,
        tenant_id=row.tenant_id,
        id=row.id,
        digest=row.digest,
        user_id=call.principal.user_id,
        call_id=call.call_id,
        now=now,
    )
    if won.rowcount != 1:
        work.session.refresh(row)
        _refuse_closed(row)
        raise Rejected("approval_expired", approvalId=row.id)
    if row.decided_by is None or row.decided_at is None:
        raise RuntimeError("an approved row says who approved it, and when")
    return Consent(
        approval_id=row.id,
        approved_by=row.decided_by,
        approved_at=row.decided_at,
        preview_digest=row.preview_digest,
        changed_by=row.changed_by,
    )


def tell_consumed(ctx: "Context") -> None:
    """Announce that this call used its approval up, if it had one; after its entry."""
    if ctx.consent is not None:
        key = (ctx.call.principal.tenant_id, ctx.consent.approval_id)
        row = ctx.work.session.get_one(Approval, key, populate_existing=True)
        approval_events.tell(ctx.work, row)


def failed(work: Work, call: Call, approval_id: str, stage: str, reason: str = "") -> None:
    """End an approval whose call failed after it was used; a retry needs a new one (CMD-14)."""
    if (row := fail(work, call, approval_id, stage, reason)) is not None:
        approval_events.tell(work, row)


def fail(work: Work, call: Call, approval_id: str, stage: str, reason: str) -> Approval | None:
    """The same, and not told yet; None where it was over already."""
    tenant_id = call.principal.tenant_id
    ended = _FAIL.run(
        work.connection,
        tenant_id=tenant_id,
        id=approval_id,
        stage=stage,
        reason=reason[:64],
        call_id=call.call_id,
        now=clock.now(),
    )
    if ended.rowcount != 1:
        return None
    return work.session.get_one(Approval, (tenant_id, approval_id), populate_existing=True)


def call_of(session: Session, principal: Principal, approval_id: str) -> Call:
    """The call an approval is about, for a caller who names nothing else.

    Raises:
        NotFound: there is none, or it is of another user or agent.
    """
    row = session.get(Approval, (principal.tenant_id, approval_id), populate_existing=True)
    if row is None or not is_of(row, principal):
        raise NotFound
    return Call(
        code=row.command,
        input=arguments(row),
        principal=principal,
        idempotency_key=row.idempotency_key,
        expected_version=row.expected_version,
        approval_id=row.id,
        origin=origin_of(row),
    )


def as_approved(work: Work, call: Call) -> Call:
    """The call with the arguments as they are stored, where the caller sent the same ones.

    What runs is what was approved to the byte, though `1e2` and `100` are the same (CMD-14).
    """
    if call.approval_id is None:
        return call
    row = _found(work.session, call)
    if row is None or row.command != call.code or not is_of(row, call.principal):
        return call
    stored = arguments(row)
    return replace(call, input=stored) if approval_digest.same(stored, call.input) else call


def is_of(row: Approval, principal: Principal) -> bool:
    """Whether this principal's call is what the approval is about: same user, same agent."""
    return row.user_id == principal.user_id and row.agent_id == principal.agent_id


def arguments(row: Approval) -> dict[str, Any]:
    """The arguments that will run, secrets included."""
    if row.sealed_input is None:
        return dict(row.arguments)
    opened: dict[str, Any] = json.loads(sealing.unseal(row.sealed_input, _sealed_for(row.id)))
    return opened


def origin_of(row: Approval) -> Origin:
    """Where the call came from."""
    return Origin(
        run_id=row.run_id, turn=row.turn, tool_call_id=row.tool_call_id, **dict(row.origin)
    )


def draw_up(work: Work, asked: Asked) -> Approval:
    """The row of an approval, not yet stored."""
    call, preview, record = asked.call, asked.preview, asked.record
    definition, who, now = asked.published.definition, call.principal, clock.now()
    approvers, old = definition.approvers, asked.replaces
    ttl_s = definition.approval_ttl_s or (OTHERS_TTL_S if approvers else OWN_TTL_S)
    shown = _masked(work, call, definition.secrets)[0]
    targets = target_versions(record)
    digest = _binding(call, asked.published.version, shown, targets).digest
    origin = asdict(call.origin)
    where = {name: origin.pop(name) for name in ("run_id", "turn", "tool_call_id")}
    row = Approval(
        tenant_id=who.tenant_id,
        id=ids.ulid(),
        ask_key=approval_digest.ask_key(digest, *where.values()),
        digest=digest,
        command=definition.code,
        version=asked.published.version,
        risk=definition.risk.value,
        idempotent=definition.idempotent,
        reversible=definition.reversible,
        arguments=shown,
        expected_version=call.expected_version,
        idempotency_key=call.idempotency_key,
        target_type=record.RECORD if record else None,
        target_id=record.id if record else None,
        target_label=record.label[:500] if record else None,
        target_versions=targets,
        preview=_shown(preview),
        preview_digest=preview.digest,
        previewed_at=now,
        user_id=who.user_id,
        org_id=asked.org_id,
        agent_id=who.agent_id,
        agent_release_id=who.agent_release_id,
        delegation_id=who.delegation_id,
        session_id=who.session_id,
        channel=who.channel.value,
        actors=list(who.actors),
        call_id=call.call_id,
        **where,
        origin=origin,
        approver_permission=approvers.permission if approvers else None,
        requesters=f" {who.user_id} ",
        opened_at=now,
        expires_at=now + timedelta(seconds=ttl_s),
    )
    if definition.secrets:
        row.sealed_input = sealing.seal(json.dumps(dict(call.input)), _sealed_for(row.id))
    if old is not None:
        _take_over(row, old, asked.changed_by)
    return row


def _take_over(row: Approval, old: Approval, changed_by: str | None) -> None:
    row.replaces = old.id
    row.requesters = old.requesters
    row.changed_by, row.original = old.changed_by, old.original
    if changed_by is not None:
        row.changed_by = changed_by
        row.original = old.original or dict(old.arguments)
        if f" {changed_by} " not in row.requesters:
            row.requesters += f"{changed_by} "


def asked_already(work: Work, made: Approval) -> Approval | None:
    """The open approval that asks the same from the same place, if there is one."""
    query = select(Approval).where(
        Approval.tenant_id == made.tenant_id,
        Approval.ask_key == made.ask_key,
        Approval.state == ApprovalState.OPEN,
    )
    asked = work.session.exec(query).first()
    if asked is not None and asked.expires_at <= made.opened_at:
        approval_closing.expire(work, asked)
        return None
    return asked


def _found(session: Session, call: Call) -> Approval | None:
    tenant_id = call.principal.tenant_id
    return session.get(Approval, (tenant_id, call.approval_id), populate_existing=True)


def _is_about(row: Approval, ctx: "Context") -> bool:
    """Whether it was given for this command on this record, asked by this user and agent."""
    return (
        is_of(row, ctx.call.principal)
        and row.command == ctx.command.code
        and (row.target_id is None or row.target_id == ctx.target_id)
    )


def _refuse_closed(row: Approval) -> None:
    match row.state:
        case ApprovalState.CONSUMED | ApprovalState.FAILED:
            raise Rejected("approval_consumed", approvalId=row.id, consumedBy=row.consumed_by_call)
        case ApprovalState.DENIED:
            raise Rejected("approval_denied", approvalId=row.id, said=row.reason or "")
        case ApprovalState.SUPERSEDED:
            raise Rejected("approval_stale", approvalId=row.id, supersededBy=row.superseded_by)
        case ApprovalState.CANCELLED:
            raise Rejected("approval_stale", approvalId=row.id)
        case ApprovalState.EXPIRED:
            raise Rejected("approval_expired", approvalId=row.id)
    if row.expires_at <= clock.now():
        raise Rejected("approval_expired", approvalId=row.id)


def _digests(work: Work, ctx: "Context") -> set[str]:
    """What this call binds to now, under each redaction key that counts; without secrets, one."""
    targets = target_versions(ctx.record)
    return {
        _binding(ctx.call, ctx.published.version, shown, targets).digest
        for shown in _masked(work, ctx.call, ctx.command.secrets)
    }


def _masked(work: Work, call: Call, secrets: frozenset[str]) -> list[dict[str, Any]]:
    if not secrets:
        return [dict(call.input)]
    keys = keyring.held(work, f"redaction:{call.principal.tenant_id}")
    return [approval_digest.masked(dict(call.input), secrets, key) for key in keys]


def _binding(
    call: Call, version: int, shown: Mapping[str, Any], targets: Mapping[str, int]
) -> Binding:
    who = call.principal
    return Binding(
        tenant_id=who.tenant_id,
        user_id=who.user_id,
        agent_release_id=who.agent_release_id,
        code=call.code,
        version=version,
        arguments=shown,
        targets=targets,
    )


def _shown(preview: Preview) -> dict[str, Any]:
    data = preview.data()
    return {name: data[name] for name in ("changes", "outside", "complete")}


def _sealed_for(approval_id: str) -> str:
    return f"approval:{approval_id}"
