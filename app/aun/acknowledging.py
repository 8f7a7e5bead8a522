"""An acknowledgement: a device has what it pulled. It is no reading, and nothing else follows."""

from app.aun import cursors, delivered, inbox
from app.aun.caller import Caller
from app.aun.events import Acknowledged
from app.aun.models import CursorScope
from app.kernel.db import Work


def acknowledge(work: Work, caller: Caller, sender_aid: str, up_to_seq: int) -> int:
    """Move the cursor of a sender; returns how far it is now.

    What is not there yet cannot be acknowledged: after a restored backup a client may be further
    than we are, and would never be told of messages that get those numbers anew.
    """
    standing = inbox.standing(work.session, caller, sender_aid)
    if not standing.head_seq:
        return 0
    reached, moved = cursors.acknowledge(
        work, caller, CursorScope.PEER, sender_aid, min(up_to_seq, standing.head_seq)
    )
    if standing.is_hosted and reached > standing.delivered_seq:
        delivered.note(caller.tenant_id, caller.aid, sender_aid, reached)
    if moved:
        work.announce(
            Acknowledged(
                tenant_id=caller.tenant_id,
                aid=caller.aid,
                device_id=caller.device_id,
                slot_key=caller.slot_key,
                sender_aid=sender_aid,
                ack_seq=reached,
                except_connection=caller.connection_id,
            )
        )
    return reached
