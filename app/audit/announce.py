"""Each entry is news in the event log, for those who may read the trail."""

from app.audit.trail import Appended
from app.kernel import event_log
from app.kernel.db import Work

KIND = "audit.appended"
PERMISSION = "audit.read"


def entry(work: Work, appended: Appended) -> None:
    """Log that an entry was appended, in its own transaction; what it says is read in the trail."""
    event_log.append(
        work,
        appended.tenant_id,
        KIND,
        str(appended.seq),
        {
            "seq": appended.seq,
            "command": appended.command,
            "outcome": appended.outcome,
            "target_type": appended.target_type,
            "target_id": appended.target_id,
        },
        permission=PERMISSION,
    )
