"""What reached a device of an outside party, for a sender to see here: a fact, and never a reading.

It is gathered in memory and written now and then, once for many messages. What a crash loses is
told again by the next acknowledgement; nothing else depends on it.
"""

import threading
from typing import Any

from app.aun import conversations, rows
from app.kernel import db, event_log
from app.kernel.db import Work
from app.kernel.due import Due

KIND = "message.delivered"  # in the event log

_DUE = Due("delivered")
_lock = threading.Lock()
_noted: dict[tuple[str, str, str], int] = {}  # (tenant, receiver, sender) → number of the inbox


def note(tenant_id: str, aid: str, sender_aid: str, seq: int) -> None:
    """A device of `aid` has what `sender_aid`, who is hosted here, sent up to this number."""
    with _lock:
        key = (tenant_id, aid, sender_aid)
        _noted[key] = max(seq, _noted.get(key, 0))


def write() -> None:
    """Write down what was noted; every second, and waits for the database."""
    with _lock:
        taken = list(_noted.items())
        _noted.clear()
    for key, seq in taken:
        with _DUE.trying(key[:1]):
            db.transact_now(_write, *key, seq)


def _write(work: Work, tenant_id: str, aid: str, sender_aid: str, seq: int) -> None:
    key: dict[str, Any] = {"tenant_id": tenant_id, "aid": aid, "sender_aid": sender_aid}
    if not rows.DELIVERED.run_with(work.connection, key | {"seq": seq}).rowcount:
        return
    conversation_id = conversations.of_pair(work, tenant_id, sender_aid, aid)
    event_log.append(
        work,
        tenant_id,
        KIND,
        conversation_id,
        {"aid": aid, "seq": seq},
        topic=conversation_id,
    )
