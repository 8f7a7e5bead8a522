"""Schedules: when an agent works for a person unasked, in the person's own time (RUN-54).

What a rule may say is in `schedule_rules`. What was missed happens once, not often.
"""

from collections.abc import Sequence
from datetime import datetime
from zoneinfo import ZoneInfoNotFoundError

from sqlmodel import Session, col, func, select

from app.aun import conversations
from app.identity import agents
from app.identity.models import Agent, AgentStatus, User, UserStatus
from app.identity.principal import Principal
from app.kernel import clock, db, ids
from app.kernel.db import Work
from app.kernel.due import Due
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.runs import authority, opening, rows
from app.runs.run_models import AgentPause, AgentSchedule, Run
from app.runs.schedule_rules import next_after, parse
from app.runs.states import RunKind

AT_ONCE = 50
AT_MOST = 20  # schedules of one person with one agent
INSTRUCTION_LENGTH = 4_000

_DUE = Due("agent_schedule")


def create(
    work: Work, person: Principal, agent_id: str, instruction: str, rule: str, zone: str
) -> AgentSchedule:
    """Let an agent work for the person at the times of a rule.

    Raises:
        NotFound: there is no such agent.
        Invalid: the rule, the zone or the instruction is none, or there are twenty already.
    """
    agent = agents.one(work.session, person.tenant_id, agent_id)
    text = instruction.strip()
    if not 0 < len(text) <= INSTRUCTION_LENGTH:
        raise Invalid(FieldError("instruction", N_("Say in up to 4,000 characters what to do.")))
    now = clock.now()
    first = _first(rule, zone, now)
    _make_room(work, person, agent)
    made = AgentSchedule(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        agent_id=agent.id,
        user_id=person.user_id,
        instruction=text,
        rule=rule.strip()[:100],
        zone=zone,
        next_at=first,
        created_at=now,
    )
    work.session.add(made)
    work.session.flush()
    return made


def pause(work: Work, person: Principal, schedule_id: str, paused: bool) -> AgentSchedule:
    """Let a schedule rest, or go on with its next time.

    Raises:
        NotFound: it is not the person's.
    """
    found = own(work.session, person, schedule_id)
    if paused != (found.paused_at is not None):
        found.paused_at = clock.now() if paused else None
        if not paused:
            found.next_at = next_after(parse(found.rule), found.zone, clock.now())
        found.version += 1
        work.session.add(found)
    return found


def remove(work: Work, person: Principal, schedule_id: str) -> None:
    """End a schedule; runs it opened stay.

    Raises:
        NotFound: it is not the person's.
    """
    work.session.delete(own(work.session, person, schedule_id))


def own(session: Session, person: Principal, schedule_id: str) -> AgentSchedule:
    """One schedule of the person.

    Raises:
        NotFound: there is none, or it is somebody else's.
    """
    found = session.get(AgentSchedule, (person.tenant_id, schedule_id))
    if found is None or not person.is_person or found.user_id != person.user_id:
        raise NotFound
    return found


def of_user(session: Session, person: Principal) -> Sequence[AgentSchedule]:
    """The person's schedules, the next one first."""
    query = select(AgentSchedule).where(
        AgentSchedule.tenant_id == person.tenant_id, AgentSchedule.user_id == person.user_id
    )
    return session.exec(query.order_by(col(AgentSchedule.next_at), col(AgentSchedule.id))).all()


async def fire_due() -> int:
    """Open the runs whose time has come; returns how many."""
    fired = 0
    for key in _DUE.ready(await db.read(_due, _DUE.resting)):
        with _DUE.trying(key):
            unit = give_up if _DUE.is_hopeless(key) else fire
            fired += await db.transaction(unit, *key)
    return fired


def fire(work: Work, tenant_id: str, schedule_id: str) -> bool:
    """Open the run of a schedule that is due and move it on; whether it opened one.

    Where the person or the agent may not work now it opens none; its next time stands all the same.
    """
    found = work.session.get(AgentSchedule, (tenant_id, schedule_id), populate_existing=True)
    now = clock.now()
    if found is None or found.next_at is None or found.next_at > now or found.paused_at:
        return False
    number = found.run_count + 1
    moved = rows.MOVE_SCHEDULE.run(
        work.connection,
        tenant_id=tenant_id,
        id=schedule_id,
        version=found.version,
        next_at=next_after(parse(found.rule), found.zone, now),
        now=now,
        number=number,
    )
    if moved.rowcount != 1:
        return False
    run = _run(work, found, number, now)
    if run is not None:
        opening.start(work, run)
    return run is not None


def give_up(work: Work, tenant_id: str, schedule_id: str) -> bool:
    """Let a schedule rest that cannot fire: the person sees it, and may set it up anew."""
    key = {"tenant_id": tenant_id, "id": schedule_id}
    rows.REST_SCHEDULE.run(work.connection, now=clock.now(), **key)
    return False


def _run(work: Work, schedule: AgentSchedule, number: int, now: datetime) -> Run | None:
    user = work.session.get_one(User, (schedule.tenant_id, schedule.user_id))
    agent = work.session.get_one(Agent, (schedule.tenant_id, schedule.agent_id))
    rests = work.session.get(AgentPause, (schedule.tenant_id, schedule.agent_id)) is not None
    if user.status != UserStatus.ACTIVE or agent.status != AgentStatus.PUBLISHED or rests:
        return None
    mandate = authority.mandate_for(work.session, agent.tenant_id, agent.id, user.id)
    if mandate.delegation_id is None or not (user.aid and agent.aid):
        return None  # it was let go, and works for this person no more
    made = ids.ulid()
    content = opening.content_of(work, agent.tenant_id, agent.id)
    return Run(
        tenant_id=agent.tenant_id,
        id=made,
        kind=RunKind.SCHEDULED,
        engine=content.engine,
        agent_id=agent.id,
        conversation_id=conversations.of_pair(work, agent.tenant_id, agent.aid, user.aid),
        request_key=f"schedule:{schedule.id}:{number}",
        user_id=user.id,
        delegation_id=mandate.delegation_id,
        actors=mandate.actors,
        scopes=mandate.scopes,
        depth=mandate.depth,
        root_run_id=made,
        note=schedule.instruction,
        step_limit=content.limits.steps,
        queued_at=now,
    )


def _make_room(work: Work, person: Principal, agent: Agent) -> None:
    """Refuse one too many; two at once come one after the other."""
    whose = (User.tenant_id == person.tenant_id, User.id == person.user_id)
    work.session.exec(select(User.id).where(*whose).with_for_update()).one()
    query = select(func.count()).where(
        AgentSchedule.tenant_id == person.tenant_id,
        AgentSchedule.user_id == person.user_id,
        AgentSchedule.agent_id == agent.id,
    )
    if work.session.exec(query).one() >= AT_MOST:
        says = N_("You have %(most)s schedules with this agent. Remove one first.")
        raise Invalid(FieldError("rule", says, {"most": AT_MOST}))


def _first(rule: str, zone: str, now: datetime) -> datetime:
    try:
        parsed = parse(rule)
    except ValueError as fault:
        says = N_(
            "Write when, such as “every day 9:00”, “weekdays at 9:00”, “every monday at 9:00” "
            "or “every 2 hours”; at the most every 5 minutes, at the least every 7 days."
        )
        raise Invalid(FieldError("rule", says)) from fault
    try:
        return next_after(parsed, zone, now)
    except (ZoneInfoNotFoundError, ValueError) as fault:
        raise Invalid(FieldError("zone", N_("There is no such time zone."))) from fault


def _due(session: Session, more: int = 0) -> list[tuple[str, str]]:
    query = (
        select(AgentSchedule.tenant_id, AgentSchedule.id)
        .where(col(AgentSchedule.next_at) <= clock.now(), col(AgentSchedule.paused_at).is_(None))
        .order_by(col(AgentSchedule.next_at))
        .limit(AT_ONCE + more)
    )
    return list(session.exec(query))
