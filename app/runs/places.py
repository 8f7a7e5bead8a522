"""Where a run may speak, and nowhere else (RUN-94); found out before it speaks, and as it does.

Its current conversation, the direct one with its principal, groups where both are, and agents that
its release may contact and its principal has enabled. Never another person directly; whoever is not
to be spoken to looks like somebody who does not exist.
"""

from dataclasses import dataclass

from sqlmodel import Session, select

from app.aun import conversations, queries
from app.aun.group_models import Group, GroupStatus, Member
from app.aun.models import Conversation, Identity, IdentityKind, IdentityStatus
from app.identity import delegations
from app.identity.models import Agent, AgentStatus
from app.kernel import clock
from app.kernel.errors import AppError
from app.kernel.i18n import N_
from app.runs.session import RunSession

DO_NOT_RETRY = "do_not_retry"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One conversation: with an AID, or of a group; `conversation_id` is None before it begins."""

    conversation_id: str | None
    other_aid: str | None = None
    group_id: str | None = None
    is_current: bool = False

    @property
    def key(self) -> str:
        """What stands for it in the id of a message."""
        return self.group_id or self.other_aid or ""


class NotToBeSpokenTo(AppError):
    """Somebody, or a conversation, that this run may not write to, or that does not exist."""

    reason = "recipient_not_allowed"
    status = 403
    advice = DO_NOT_RETRY
    says = N_(
        "This agent cannot write there. It can write in the current conversation, directly to the "
        "person it works for, in groups where both of them are, and to agents that its release "
        "names and that person has enabled. It never writes to another person directly."
    )


class NowhereToSpeak(AppError):
    """The run has no conversation, and there is nobody it works for."""

    reason = "nowhere_to_speak"
    status = 409
    advice = DO_NOT_RETRY
    says = N_("This run has no conversation in which something could be said.")


def find(session: Session, run: RunSession, to: str | None) -> Place:
    """The place that `to` names: a conversation, a group or an AID; None is the current one.

    Raises:
        NotToBeSpokenTo: nothing may be said there, or not any more.
        NowhereToSpeak: none is named, and the run has none.
    """
    place = _current(session, run) if to is None else _named(session, run, to)
    if place.group_id is not None:
        _check_group(session, run, place.group_id)
    elif not place.is_current:
        _check_party(session, run, place.other_aid or "")
    return place


def contact(session: Session, run: RunSession, agent: Agent | None) -> Agent:
    """An agent that the run may write to and delegate to.

    Raises:
        NotToBeSpokenTo: its release does not name it, or its principal has not enabled it.
    """
    if agent is None or run.facts.user_id is None or agent.id == run.facts.agent_id:
        raise NotToBeSpokenTo
    named = run.content.contacts
    if agent.status != AgentStatus.PUBLISHED or not ({"*", agent.code} & set(named)):
        raise NotToBeSpokenTo
    live = delegations.live(session, agent.tenant_id, run.facts.user_id, agent.id)
    if live is None or live.paused_at is not None or not delegations.is_usable(live, clock.now()):
        raise NotToBeSpokenTo
    return agent


def _current(session: Session, run: RunSession) -> Place:
    facts = run.facts
    if facts.conversation_id is not None and (facts.group_id or facts.other_aid):
        return Place(
            conversation_id=facts.conversation_id,
            other_aid=facts.other_aid,
            group_id=facts.group_id,
            is_current=True,
        )
    own = queries.of_owner(session, facts.tenant_id, facts.user_id) if facts.user_id else None
    if own is None:
        raise NowhereToSpeak
    return _with(session, run, own.aid)


def _named(session: Session, run: RunSession, to: str) -> Place:
    facts = run.facts
    if to in {facts.conversation_id, facts.group_id, facts.other_aid}:
        return _current(session, run)
    if session.get(Group, (facts.tenant_id, to)) is not None:
        conversation_id = conversations.id_of_group(session, facts.tenant_id, to)
        return Place(conversation_id=conversation_id, group_id=to)
    known = session.get(Conversation, (facts.tenant_id, to))
    if known is None:
        return _with(session, run, to)
    if known.group_id is not None:
        return Place(conversation_id=known.id, group_id=known.group_id)
    pair = {known.first_aid, known.second_aid}
    if facts.agent_aid not in pair:
        raise NotToBeSpokenTo
    other = known.second_aid if known.first_aid == facts.agent_aid else known.first_aid
    return Place(conversation_id=known.id, other_aid=other)


def _with(session: Session, run: RunSession, aid: str) -> Place:
    facts = run.facts
    known = conversations.id_of_pair(session, facts.tenant_id, facts.agent_aid, aid)
    return Place(conversation_id=known, other_aid=aid)


def _check_group(session: Session, run: RunSession, group_id: str) -> None:
    """The agent and its principal are both in it, and it is not over."""
    facts = run.facts
    group = session.get(Group, (facts.tenant_id, group_id))
    query = select(Member.aid).where(
        Member.tenant_id == facts.tenant_id, Member.group_id == group_id
    )
    members = set(session.exec(query))
    is_in = facts.agent_aid in members
    if facts.user_id is not None:
        aids = queries.aids_of_user(session, facts.tenant_id, facts.user_id)
        is_in = is_in and bool(members & aids)
    else:
        is_in = is_in and group_id == facts.group_id
    if group is None or group.status == GroupStatus.DISSOLVED or not is_in:
        raise NotToBeSpokenTo


def _check_party(session: Session, run: RunSession, aid: str) -> None:
    """It is the principal, or an agent to contact."""
    facts = run.facts
    if facts.user_id is None:
        raise NotToBeSpokenTo
    if aid in queries.aids_of_user(session, facts.tenant_id, facts.user_id):
        return
    found = session.get(Identity, (facts.tenant_id, aid))
    if found is None or found.kind != IdentityKind.AGENT or found.status != IdentityStatus.ACTIVE:
        raise NotToBeSpokenTo
    contact(session, run, session.get(Agent, (facts.tenant_id, found.owner_id)))
