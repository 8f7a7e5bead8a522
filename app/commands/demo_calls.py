"""Calls of the demo: the real pipeline, in the transaction that makes the workspaces, in the past.

Reports and stock of the demo came about as yours will: through every stage, each with its entry,
and with a decision where one is needed.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from app.commands import deciding, pipeline, refusals
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.outcome import Done
from app.commands.refusals import Trying
from app.commands.refused import Refused
from app.identity import sessions
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work

THOUGHT_OVER = timedelta(minutes=7)  # between what was asked and the decision


def run(work: Work, person: User, code: str, input: Mapping[str, Any], *, at: datetime) -> Done:
    """Run a command as `person`, at `at`.

    Raises:
        Refused: a stage said no: the demo has a fault.
    """
    work.session.flush()  # the pipeline reads with prepared SQL
    with clock.telling(at):
        return pipeline.perform(work, _call(work, person, code, input))


def run_approved(
    work: Work,
    requester: User,
    approver: User,
    code: str,
    input: Mapping[str, Any],
    *,
    at: datetime,
) -> Done:
    """Run a command that needs a person's word, which `approver` gives at `at`.

    Raises:
        Refused: a stage said no: the demo has a fault.
    """
    work.session.flush()
    call = _call(work, requester, code, input)
    with clock.telling(at - THOUGHT_OVER):
        approval_id = _ask(work, call)
    with clock.telling(at):
        _assent(work, approver, approval_id)
        return pipeline.perform(work, replace(call, call_id=ids.ulid(), approval_id=approval_id))


def _ask(work: Work, call: Call) -> str:
    trying = Trying(call)
    try:
        pipeline.perform(work, call, trying)
    except Refused as refusal:
        asked = refusals.record(work, trying, refusal, pipeline.rehearse)
        if "approvalId" in asked.facts:
            return str(asked.facts["approvalId"])
        raise
    raise ValueError(f"{call.code} needs no approval")


def _assent(work: Work, approver: User, approval_id: str) -> None:
    person = _person(work, approver)
    row = work.session.get_one(Approval, (approver.tenant_id, approval_id), populate_existing=True)
    decision = Decision(
        verdict="approve",
        digest=row.digest,
        nonce=deciding.nonce_for(row, person.session_id or ""),
        typed=deciding.to_type(row),
    )
    deciding.decide(work, person, approval_id, decision, Browser(is_fresh=True, surface="demo"))


def _call(work: Work, person: User, code: str, input: Mapping[str, Any]) -> Call:
    return Call(code=code, input=dict(input), principal=_person(work, person))


def _person(work: Work, user: User) -> Principal:
    found = sessions.requester(work.session, user.tenant_id, user.id, None)
    if found is None:
        raise ValueError(f"{user.login} is not active")
    return found
