"""Handing a piece of work to another agent: a run of its own, under the same person (RUN-7).

The child has its own context and never a wider scope; its steps count on the root. The parent's
call waits for how it ends, and for its closing text.
"""

from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.aun import conversations, queries
from app.aun.group_models import Member
from app.aun.models import Conversation
from app.identity import agents, delegations
from app.identity.models import Agent
from app.identity.principal import Scope
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.runs import lease, places, told
from app.runs.authority import DEEPEST
from app.runs.outcome import Done, Refused, Result, reply_of
from app.runs.places import NotToBeSpokenTo
from app.runs.release import Content
from app.runs.run_models import Run, TranscriptEntry
from app.runs.session import RunSession
from app.runs.states import FINAL_RUNS, EntryKind, RunKind, RunState


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """What is handed over, and to whom: an agent's code or AID.

    Attributes:
        step_cap: how much of the root's steps it may use; None: what is left.
    """

    agent: str
    task: str
    step_cap: int | None = None


class TooDeep(AppError):
    """A chain of agents is three long at most."""

    reason = "chain_too_long"
    status = 409
    advice = "do_not_retry"
    says = N_("Agents hand work on three times at most. Do it yourself, or say that you cannot.")


class NothingToHandOn(AppError):
    """Nobody let this agent act, so there is nothing that another could do for them."""

    reason = "no_delegation"
    status = 403
    advice = "report_to_user"
    says = N_("This agent acts for nobody here, so it cannot hand work on.")


def check(session: Session, run: RunSession, agent: str) -> None:
    """Return where the run may hand work to the agent of that code or AID (RUN-31).

    Raises:
        NotToBeSpokenTo, TooDeep, NothingToHandOn: it may not.
    """
    parent = session.get_one(Run, (run.claim.tenant_id, run.claim.run_id))
    _allowed(session, run, parent, agent)


def delegate(work: Work, run: RunSession, errand: Errand, call_id: str) -> Run:
    """Queue the child run of a call; the same call once more finds it.

    Raises:
        NotToBeSpokenTo: there is no such agent that this run may hand work to.
        TooDeep, NothingToHandOn: nothing can be handed on here.
    """
    lease.hold_unless_stopped(work, run.claim)
    parent = work.session.get_one(Run, (run.claim.tenant_id, run.claim.run_id))
    agent = _allowed(work.session, run, parent, errand.agent)
    key = f"call:{call_id}"
    query = select(Run).where(Run.tenant_id == parent.tenant_id, Run.request_key == key)
    if (known := work.session.exec(query).first()) is not None:
        return known
    made = _made(work.session, run, parent, agent, errand, call_id)
    work.session.add(made)
    work.session.flush()
    told.run(work, made)
    return made


def result_of(session: Session, child: Run) -> Result | None:
    """What the parent's call answers: the child's end and closing text; None while it works."""
    if child.state not in FINAL_RUNS:
        return None
    agent = session.get(Agent, (child.tenant_id, child.agent_id))
    facts = {"agent": agent.name if agent else "", "run": child.id, "run_state": child.state}
    text = _closing_text(session, child)
    if child.state == RunState.COMPLETED:
        return Done(result={**facts, "text": text})
    if text:
        facts["text"] = text
    return Refused(
        reason=f"run_{child.state}",
        advice="report_to_user",
        detail=child.public_error or "",
        facts={**facts, "why": child.reason} if child.reason else facts,
    )


def _allowed(session: Session, run: RunSession, parent: Run, named: str) -> Agent:
    agent = places.contact(session, run, _agent(session, run, named))
    if parent.user_id is None or parent.delegation_id is None or run.principal is None:
        raise NothingToHandOn
    if parent.depth >= DEEPEST or len(parent.actors) >= DEEPEST:
        raise TooDeep
    return agent


def _agent(session: Session, run: RunSession, named: str) -> Agent | None:
    tenant_id = run.facts.tenant_id
    found = agents.by_code(session, tenant_id, named)
    if found is None:
        query = select(Agent).where(Agent.tenant_id == tenant_id, Agent.aid == named)
        found = session.exec(query).first()
    return found


def _made(
    session: Session, run: RunSession, parent: Run, agent: Agent, errand: Errand, call_id: str
) -> Run:
    delegation = delegations.live(session, parent.tenant_id, parent.user_id or "", agent.id)
    release = agents.latest_release(session, agent)
    if delegation is None or release is None or run.principal is None:
        raise NotToBeSpokenTo
    narrowed = run.principal.narrowed(
        agent_id=agent.id,
        agent_release_id=release.id,
        delegation_id=delegation.id,
        scopes=Scope.among(delegation.scopes),
    )
    content = Content.of(release.content)
    root = session.get_one(Run, (parent.tenant_id, parent.root_run_id))
    return Run(
        tenant_id=parent.tenant_id,
        id=ids.ulid(),
        kind=RunKind.DELEGATED,
        engine=content.engine,
        agent_id=agent.id,
        release_id=release.id,  # immutable: the snapshot of this moment (RUN-7)
        conversation_id=_conversation(session, parent, agent),
        request_key=f"call:{call_id}",
        user_id=parent.user_id,
        delegation_id=delegation.id,
        actors=list(narrowed.actors),
        scopes=sorted(scope.value for scope in narrowed.scopes),
        depth=parent.depth + 1,
        origin_message_id=parent.origin_message_id,
        parent_run_id=parent.id,
        parent_call_id=call_id,
        root_run_id=parent.root_run_id,
        note=errand.task,
        step_limit=min(errand.step_cap or root.step_limit, root.step_limit),
        queued_at=clock.now(),
    )


def _conversation(session: Session, parent: Run, agent: Agent) -> str | None:
    """Where the child speaks: in its parent's group, if it is a member; else with their person.

    A conversation of two has no place for a third: there it has its own with the same person.
    """
    tenant_id, own_aid = parent.tenant_id, agent.aid or ""
    around = session.get(Conversation, (tenant_id, parent.conversation_id or ""))
    group_id = around.group_id if around is not None else None
    if group_id is not None and session.get(Member, (tenant_id, group_id, own_aid)) is not None:
        return parent.conversation_id
    person = queries.of_owner(session, tenant_id, parent.user_id or "")
    if person is None:
        return None
    return conversations.id_of_pair(session, tenant_id, own_aid, person.aid)


def _closing_text(session: Session, child: Run) -> str:
    """The text of its last response, if that called nothing; silence is an empty one."""
    query = (
        select(TranscriptEntry)
        .where(
            TranscriptEntry.tenant_id == child.tenant_id,
            TranscriptEntry.run_id == child.id,
            TranscriptEntry.kind == EntryKind.RESPONSE,
        )
        .order_by(col(TranscriptEntry.seq).desc())
        .limit(1)
    )
    last = session.exec(query).first()
    if last is None or last.body.get("calls"):
        return ""
    return reply_of(str(last.body.get("text") or "")).text or ""
