"""What happened in messaging, told after the commit to this process and the others; ids only."""

from dataclasses import dataclass

from app.kernel.events import Broadcast


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageStored(Broadcast):
    """A message is stored. Runs take it in, connections and pages hear of it.

    Attributes:
        is_ours: somebody takes part whom the server hosts, or may; False where nobody does.
    """

    id: str  # `message.id`
    conversation_id: str
    sender_aid: str
    receiver_aid: str | None = None
    group_id: str | None = None
    except_connection: str | None = None  # the sender's own
    is_ours: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class VolatileAccepted(Broadcast):
    """A message that is kept for a short while only."""

    receiver_aid: str
    cursor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecalled(Broadcast):
    """Messages were taken back; `ids` are rows, `tombstone_id` is the row that says so."""

    tombstone_id: str
    ids: tuple[str, ...]
    conversation_id: str
    sender_aid: str
    receiver_aid: str | None = None
    group_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Acknowledged(Broadcast):
    """A device acknowledged what it has."""

    aid: str
    device_id: str
    slot_key: str
    sender_aid: str
    ack_seq: int
    except_connection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadMoved(Broadcast):
    """A read position went forward."""

    aid: str
    scope: str  # `p2p`, or a group's id
    topic: str
    conversation_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThoughtAppended(Broadcast):
    """A party thought something for another to see; nobody is pushed."""

    head_id: str
    number: int
    sender_aid: str
    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupChanged(Broadcast):
    """An event of a group is in its log; `also` are AIDs that are no members any more."""

    group_id: str
    event_seq: int
    also: tuple[str, ...] = ()
    except_connection: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InviteChanged(Broadcast):
    """An invitation was made, or came to an end."""

    invite_id: str
    group_id: str
    invitee_aid: str
    is_new: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChanged(Broadcast):
    """A group's membership state was proposed or confirmed."""

    group_id: str
    state_version: int
    is_confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PresenceChanged(Broadcast):
    """An AID came or went: its first connection, or its last."""

    aid: str
    is_online: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evicted(Broadcast):
    """Connections of an AID have to end: blocked (4003), unlinked (1000)."""

    aid: str
    code: int
    reason: str
