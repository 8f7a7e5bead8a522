"""Work that was assigned to agents: open until it is reported, whatever becomes of runs (RUN-94).

A run that ends closes no task. Left without a report, a task stays `working`, and its agent is
reminded of it once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlmodel import Session, col, select

from app.aun import conversations, queries
from app.identity.models import Agent
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import AppError, NotFound
from app.kernel.i18n import N_
from app.kernel.prepared import Prepared
from app.runs import authority, lease, opening
from app.runs.run_models import Run, Task
from app.runs.session import RunSession
from app.runs.states import RunKind, RunState, TaskState

OPEN = frozenset({TaskState.OPEN, TaskState.WORKING, TaskState.REPORTED})
MOST = 50
REPORT = (
    "You were given the task “{title}” ({id}), and your last run ended without a report of it. Say "
    "how it stands with task_update. What was asked:\n{instructions}"
)
GIVEN = (
    "You are given the task “{title}” ({id}). Report how it ends with task_update. What is asked:\n"
    "{instructions}"
)

_UPDATE = Prepared(
    "UPDATE agent_task SET state = :state, report = :report, run_id = :run_id, "
    "version = version + 1 WHERE tenant_id = :tenant_id AND id = :id AND agent_id = :agent_id "
    "AND user_id = :user_id AND state IN ('open', 'working', 'reported')"
)
_REMIND = Prepared(
    "UPDATE agent_task SET state = 'working', reminded_at = :now, version = version + 1 "
    "WHERE tenant_id = :tenant_id AND id = :id AND reminded_at IS NULL "
    "AND report IS NULL AND state IN ('open', 'working')"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a person gives an agent to do."""

    title: str
    instructions: str
    due_at: datetime | None = None
    process_ref: str | None = None


class TaskClosed(AppError):
    """The task is over."""

    reason = "task_closed"
    status = 409
    advice = "do_not_retry"
    says = N_("This task is closed already.")


def assign(work: Work, person: Principal, agent: Agent, given: Assignment) -> Task:
    """Put work into the ledger, and queue the run that takes it up."""
    task = Task(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        title=given.title,
        instructions=given.instructions,
        assigned_by=person.user_id,
        agent_id=agent.id,
        user_id=person.user_id,
        conversation_id=_conversation(work.session, person.tenant_id, person.user_id, agent),
        process_ref=given.process_ref,
        due_at=given.due_at,
        created_at=clock.now(),
    )
    work.session.add(task)
    work.session.flush()
    run = _queue(work, task, f"task:{task.id}", GIVEN)
    task.run_id = run.id
    work.session.add(task)
    work.session.flush()
    return task


def own(session: Session, run: RunSession) -> Sequence[Task]:
    """The tasks of this agent for its principal that are not over, the oldest first."""
    query = (
        select(Task)
        .where(
            Task.tenant_id == run.facts.tenant_id,
            Task.agent_id == run.facts.agent_id,
            Task.user_id == run.facts.user_id,
            col(Task.state).in_(OPEN),
        )
        .order_by(col(Task.id))
        .limit(MOST)
    )
    return session.exec(query).all()


def update(work: Work, run: RunSession, task_id: str, state: TaskState, report: str | None) -> Task:
    """Say how one of the agent's own tasks stands.

    Raises:
        NotFound: there is none, or it is another agent's or another person's.
        TaskClosed: it is over.
    """
    lease.hold(work, run.claim)
    task = work.session.get(Task, (run.facts.tenant_id, task_id), populate_existing=True)
    facts = run.facts
    if task is None or (task.agent_id, task.user_id) != (facts.agent_id, facts.user_id):
        raise NotFound
    done = _UPDATE.run(
        work.connection,
        tenant_id=task.tenant_id,
        id=task.id,
        agent_id=task.agent_id,
        user_id=task.user_id,
        state=state.value,
        report=report if report is not None else task.report,
        run_id=facts.run_id,
    )
    if done.rowcount != 1:
        raise TaskClosed
    work.session.refresh(task)
    return task


def after_run(work: Work, row: Run) -> None:
    """See to a run's task when it ends: without a report it stays open, reminded of once (RUN-47).

    Of a run that was stopped nobody is reminded: somebody wanted it to stop.
    """
    if row.task_id is None or row.state == RunState.CANCELED:
        return
    task = work.session.get(Task, (row.tenant_id, row.task_id), populate_existing=True)
    if task is None or task.report is not None:
        return
    reminded = _REMIND.run(
        work.connection, tenant_id=row.tenant_id, id=row.task_id, now=clock.now()
    )
    if reminded.rowcount == 1:
        work.session.refresh(task)
        _queue(work, task, f"reminder:{task.id}", REPORT)


def _queue(work: Work, task: Task, request_key: str, says: str) -> Run:
    content = opening.content_of(work, task.tenant_id, task.agent_id)
    mandate = authority.mandate_for(work.session, task.tenant_id, task.agent_id, task.user_id)
    made = ids.ulid()
    note = says.format(title=task.title, id=task.id, instructions=task.instructions)
    run = Run(
        tenant_id=task.tenant_id,
        id=made,
        kind=RunKind.WORK,
        engine=content.engine,
        agent_id=task.agent_id,
        conversation_id=task.conversation_id,
        request_key=request_key,
        user_id=mandate.user_id,
        delegation_id=mandate.delegation_id,
        actors=mandate.actors,
        scopes=mandate.scopes,
        depth=mandate.depth,
        root_run_id=made,
        task_id=task.id,
        note=note,
        step_limit=content.limits.steps,
        queued_at=clock.now(),
    )
    opening.start(work, run)
    return run


def _conversation(session: Session, tenant_id: str, user_id: str, agent: Agent) -> str | None:
    """The direct conversation of a person and an agent, if they have one (RUN-94)."""
    person = queries.of_owner(session, tenant_id, user_id)
    if person is None or agent.aid is None:
        return None
    return conversations.id_of_pair(session, tenant_id, agent.aid, person.aid)


def told(task: Task) -> dict[str, Any]:
    """A task as the model reads it."""
    found = {
        "task_id": task.id,
        "title": task.title,
        "instructions": task.instructions,
        "state": task.state,
        "report": task.report,
        "due_at": clock.rfc3339(task.due_at) if task.due_at else None,
    }
    return {name: value for name, value in found.items() if value is not None}
