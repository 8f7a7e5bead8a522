"""Lanes: one agent, one party, one conversation, one discussion; and what a person may do with one.

A pause lets inputs wait, a reset lets what was said before it never enter a context again.
"""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session

from app.aun.models import Conversation
from app.identity import facts
from app.identity.agents import one as agent_of
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import NotFound
from app.runs import rows, told
from app.runs.run_models import AgentPause, Lane
from app.runs.states import Hold, InputState

CONTEXT_RESET = "context_reset"


@dataclass(frozen=True, slots=True)
class Party:
    """For whom an agent works in a lane: a user of ours, or an outside peer whom nobody knows."""

    user_id: str | None = None
    peer_aid: str | None = None

    @property
    def key(self) -> str:
        """As the lane's row keeps it."""
        return f"user:{self.user_id}" if self.user_id else f"peer:{self.peer_aid}"


def find_or_make(
    work: Work, tenant_id: str, agent_id: str, party: Party, conversation_id: str, discussion: str
) -> str:
    """The id of the lane of these four."""
    key = {
        "tenant_id": tenant_id,
        "agent_id": agent_id,
        "party": party.key,
        "conversation_id": conversation_id,
        "discussion": discussion,
    }
    if found := rows.LANE_ID.run_with(work.connection, key).scalar():
        return str(found)
    made: dict[str, Any] = {"id": ids.ulid(), "created_at": clock.now()}
    made |= {"user_id": party.user_id, "peer_aid": None if party.user_id else party.peer_aid}
    rows.MAKE_LANE.run_with(work.connection, key | made)
    return str(rows.LANE_ID.run_with(work.connection, key).scalar())


def own(session: Session, person: Principal, lane_id: str) -> Lane:
    """A lane in which an agent works for this person.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    lane = session.get(Lane, (person.tenant_id, lane_id))
    if lane is None or not person.is_person or lane.user_id != person.user_id:
        raise NotFound
    return lane


def pause(work: Work, person: Principal, lane_id: str, paused: bool) -> Lane:
    """Let a lane rest, or go on; what runs in it parks before its next turn.

    Raises:
        NotFound: it is not the person's.
    """
    lane = own(work.session, person, lane_id)
    if paused == (lane.paused_at is not None):
        return lane
    lane.paused_at = clock.now() if paused else None
    work.session.add(lane)
    work.session.flush()
    if not paused:
        release(work, lane.tenant_id, lane.id, Hold.PAUSED, lane.user_id)
    work.announce(told.Hint(tenant_id=lane.tenant_id, what="lane", id=lane.id))
    return lane


def reset(work: Work, person: Principal, lane_id: str) -> Lane:
    """Begin anew: nothing said so far enters a context of this lane, queued inputs included.

    Raises:
        NotFound: it is not the person's.
    """
    lane = own(work.session, person, lane_id)
    conversation = work.session.get_one(Conversation, (lane.tenant_id, lane.conversation_id))
    lane.reset_after_seq, lane.agent_streak = conversation.last_seq, 0
    work.session.add(lane)
    work.session.flush()
    drop_queued(work, lane.tenant_id, lane.id, CONTEXT_RESET, up_to=conversation.last_seq)
    return lane


def pause_agent(work: Work, person: Principal, agent_id: str, paused: bool) -> None:
    """Let an agent rest for everybody, or go on; for administrators, as their page checks.

    Raises:
        NotFound: there is no such agent.
    """
    agent = agent_of(work.session, person.tenant_id, agent_id)
    found = work.session.get(AgentPause, (person.tenant_id, agent.id))
    if paused == (found is not None):
        return
    action = "identity.agent.pause" if paused else "identity.agent.resume"
    facts.record(work, action, person, target=("agent", agent.id))
    if found is not None:
        work.session.delete(found)
        work.session.flush()
        _release_agent(work, person.tenant_id, agent.id)
    else:
        work.session.add(
            AgentPause(
                tenant_id=person.tenant_id,
                agent_id=agent.id,
                paused_at=clock.now(),
                paused_by=person.user_id,
            )
        )
    work.announce(told.Hint(tenant_id=person.tenant_id, what="lane", id=agent.id))


def release(work: Work, tenant_id: str, lane_id: str, hold: Hold, watcher_id: str | None) -> None:
    """Take a hold off the queued inputs of a lane."""
    key = {"tenant_id": tenant_id, "lane_id": lane_id, "hold": hold.value}
    tell(work, rows.UNHOLD.run_with(work.connection, key).all(), watcher_id)


def drop_queued(
    work: Work, tenant_id: str, lane_id: str, reason: str, up_to: int | None = None
) -> None:
    """Drop what is queued in a lane, up to a place in the event log."""
    lane = work.session.get_one(Lane, (tenant_id, lane_id))
    found = rows.DROP_QUEUED.run(
        work.connection,
        tenant_id=tenant_id,
        lane_id=lane_id,
        state=InputState.DROPPED.value,
        reason=reason,
        up_to=up_to if up_to is not None else 2**62,
        now=clock.now(),
    )
    tell(work, found.all(), lane.user_id)


def tell(work: Work, inputs: Any, watcher_id: str | None) -> None:
    """Tell whoever may know how inputs stand now; rows as the scheduler's statements give them."""
    known: dict[str, str] = {}
    for row in inputs:
        if row.lane_id not in known:
            known[row.lane_id] = _conversation_of(work, row.tenant_id, row.lane_id)
        told.input(work, row, known[row.lane_id], watcher_id=watcher_id)


def watcher_of(work: Work, tenant_id: str, lane_id: str) -> str | None:
    """The user for whom the agent works in a lane."""
    found = rows.CONVERSATION_OF.run(work.connection, tenant_id=tenant_id, lane_id=lane_id).first()
    return found.user_id if found else None


def _release_agent(work: Work, tenant_id: str, agent_id: str) -> None:
    for row in rows.HELD_LANES.run(work.connection, tenant_id=tenant_id, agent_id=agent_id):
        release(work, tenant_id, row.id, Hold.PAUSED, row.user_id)


def _conversation_of(work: Work, tenant_id: str, lane_id: str | None) -> str:
    found = rows.CONVERSATION_OF.run(work.connection, tenant_id=tenant_id, lane_id=lane_id)
    return str(found.scalar() or "")
