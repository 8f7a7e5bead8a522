"""`message.read` and `message.read_state`: reading is a person's act, having is a device's."""

from typing import Annotated, Any, Literal

from pydantic import Field
from sqlmodel import Session

from app.aun import read_positions
from app.aun.caller import Caller
from app.aun.method import Method, read, write
from app.aun.models import ID_LENGTH
from app.aun.read_positions import P2P, Mapped
from app.aun.wire import MessageId, Params
from app.kernel.db import Work

MOST = 100
Topic = Annotated[str, Field(min_length=1, max_length=ID_LENGTH)]


class State(Params):
    """How far one topic is read; the topic is the client's own word."""

    scope: Literal["p2p", ""] = "p2p"
    topic_key: Topic
    last_read_message_id: MessageId


class Read(Params):
    """`message.read`."""

    states: Annotated[list[State], Field(min_length=1, max_length=MOST)]


class ReadState(Params):
    """`message.read_state`."""

    scope: Literal["p2p", ""] = "p2p"
    topic_key: Topic | None = None


def note_read(work: Work, caller: Caller, params: Read) -> dict[str, Any]:
    """Move positions forward; what is behind already, or not in the inbox, is left as it is."""
    states = [
        {
            "scope": P2P,
            "topic_key": each.topic_key,
            "last_read_message_id": each.last_read_message_id,
            "changed": read_positions.move(work, caller, each.topic_key, each.last_read_message_id),
        }
        for each in params.states
    ]
    updated = sum(state["changed"] is True for state in states)
    return {"updated": updated, "ignored": len(states) - updated, "states": states}


def read_state(session: Session, caller: Caller, params: ReadState) -> dict[str, Any]:
    """Tell the caller its own positions."""
    found = read_positions.positions(session, caller, params.topic_key)
    return {"states": [_told(each) for each in found]}


def _told(mapped: Mapped) -> dict[str, Any]:
    position = mapped.position
    return {
        "scope": P2P,
        "topic_key": position.topic,
        "last_read_message_id": position.message_id,
        "last_read_order": position.order,
        "current_device_seq": mapped.seq,
        "mapping_status": mapped.status,
        "updated_at": int(position.updated_at.timestamp() * 1000),
    }


WRITES: dict[str, Method] = {"message.read": write(note_read)}
READS: dict[str, Method] = {"message.read_state": read(read_state)}
