"""From a claim to a session: configuration, identity, and all that was kept (RUN-48, RUN-115).

A run that was claimed first takes its snapshot here; one that resumes continues from its rows. What
cannot be read is a fault, never an empty start.
"""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from sqlmodel import Session, col, select

from app.aun import queries
from app.aun.models import Conversation
from app.identity import agents
from app.identity.models import Agent, AgentRelease, Tenant, User
from app.identity.principal import Principal
from app.kernel import clock, db, json
from app.kernel.db import Work
from app.kernel.i18n import DEFAULT, LANGUAGES
from app.outside import admission
from app.outside.admission import Admitted
from app.runs import (
    attempts,
    authority,
    checkpoint,
    command_tool,
    context,
    engines,
    inputs,
    lease,
    records,
    resolving,
    resuming,
    settling,
    transcript,
)
from app.runs.errors import Cancelled, OutcomeUnknown, RunFailed
from app.runs.lease import Claim
from app.runs.models import chosen, profiles
from app.runs.models.protocol import Entry, ModelFault, Profile
from app.runs.outcome import digest
from app.runs.outside import Outside
from app.runs.release import Content
from app.runs.run_models import Checkpoint, Lane, Run, RunInput, ToolCall
from app.runs.session import (
    SCHEDULE,
    STOPPED,
    TASK,
    CurrentInput,
    Facts,
    Past,
    RunSession,
    Transcript,
)
from app.runs.states import OPEN_CALLS, CallState, EntryKind, InputState, RunKind

CHANGED = "The agent was set up differently when this run began. It was not continued."
NO_RELEASE = "The agent has no published release."


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """A run with what it stands on, as one transaction found it."""

    facts: Facts
    content: Content
    profile: Profile
    fingerprint: str
    principal: Principal | None
    entries: tuple[Entry, ...]
    kept: Checkpoint | None
    recent: tuple[Mapping[str, Any], ...]
    history: tuple[Past, ...]
    before_input: int
    unknown_call: str | None
    waited: dict[str, Mapping[str, Any]]
    active_ms: int
    turn: int
    outside: tuple[Admitted, ...] = ()
    pins: Mapping[str, str] = field(default_factory=dict)
    is_first: bool = False


async def prepare(claim: Claim) -> RunSession:
    """The session of a claimed run, its first input admitted.

    Raises:
        RunFailed: `config_changed`, or a configuration that cannot work.
        OutcomeUnknown: a crash left an outside effect that may have happened.
        Cancelled: what it stands on is gone, or there is nothing to do.
        LeaseLost: another worker took over.
    """
    bound = await db.transaction(_bind, claim)
    if bound.unknown_call is not None:
        raise OutcomeUnknown(bound.unknown_call)
    try:
        model = await chosen.model_for(bound.profile)
    except ModelFault as fault:
        raise RunFailed(f"model_{fault.kind}", fault.public) from fault
    run = _session(claim, bound, model)
    try:
        await _ready(run, bound)
    except BaseException:
        await asyncio.shield(run.outside.close())
        raise
    return run


async def _ready(run: RunSession, bound: Bound) -> None:
    """Connect it to the outside, wake it, and let it take its first input."""
    await run.outside.open(bound.outside)
    if bound.pins:  # what was seen just now counts as well
        await db.transaction(_keep_pins if bound.is_first else _check_pins, run.claim, bound.pins)
    run.catalogue = await db.read(command_tool.catalogue_of, run.principal)
    await resuming.wake(run)
    run.current_input = await db.read(_current, run)
    if not await inputs.admit_first(run) and _has_nothing_to_do(run):
        raise Cancelled("nothing_to_do")


def _bind(work: Work, claim: Claim) -> Bound:
    lease.hold(work, claim)
    row = work.session.get_one(Run, (claim.tenant_id, claim.run_id), populate_existing=True)
    authority.check(work.session, row)
    is_first = not row.config
    agent, release = _published(work.session, row)
    content = Content.of(release.content if is_first else row.config)
    if is_first:
        row.engine = content.engine  # what was queued was advice (RUN-4)
    engines.check(row.engine)
    profile = profiles.find(work.session, row.tenant_id, content.model)
    fingerprint = _fingerprint(row.engine, profile)
    if is_first:
        row.config, row.fingerprint = content.model_dump(mode="json"), fingerprint
        row.release_id = release.id
        if row.root_run_id == row.id:
            row.step_limit = content.limits.steps
        work.session.add(row)
        work.session.flush()
    elif row.fingerprint != fingerprint:
        raise RunFailed("config_changed", CHANGED)
    facts = _facts(work.session, row, agent)
    principal = authority.principal_of(work.session, row)
    outside = admission.of(work.session, principal)
    if is_first:
        row.outside_pins = admission.pins(outside)
    else:
        _check_pins(work, claim, row.outside_pins or {})
    bound = _restored(work, claim, row, facts, content, profile, principal)
    return replace(bound, outside=outside, pins=dict(row.outside_pins or {}), is_first=is_first)


def _keep_pins(work: Work, claim: Claim, had: Mapping[str, str]) -> None:
    """A run that begins has no tool that changed before it was offered."""
    if gone := admission.changed(work.session, claim.tenant_id, had):
        row = work.session.get_one(Run, (claim.tenant_id, claim.run_id), populate_existing=True)
        row.outside_pins = {code: pin for code, pin in had.items() if code not in gone}
        work.session.add(row)


def _check_pins(work: Work, claim: Claim, had: Mapping[str, str]) -> None:
    """No outside tool that the run had is another one by now (RUN-96).

    Raises:
        RunFailed: `config_changed`.
    """
    if admission.changed(work.session, claim.tenant_id, had):
        raise RunFailed("config_changed", CHANGED)


def _restored(
    work: Work,
    claim: Claim,
    row: Run,
    facts: Facts,
    content: Content,
    profile: Profile,
    principal: Principal | None,
) -> Bound:
    entries = transcript.load(work.session, claim)
    calls, kept = list[ToolCall](), None
    if not entries:  # then nothing of it was kept
        entries = _begin(work, claim, row, facts, content)
    else:
        attempts.abandon_open(work, claim)
        entries += settling.settle(work, claim, principal, entries[-1].seq + 1, entries)
        calls = records.of_run(work.session, claim.tenant_id, claim.run_id)
        kept = checkpoint.newest(work.session, claim.tenant_id, claim.run_id)
    unknown = next((call.id for call in calls if call.state == CallState.UNKNOWN), None)
    over = [call for call in calls if call.state not in OPEN_CALLS]
    heard = max((each.turn for each in entries if each.kind == EntryKind.INPUT), default=-1)
    return Bound(
        facts=facts,
        content=content,
        profile=profile,
        fingerprint=row.fingerprint or "",
        principal=principal,
        entries=tuple(entries),
        kept=kept,
        recent=tuple(context.recent_commands(work.session, row)),
        history=tuple(
            _past(call.tool, call.arguments_sha256, call.state, call.result) for call in over
        ),
        before_input=sum(call.turn <= heard for call in over),
        unknown_call=unknown,
        waited=resuming.waited(work.session, principal, calls),
        active_ms=row.active_ms,
        turn=max((each.turn for each in entries), default=0),
    )


def _session(claim: Claim, bound: Bound, model: Any) -> RunSession:
    kept = bound.kept
    script = Transcript(bound.entries)
    run = RunSession(
        claim=claim,
        facts=bound.facts,
        content=bound.content,
        fingerprint=bound.fingerprint,
        principal=bound.principal,
        profile=bound.profile,
        model=model,
        transcript=script,
        began_at=clock.now(),
        active_ms_before=bound.active_ms,
        recent=bound.recent,
        turn=bound.turn,
        round=kept.round if kept else 1,
        scope=kept.scope if kept else 1,
        allowance=kept.allowance if kept else 1,
        reminded=bool(kept.failures.get("reminded")) if kept else False,
        history=list(bound.history),
        before_input=bound.before_input,
        outside=Outside(bound.principal),
        waited=bound.waited,
        tried=(0, 0) if bound.is_first else None,  # a run that begins asked nothing before
    )
    open_batch = script.open_batch()
    in_hand = {call.id for call in open_batch.calls} if open_batch else set()
    run.ids_of_earlier_batches = {
        call["provider_id"]
        for entry in script
        if entry.kind == EntryKind.RESPONSE
        for call in entry.body.get("calls", [])
        if call["id"] not in in_hand
    }
    return run


def _begin(work: Work, claim: Claim, row: Run, facts: Facts, content: Content) -> list[Entry]:
    """The first entries: who it is, and what was said before it (RUN-78)."""
    person = work.session.get(User, (row.tenant_id, row.user_id)) if row.user_id else None
    text = context.system_text(work.session, facts, content, person.display_name if person else "")
    entries = [transcript.write(work, claim, 1, EntryKind.SYSTEM, {"text": text})]
    if row.kind != RunKind.DELEGATED:  # a context of its own (RUN-7)
        lane = work.session.get(Lane, (row.tenant_id, row.lane_id)) if row.lane_id else None
        before = _first_input(work.session, row)
        for body in context.history(work.session, facts, lane, before):
            seq = len(entries) + 1
            entries.append(transcript.write(work, claim, seq, EntryKind.HISTORY, body))
    if row.note:
        body = _note(row, person)
        entries.append(transcript.write(work, claim, len(entries) + 1, EntryKind.NOTE, body))
    for found_out in resolving.news(work.session, row):
        entries.append(transcript.write(work, claim, len(entries) + 1, EntryKind.NOTE, found_out))
    return entries


def _note(row: Run, person: User | None) -> dict[str, Any]:
    """What a run without a message is for: a schedule is its person's word, a task an agent's."""
    if row.kind != RunKind.SCHEDULED:
        return {"kind": TASK, "text": row.note, "is_principal": False}
    body = {"kind": SCHEDULE, "text": row.note, "is_principal": True}
    return body | ({"sender_name": person.display_name} if person is not None else {})


def _first_input(session: Session, row: Run) -> int:
    """The place of the oldest input that this run may take: history ends before it."""
    query = (
        select(RunInput.log_seq)
        .where(
            RunInput.tenant_id == row.tenant_id,
            RunInput.lane_id == row.lane_id,
            col(RunInput.state).in_([InputState.QUEUED, InputState.ACCEPTED]),
        )
        .order_by(col(RunInput.log_seq))
        .limit(1)
    )
    return session.exec(query).first() or 2**62


def _current(session: Session, run: RunSession) -> CurrentInput | None:
    """The input that was admitted last, of a run that goes on."""
    entry = run.transcript.last(EntryKind.INPUT)
    if entry is None:
        return None
    body = entry.body
    return CurrentInput(
        input_id=body.get("input_id", ""),
        message_id=body["message_id"],
        sent_as=body["sent_as"],
        sender_aid=body["sender"],
        text=body["text"],
        digest=hashlib.sha256(body["text"].encode()).hexdigest(),
        is_from_person=body["sender_kind"] == "person",
    )


def _has_nothing_to_do(run: RunSession) -> bool:
    """Whether a run was opened for inputs, and none was left to take (RUN-116)."""
    last = run.transcript.last(
        EntryKind.INPUT, EntryKind.RESPONSE, EntryKind.RESULTS, EntryKind.NOTE
    )
    return last is None


def _facts(session: Session, row: Run, agent: Agent) -> Facts:
    conversation = (
        session.get(Conversation, (row.tenant_id, row.conversation_id))
        if row.conversation_id
        else None
    )
    lane = session.get(Lane, (row.tenant_id, row.lane_id)) if row.lane_id else None
    person = session.get(User, (row.tenant_id, row.user_id)) if row.user_id else None
    identity = queries.of_owner(session, row.tenant_id, agent.id)
    own_aid = identity.aid if identity else agent.aid or ""
    tenant = session.get_one(Tenant, row.tenant_id)
    return Facts(
        tenant_id=row.tenant_id,
        run_id=row.id,
        root_run_id=row.root_run_id,
        kind=RunKind(row.kind),
        agent_id=agent.id,
        agent_aid=own_aid,
        agent_name=agent.name,
        release_id=row.release_id or "",
        lane_id=row.lane_id,
        conversation_id=row.conversation_id,
        group_id=conversation.group_id if conversation else None,
        other_aid=_other(conversation, own_aid),
        discussion=lane.discussion if lane else "",
        user_id=row.user_id,
        watcher_id=row.user_id,
        task_id=row.task_id,
        parent_run_id=row.parent_run_id,
        depth=row.depth,
        locale=_locale(person, tenant),
        timezone=(person.time_zone if person else None) or "UTC",
        engine=row.engine,
    )


def _other(conversation: Conversation | None, own_aid: str) -> str | None:
    if conversation is None or conversation.group_id is not None:
        return None
    first, second = conversation.first_aid, conversation.second_aid
    return second if first == own_aid else first


def _locale(person: User | None, tenant: Tenant) -> str:
    chosen_by = (person.locale if person else None) or tenant.locale
    return chosen_by if chosen_by in LANGUAGES else DEFAULT


def _published(session: Session, row: Run) -> tuple[Agent, AgentRelease]:
    agent = agents.one(session, row.tenant_id, row.agent_id)
    is_bound = row.config or row.kind == RunKind.DELEGATED  # to the moment it was handed on (RUN-7)
    release = (
        session.get(AgentRelease, (row.tenant_id, row.release_id))
        if is_bound and row.release_id
        else agents.latest_release(session, agent)
    )
    if release is None:
        raise RunFailed("misconfigured", NO_RELEASE)
    return agent, release


def _fingerprint(engine: str, profile: Profile) -> str:
    """What a resumed run must find as it was: engine and model, not the release's policy (F-19)."""
    told = [engine, profile.kind, profile.model, profile.base_url]
    return hashlib.sha256(json.dumps(told)).hexdigest()


def _past(tool: str, sha256: str, state: str, result: dict[str, Any] | None) -> Past:
    if state == CallState.NOT_STARTED:
        return Past(tool, sha256, STOPPED, has_failed=False)
    return Past(tool, sha256, digest(result or {}), state == CallState.FAILED)
