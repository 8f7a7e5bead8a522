"""What members hear of a group's state: those who head it of a proposal, everybody of the next."""

from collections.abc import Iterator
from typing import Any

from sqlmodel import Session, select

from app.aun.events import StateChanged
from app.aun.group_models import GroupState, Member, Role
from app.aun.outgoing import Lookup, Outgoing


def _changed(session: Session, event: StateChanged, live: Lookup) -> Iterator[Outgoing]:
    state = session.get(GroupState, (event.tenant_id, event.group_id, event.state_version))
    if state is None:
        return
    query = select(Member.aid).where(
        Member.tenant_id == event.tenant_id, Member.group_id == event.group_id
    )
    if not event.is_confirmed:
        query = query.where(Member.role != Role.MEMBER)
    to = [connection for aid in session.exec(query) for connection in live(aid)]
    name = "group.v2.state_confirmed" if event.is_confirmed else "group.v2.state_proposed"
    yield Outgoing(to, name, _told(state, is_confirmed=event.is_confirmed))


def _told(state: GroupState, *, is_confirmed: bool) -> dict[str, Any]:
    said: dict[str, Any] = {
        "group_id": state.group_id,
        "group_aid": state.group_id,
        "state_version": state.state_version,
    }
    if is_confirmed:
        return {**said, "state_chain": state.state_chain}
    return {**said, "proposal_id": state.proposal_id, "proposed_by": state.actor_aid}


PUSHES = {StateChanged: _changed}
