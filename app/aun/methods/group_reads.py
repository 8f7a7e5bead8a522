"""Methods about how far a group is read: another thing than what a device has."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field
from sqlmodel import Session

from app.aun import conversations, method
from app.aun.caller import Caller
from app.aun.errors import BadParams
from app.aun.groups import membership, reading
from app.aun.groups.told import both
from app.aun.methods.group import OfGroup
from app.aun.models import ID_LENGTH
from app.aun.names import GroupId
from app.aun.wire import MessageId, Params
from app.kernel.db import Work

MOST = 100
Topic = Annotated[str, Field(min_length=1, max_length=ID_LENGTH)]


class State(OfGroup):
    """One topic of one group."""

    scope: Literal["group", ""] = "group"
    topic_key: Topic
    last_read_message_id: MessageId


class Read(Params):
    """How far several are read."""

    states: Annotated[list[State], Field(min_length=1, max_length=MOST)]


class ReadState(Params):
    """Which positions are asked for."""

    scope: Literal["group", ""] = "group"
    group_id: GroupId | None = Field(
        default=None, validation_alias=AliasChoices("group_id", "group_aid")
    )
    topic_key: Topic | None = None


def read(work: Work, caller: Caller, params: Read) -> dict[str, Any]:
    """Move positions forward; one that cannot be understood refuses them all."""
    states = []
    for each in params.states:
        found = membership.inside(work.session, caller, each.group_id)
        conversation_id = conversations.id_of_group(work.session, caller.tenant_id, found.group.id)
        if conversation_id is None:  # pragma: no cover - made together
            raise BadParams("the group has no conversation")
        moved = reading.move(
            work, caller, found, conversation_id, each.topic_key, each.last_read_message_id
        )
        states.append(
            {
                "scope": reading.SCOPE,
                **both(found.group.id),
                "topic_key": each.topic_key,
                "last_read_message_id": each.last_read_message_id,
                "changed": moved,
            }
        )
    updated = sum(state["changed"] for state in states)
    return {"updated": updated, "ignored": len(states) - updated, "states": states}


def read_state(session: Session, caller: Caller, params: ReadState) -> dict[str, Any]:
    """One's own positions, and where they are in the group."""
    found = reading.positions(session, caller, params.group_id, params.topic_key)
    return {
        "states": [
            reading.told(each) | {"current_device_seq": each.order, "mapping_status": "resolved"}
            for each in found
        ]
    }


WRITES = {"group.read": method.write(read)}
READS = {"group.read_state": method.read(read_state)}
