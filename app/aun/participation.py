"""Who takes part in a conversation, for the streams that tell of it (UI-40)."""

from collections.abc import Callable, Collection

from sqlmodel import Session, col, select

from app.access import topics
from app.aun.events import GroupChanged
from app.aun.groups import changes
from app.aun.models import Participant
from app.kernel import events


def hand_in() -> Callable[[], None]:
    """Let streams ask here; returns a function that takes it back.

    The two of a pair stay in it for ever; a group says by its events when somebody came or went.
    """
    take_back = topics.told_by(members_of, {changes.CHANGED})
    stop = events.subscribe(GroupChanged, _forget)

    def end() -> None:
        stop()
        take_back()

    return end


def _forget(changed: GroupChanged) -> None:
    topics.of_process().forget(changed.tenant_id)


def members_of(
    session: Session, tenant_id: str, conversation_ids: Collection[str]
) -> dict[str, dict[str, int]]:
    """The AIDs that take part in each conversation, and the number they see what follows of."""
    query = select(Participant.conversation_id, Participant.aid, Participant.from_seq).where(
        Participant.tenant_id == tenant_id,
        col(Participant.conversation_id).in_(conversation_ids),
        col(Participant.left_at).is_(None),
    )
    found: dict[str, dict[str, int]] = {each: {} for each in conversation_ids}
    for conversation_id, aid, from_seq in session.exec(query):
        found[conversation_id][aid] = from_seq
    return found
