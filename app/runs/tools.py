"""A batch of tool calls: checked whole, run one by one, each through the same five steps.

    find_flaw ─▶ each call: prepare ─▶ permit ─▶ before ─▶ execute ─▶ after

Every call the model made gets exactly one result, whatever happens (RUN-44). A call that a crash
left Started without a result may have had its effect, so nothing here ever runs it again.
"""

import hashlib
from collections.abc import Mapping
from typing import Any

from sqlalchemy.exc import InterfaceError, OperationalError

from app.commands.errors import CallerGone
from app.kernel import clock, db, ids, json
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.runs import delegating, faults, heads, policies, records, redacting, spending, writing
from app.runs.errors import Cancelled, LeaseLost, OutcomeUnknown, RunFailed
from app.runs.outcome import (
    InCommit,
    NotStarted,
    ProposedCall,
    Refused,
    Result,
    Suspended,
    Tools,
    Unknown,
    digest,
)
from app.runs.session import STOPPED, Past, RunSession
from app.runs.states import CallKind
from app.runs.tool import Prepared, Ran, Tool

FLAWED, FAILING = 3, 8  # batches, and calls, in a row that end a run
AT_ONCE = 64  # calls of one response
FATAL = (Cancelled, LeaseLost, RunFailed, OperationalError, InterfaceError)
KEY = "arguments"
RUN_COMMAND, DELEGATE = "run_command", "delegate"

ID_TWICE = "A call id was used twice."
NOT_ALONE = "A tool that waits has to be alone in its batch."
TOO_MANY = f"At most {AT_ONCE} calls can be made at once."


async def run_batch(run: RunSession, batch: Tools) -> Suspended | None:
    """Run the calls in the model's order; returns what the run now waits for, if anything.

    Raises:
        OutcomeUnknown: something outside may or may not have happened; a person has to look.
        Cancelled, LeaseLost: no later call starts.
        RunFailed: three flawed batches, or eight failed calls, in a row.
    """
    waiting: Suspended | None = None
    if not run.is_inside(batch) and (flaw := await _flaw(run, batch)):
        await _start_none(run, batch, flaw)
    else:
        run.flawed = 0
        for call in list(run.unanswered(batch)):
            if waiting := await _run_call(run, call):
                break
    if waiting is None or not waiting.is_open:
        run.ids_of_earlier_batches.update(call.provider_id for call in batch.calls)
        run.allowance = 1
    return waiting


async def _flaw(run: RunSession, batch: Tools) -> str | None:
    return find_flaw(run, batch) or await _overreach(run, batch)


def find_flaw(run: RunSession, batch: Tools) -> str | None:
    """Why not one call of this batch may start, in words the model can act on, or None."""
    if len(batch.calls) > AT_ONCE:
        return TOO_MANY
    ids_here = [call.provider_id for call in batch.calls]
    if len(set(ids_here)) < len(ids_here):
        return ID_TWICE
    if not run.model.ids_are_per_response and not run.ids_of_earlier_batches.isdisjoint(ids_here):
        return ID_TWICE
    if unknown := [call.tool for call in batch.calls if call.tool not in run.tools]:
        return f"Not a tool of this run: {', '.join(unknown)[:200]}."
    if len(ids_here) > 1 and any(run.tools[call.tool].waits for call in batch.calls):
        return NOT_ALONE
    return None


async def _overreach(run: RunSession, batch: Tools) -> str | None:
    """Why work may not be handed on as this batch wants, in the principal's language."""
    for call in batch.calls:
        if call.tool != DELEGATE:
            continue
        arguments, _fault = policies.read(call.arguments, run.tools[DELEGATE].schema)
        agent = (arguments or {}).get("agent")
        if not isinstance(agent, str):
            continue  # that call's own refusal says so
        try:
            await db.read(delegating.check, run, agent)
        except AppError as refused:
            return faults.words_of(refused, run.facts.locale)
    return None


async def _start_none(run: RunSession, batch: Tools, flaw: str) -> None:
    entries = await writing.now(
        run, records.not_started, run.claim, batch.calls, flaw, run.transcript.next_seq
    )
    run.transcript.add(*entries)
    run.flawed += 1
    if run.flawed >= FLAWED:
        raise RunFailed("flawed", "The model asked for calls that cannot be made.")


async def _run_call(run: RunSession, call: ProposedCall) -> Suspended | None:
    run.check()
    spending.check_time(run.content.limits, run.active_ms(clock.now()))
    prepared = prepare(run, call)
    ran: Ran | None = await _permitted(run, prepared)
    if ran is None:
        ran = await _carry_out(run, prepared)
    result = await after(run, prepared, ran)
    if isinstance(result, Unknown):
        raise OutcomeUnknown(call.id)
    if run.failed_in_a_row >= FAILING:
        raise RunFailed("failing", "Too many calls failed in a row.")
    return result if isinstance(result, Suspended) else None


async def _permitted(run: RunSession, call: Prepared) -> Result | None:
    """As `permit` says; one that raises lets nothing through, and costs this call alone (F-41)."""
    try:
        return await permit(run, call)
    except FATAL:
        raise
    except Exception as fault:  # noqa: BLE001 - the model learns what it may, the cause stays private
        return faults.internal(call, fault)


async def _carry_out(run: RunSession, call: Prepared) -> Ran:
    if call.has_waited and (settled := _after_waiting(run, call)) is not None:
        return settled
    await before(run, call)
    return await execute(run, call)


def prepare(run: RunSession, call: ProposedCall) -> Prepared:
    """Parse the arguments and redact a copy for the record; no effect, no database."""
    tool = run.tools.get(call.tool) or _gone(call)
    arguments, fault = policies.read(call.arguments, tool.schema)
    descriptor = tool.descriptor
    if descriptor is None and tool.reaches is not None and arguments is not None:
        descriptor = tool.reaches(arguments)
    secrets = _secrets(tool, descriptor)
    redacted: Mapping[str, Any] = redacting.masked(arguments or {}, secrets)
    waited = run.waited.get(call.id)
    return Prepared(
        call=call,
        tool=tool,
        arguments=arguments,
        redacted=redacted,
        sha256=_digest(redacted) if arguments is not None else ids.sha256(call.arguments),
        fault=fault,
        descriptor=descriptor,
        attempt=1 if waited is None else int(waited.get("attempt", 2)),
        approval_id=None if waited is None else waited.get("approval_id"),
        has_waited=waited is not None,
    )


async def permit(run: RunSession, call: Prepared) -> Result | None:
    """None when the call may run; otherwise the result that tells the model why not."""
    if call.has_waited:  # permitted before it waited for a person, whose decision stands
        return None
    for policy in policies.POLICIES:
        if refusal := await policy(run, call):
            return refusal
    return None


async def before(run: RunSession, call: Prepared) -> None:
    """Still ours, and not cancelled? Then the record says Started, and only then things happen."""
    run.check()
    await writing.now(run, _start, run, call)


def _start(work: Work, run: RunSession, call: Prepared) -> None:
    records.start(work, run, call)
    heads.started(work, run, call)


async def execute(run: RunSession, call: Prepared) -> Ran:
    """Do it, with no transaction open; whatever comes of it is the call's one result.

    Raises:
        Cancelled, LeaseLost: nothing more may happen.
        OperationalError, InterfaceError: the store is lost, and with it whether anything happened.
    """
    try:
        return await call.tool.run(run, call)
    except FATAL:
        raise
    except Exception as fault:  # noqa: BLE001 - the model learns what it may, the cause stays private
        return faults.result_of(run, call, fault)


async def after(run: RunSession, call: Prepared, ran: Ran) -> Result | Suspended:
    """Record and transcript in one commit: then a crash loses neither.

    A local effect is made in it. What is over already is written with what the run writes next:
    before the next call is Started, or the model is asked.
    """
    if isinstance(ran, InCommit):
        finished = await _made(run, call, ran)
    else:
        finished = records.Finished(ran, records.entry_of(call.call, ran, run.transcript.next_seq))
        writing.later(run, _finish, run, call, ran, run.transcript.next_seq)
    if finished.entry is not None:
        run.transcript.add(finished.entry)
    run.waited.pop(call.call.id, None)
    if not isinstance(finished.result, Suspended):
        run.history.append(past(call.call.tool, call.sha256, finished.result))
    return finished.result


def past(tool: str, arguments: str, result: Result) -> Past:
    """A call that is over, as the breakers remember it."""
    outcome = STOPPED if isinstance(result, NotStarted) else digest(result.data())
    return Past(tool, arguments, outcome, isinstance(result, Refused))


async def _made(run: RunSession, call: Prepared, effect: InCommit) -> records.Finished:
    seq = run.transcript.next_seq
    try:
        return await writing.now(run, _finish, run, call, effect, seq)
    except CallerGone as gone:
        raise LeaseLost from gone
    except FATAL:
        raise
    except AppError as refused:
        result: Result = faults.refusal_of(run, refused)
    except Exception as fault:  # noqa: BLE001 - a local effect that failed: nothing of it stays
        result = faults.result_of(run, call, fault)
    return await writing.now(run, _finish, run, call, result, seq)


def _finish(work: Work, run: RunSession, call: Prepared, ran: Ran, seq: int) -> records.Finished:
    finished = records.finish(work, run, call, ran, seq)
    heads.finished(work, run, call, finished.result)
    return finished


def _after_waiting(run: RunSession, call: Prepared) -> Ran | None:
    """What a call that waited is answered, where it is not to be made; None: go on with it."""
    answer = run.waited[call.call.id]
    settled: Ran | None = answer.get("result")
    return settled


def _gone(call: ProposedCall) -> Tool:
    """A stand-in for a tool that went while its call waited: it refuses, loudly (F-25)."""

    async def refuse(_run: RunSession, _call: Prepared) -> Ran:
        return Refused(
            reason="tool_gone",
            advice="do_not_retry",
            detail="This tool is not among the tools of this agent any more.",
        )

    return Tool(name=call.tool, description="", schema={"type": "object"}, run=refuse)


def _secrets(tool: Tool, descriptor: Any) -> frozenset[str]:
    if descriptor is None:  # of an unknown command nobody knows what is secret
        return frozenset({KEY} if tool.name == RUN_COMMAND else ())
    named: frozenset[str] = descriptor.definition.secrets
    if tool.kind == CallKind.COMMAND and tool.name != RUN_COMMAND:
        return named
    return frozenset(f"{KEY}/{pointer}" for pointer in named)


def _digest(arguments: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps_sorted(dict(arguments))).hexdigest()
