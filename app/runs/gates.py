"""What an input must pass at the moment of its admission (agent-loop.md, 4; RUN-14).

It passes, or it is held and stays queued with the reason, or it is dropped with the reason. The
lane's row is held until the commit, so that two admissions count one after the other.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.aun.group_models import GroupStatus
from app.identity.models import AgentStatus, TenantStatus, UserStatus
from app.kernel import clock
from app.kernel.db import Work
from app.runs import lanes, rows
from app.runs.states import Hold, InputState, SenderKind

IN_A_ROW = 6  # inputs of agents without a person's between them
AN_HOUR, AN_HOUR_OF_PERSONS = 60, 120  # inputs of one lane
HOUR = timedelta(hours=1)
LOOK_AGAIN = timedelta(minutes=1)  # at what only another event lifts
DELETED, NOT_A_MEMBER, PRINCIPAL_DISABLED = "deleted", "not_member", "principal_disabled"
UNLINKED = "unlinked"  # an outside client that was linked when it wrote


@dataclass(frozen=True, slots=True)
class Held:
    """It stays queued; `until` it is not asked about again, unless something lifts the hold."""

    hold: Hold
    until: datetime | None
    persons: bool = True  # whether inputs of people are held too


@dataclass(frozen=True, slots=True)
class Dropped:
    """It will never be taken."""

    reason: str


def lane(work: Work, tenant_id: str, lane_id: str) -> Any:
    """A lane with what stands around it, its row held until the commit."""
    return rows.LANE.run(work.connection, tenant_id=tenant_id, lane_id=lane_id).one()


def judge(lane: Any, queued: Any) -> Held | Dropped | None:
    """What keeps one queued input from being taken now; None: nothing does."""
    return _gone(lane, queued) or _resting(lane) or _spent(lane, queued)


def apply(work: Work, lane: Any, queued: Any, verdict: Held | Dropped) -> None:
    """Write down what a gate said, and tell who may know."""
    if isinstance(verdict, Dropped):
        drop(work, lane, queued, verdict.reason)
    else:
        hold(work, lane, verdict)


def drop(work: Work, lane: Any, queued: Any, reason: str) -> bool:
    """Drop one queued input; whether it was still queued."""
    closed = close(work, queued.tenant_id, queued.id, InputState.DROPPED, reason)
    lanes.tell(work, closed, lane.user_id)
    return bool(closed)


def close(work: Work, tenant_id: str, input_id: str, state: InputState, reason: str) -> Any:
    """Archive or drop one queued input; the row as it is then, or none."""
    return rows.CLOSE.run(
        work.connection,
        tenant_id=tenant_id,
        id=input_id,
        state=state.value,
        reason=reason[:40],
        now=clock.now(),
    ).all()


def hold(work: Work, lane: Any, held: Held) -> None:
    """Let every queued input of the lane that it is about say why it waits."""
    key: dict[str, Any] = {"tenant_id": lane.tenant_id, "lane_id": lane.id, "until": held.until}
    key["hold"] = held.hold.value
    told = rows.HOLD.run_with(work.connection, key | {"persons": held.persons}).all()
    if held.until is not None:
        rows.HOLD_ON.run_with(work.connection, key)
    lanes.tell(work, told, lane.user_id)


def count(work: Work, lane: Any, queued: Any) -> None:
    """Count an admitted input against the lane's quota (RUN-13)."""
    now, began = clock.now(), rows.moment(lane.hour_start)
    is_new_hour = began is None or now - began >= HOUR
    is_persons = queued.sender_kind == SenderKind.PERSON
    rows.COUNT_INPUT.run(
        work.connection,
        tenant_id=lane.tenant_id,
        lane_id=lane.id,
        agent_streak=0 if is_persons else lane.agent_streak + 1,
        hour_start=now if is_new_hour else began,
        hour_used=1 if is_new_hour else lane.hour_used + 1,
    )


def _gone(lane: Any, queued: Any) -> Dropped | None:
    """What makes an input one that nobody will ever take."""
    is_group = lane.group_id is not None
    if queued.stored is None or queued.recalled_at is not None or queued.payload is None:
        return Dropped(DELETED)
    if lane.group_status == GroupStatus.DISSOLVED:
        return Dropped(DELETED)
    if lane.agent_from_seq is None or queued.log_seq <= lane.agent_from_seq:
        return Dropped(NOT_A_MEMBER)
    if is_group and not lane.is_principal_in:
        return Dropped(NOT_A_MEMBER)
    if lane.reset_after_seq is not None and queued.log_seq <= lane.reset_after_seq:
        return Dropped(lanes.CONTEXT_RESET)
    if lane.user_id is not None and lane.user_status != UserStatus.ACTIVE:
        return Dropped(PRINCIPAL_DISABLED)
    if queued.is_unlinked:
        return Dropped(UNLINKED)
    return None


def _resting(lane: Any) -> Held | None:
    """An agent that is off gets its mail when it is on again (aun.md, 14)."""
    is_off = lane.agent_status != AgentStatus.PUBLISHED
    is_suspended = lane.tenant_status != TenantStatus.ACTIVE
    paused = (lane.paused_at, lane.delegation_paused_at, lane.agent_paused_at)
    if is_off or is_suspended or any(each is not None for each in paused):
        return Held(Hold.PAUSED, clock.now() + LOOK_AGAIN)
    return None


def _spent(lane: Any, queued: Any) -> Held | None:
    """The reply quota (RUN-13)."""
    is_persons = queued.sender_kind == SenderKind.PERSON
    if not is_persons and lane.agent_streak >= IN_A_ROW:
        return Held(Hold.QUOTA, clock.now() + HOUR, persons=False)
    began = rows.moment(lane.hour_start)
    if began is None or clock.now() - began >= HOUR:
        return None
    limit = AN_HOUR_OF_PERSONS if is_persons else AN_HOUR
    if lane.hour_used >= limit:
        return Held(Hold.QUOTA, began + HOUR, persons=is_persons)
    return None
