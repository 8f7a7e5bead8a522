"""Commands as tools of agents: the same call, through the same pipeline, as from every other door.

A run has no way past it: consent is asked and consumed there, and the last thing a call does is
prove that its run is still ours (RUN-65, RUN-89).
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from sqlmodel import Session

from app.commands import approval_digest, approvals, catalogue, pipeline
from app.commands.approval_models import Approval, ApprovalState
from app.commands.call import Call, Origin
from app.commands.catalogue import Catalogue
from app.commands.definition import Risk
from app.commands.descriptors import Descriptor
from app.commands.errors import CallerGone
from app.commands.outcome import Done as Ran
from app.commands.refused import Refused as CommandRefused
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import clock, db, i18n
from app.kernel.errors import AppError, NotFound
from app.kernel.i18n import N_
from app.runs import faults, lease, records
from app.runs.errors import LeaseLost
from app.runs.outcome import Denied, Done, Expired, NotStarted, Result, Suspended
from app.runs.session import RunSession
from app.runs.states import CallKind, WaitKind
from app.runs.tool import Prepared, Tool

LONGEST_NAME = 64  # characters, with every provider
KEPT_OF_NAME, HEX = 55, 8
KEPT_TOOLS = 4_096
APPROVAL_REQUIRED, DISPATCHED, IN_FLIGHT = "approval_required", "dispatched", "in_flight"
NO_BRIEF = "none"
CANCELLED, SUPERSEDED, GONE = "approval_cancelled", "approval_superseded", "approval_gone"

RISK = N_("Risk %(risk)s.")
ASKS = N_("A person is asked to assent before it runs.")
UNDO = N_("It can be taken back with %(tool)s.")
NO_UNDO = N_("It cannot be taken back.")


_tools: dict[tuple[str, int, str], Tool] = {}  # said once: a version's words never change


@dataclass(frozen=True, slots=True)
class Approved:
    """A person assented: the call may be made, with the arguments of this approval."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class StillWaiting:
    """Nobody decided yet; of a replaced request it is the new one that waits (CMD-28)."""

    approval_id: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class _Changed:
    """Who changed the arguments before they were assented to, and which."""

    by: str
    fields: tuple[str, ...]


def catalogue_of(session: Session, principal: Principal | None) -> Catalogue | None:
    """The principal's catalogue; None where nobody acts, or nobody let this agent act."""
    if principal is None or principal.delegation_id is None:
        return None
    return catalogue.of(session, principal)


def best(query: str, entries: Sequence[Descriptor], language: str) -> list[Descriptor]:
    """Commands by how well they fit some words, the best first; those that do not are not there."""
    from app.runs.models.planner import ranking  # noqa: PLC0415 - loads with the first search

    return [each for each, score in ranking.ranked(query, entries, language) if score > 0]


def name_of(code: str) -> str:
    """What a command is called as a tool: its code with `-` for `.`, at most 64 characters."""
    name = code.replace(".", "-")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:KEPT_OF_NAME]}-{hashlib.sha256(code.encode()).hexdigest()[:HEX]}"


def tool_for(descriptor: Descriptor, language: str) -> Tool:
    """One command as a tool, described in the language of the run's principal."""
    key = (descriptor.content_hash, descriptor.version, language)
    if (known := _tools.get(key)) is not None and known.descriptor is descriptor:
        return known
    if len(_tools) >= KEPT_TOOLS:
        _tools.clear()
    made = _tools[key] = _made(descriptor, language)
    return made


def _made(descriptor: Descriptor, language: str) -> Tool:
    told = descriptor.definition
    return Tool(
        name=name_of(told.code),
        description=described(descriptor, language),
        schema=told.input_schema,
        run=_run,
        kind=CallKind.COMMAND,
        effect="local" if told.writes else "none",
        parallel_safe=told.risk is Risk.L0,
        descriptor=descriptor,
    )


def described(descriptor: Descriptor, language: str) -> str:
    """What a model reads of a command: name, hint, risk, and whether it can be taken back."""
    told = descriptor.definition
    name, hint = told.display_name.in_(language), told.agent_hint.in_(language)
    with i18n.speaking(language):
        said = [f"{name}: {hint}", i18n.gettext(RISK) % {"risk": told.risk.value}]
        if told.needs_approval:
            said.append(i18n.gettext(ASKS))
        if told.undo is not None:
            said.append(i18n.gettext(UNDO) % {"tool": name_of(told.undo)})
        elif told.writes and not told.reversible:
            said.append(i18n.gettext(NO_UNDO))
    return " ".join(said)


async def run_command(
    run: RunSession, prepared: Prepared, code: str, arguments: Mapping[str, Any]
) -> Result | Suspended:
    """Make the call, and say what came of it; a call that was approved has the stored arguments.

    Raises:
        LeaseLost: another worker has the run, and nothing of the call stays.
    """
    try:
        call, changed = await db.read(_call, run, prepared, code, arguments)
        done = await pipeline.execute(call)
    except CallerGone as gone:
        raise LeaseLost from gone
    except CommandRefused as refused:
        if prepared.approval_id is not None and refused.reason != IN_FLIGHT:
            # a guard before the consumption said no, and this call, the only one, is over
            why = (prepared.approval_id, refused.stage, refused.reason)
            await db.transaction(approvals.failed, call, *why)
        return _waiting(prepared, refused) or faults.refusal_of(run, refused)
    except AppError as refused:
        return faults.refusal_of(run, refused)
    if done.outcome == DISPATCHED:
        own_id, ref = prepared.call.id, done.call_id
        return Suspended(kind=WaitKind.CALL, call_id=own_id, ref=ref, is_open=True)
    return _done(done, changed)


def after_waiting(
    session: Session, principal: Principal, approval_id: str
) -> Approved | StillWaiting | Denied | Expired | NotStarted:
    """How a call that waited for a person goes on, by what stands in the approval's row alone.

    Nothing but an explicit `approved` lets it run (RUN-89). A request that was replaced for this
    very call waits on as the new one.
    """
    row = session.get(Approval, (principal.tenant_id, approval_id), populate_existing=True)
    if row is None or not approvals.is_of(row, principal):
        return NotStarted(GONE)
    match row.state:
        case ApprovalState.APPROVED | ApprovalState.CONSUMED | ApprovalState.FAILED:
            return Approved(row.id)  # the pipeline says of a used one that it is
        case ApprovalState.OPEN if row.expires_at > clock.now():
            return StillWaiting(row.id, row.expires_at)
        case ApprovalState.OPEN | ApprovalState.EXPIRED:
            return Expired()
        case ApprovalState.DENIED:
            return Denied(_name(session, row.tenant_id, row.decided_by), row.reason or "")
        case ApprovalState.SUPERSEDED if _is_replaced_for_same_call(session, row):
            return after_waiting(session, principal, row.superseded_by or "")
        case ApprovalState.SUPERSEDED:
            return NotStarted(SUPERSEDED)
    return NotStarted(CANCELLED)


async def _run(run: RunSession, prepared: Prepared) -> Result | Suspended:
    descriptor = prepared.tool.descriptor
    if descriptor is None:
        raise RuntimeError("a tool of a command knows which")
    return await run_command(run, prepared, descriptor.code, prepared.given)


def _call(
    session: Session,
    run: RunSession,
    prepared: Prepared,
    code: str,
    arguments: Mapping[str, Any],
) -> tuple[Call, _Changed | None]:
    if run.principal is None:
        raise NotFound  # nobody it acts for: then there are no commands
    guard = partial(lease.guard, claim=run.claim)
    if prepared.approval_id is None:
        made = Call(
            code=code,
            input=arguments,
            principal=run.principal,
            call_id=prepared.command_call_id,
            idempotency_key=prepared.call.id,
            origin=_origin(session, run, prepared),
            guard=guard,
        )
        return made, None
    asked = approvals.call_of(session, run.principal, prepared.approval_id)
    made = replace(asked, call_id=prepared.command_call_id, guard=guard)
    return made, _changed(session, run.claim.tenant_id, prepared.approval_id)


def _origin(session: Session, run: RunSession, prepared: Prepared) -> Origin:
    current, facts = run.current_input, run.facts
    brief = None
    if facts.conversation_id is not None:
        brief = records.brief(session, run.claim, run.scope, facts.conversation_id)
    return Origin(
        run_id=facts.run_id,
        turn=prepared.call.turn,
        tool_call_id=prepared.call.id,
        conversation_id=facts.conversation_id,
        prompt_ref=current.message_id if current else None,
        prompt_digest=current.digest if current else None,
        model=run.model.name,
        model_version=run.model.version,
        brief=brief or NO_BRIEF,
    )


def _waiting(prepared: Prepared, refused: CommandRefused) -> Suspended | None:
    """The call waits for a person, where the pipeline opened an approval for it."""
    approval_id = refused.facts.get("approvalId")
    if refused.reason != APPROVAL_REQUIRED or not isinstance(approval_id, str):
        return None
    return Suspended(
        kind=WaitKind.APPROVAL,
        call_id=prepared.call.id,
        ref=approval_id,
        due_at=datetime.fromisoformat(refused.facts["expiresAt"]),
        is_open=True,
    )


def _done(done: Ran, changed: _Changed | None) -> Done:
    undo = {"cmdCode": done.undo.code, "input": dict(done.undo.input)} if done.undo else None
    more: dict[str, Any] = {}
    if changed is not None:
        more = {"changed_by": changed.by, "changed": list(changed.fields)}
    return Done(
        result=dict(done.result),
        record=done.record,
        undo=undo,
        more=more,
        facts={
            "audit_seq": done.audit_seq,
            "timings": dict(done.timings),
            "version": done.version,
        },
    )


def _changed(session: Session, tenant_id: str, approval_id: str) -> _Changed | None:
    row = session.get(Approval, (tenant_id, approval_id))
    if row is None or row.changed_by is None:
        return None
    before, now = row.original or {}, row.arguments
    names = sorted({*before, *now})
    differs = [name for name in names if not approval_digest.same(before.get(name), now.get(name))]
    return _Changed(_name(session, tenant_id, row.changed_by), tuple(differs))


def _is_replaced_for_same_call(session: Session, row: Approval) -> bool:
    if row.superseded_by is None or row.superseded_by == row.id:
        return False
    new = session.get(Approval, (row.tenant_id, row.superseded_by))
    if new is None or row.tool_call_id is None or new.replaces != row.id:
        return False
    return (new.run_id, new.tool_call_id) == (row.run_id, row.tool_call_id)


def _name(session: Session, tenant_id: str, user_id: str | None) -> str:
    user = session.get(User, (tenant_id, user_id)) if user_id else None
    return user.display_name if user is not None else ""
