"""Steps: logical requests, counted on the root run and on a sub-run's own share (RUN-77).

Network attempts cost none; a turn, a compaction and a participation cost one each.
"""

from typing import Any

from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs.errors import LimitReached

_STEP = Prepared(
    "UPDATE run SET steps_used = steps_used + 1 WHERE tenant_id = :tenant_id AND id = :root_id "
    "AND steps_used < step_limit RETURNING steps_used, step_limit"
)
_OWN_STEP = Prepared(
    "UPDATE run SET steps_used = steps_used + 1 WHERE tenant_id = :tenant_id AND id = :run_id "
    "AND steps_used < step_limit RETURNING steps_used, step_limit"
)


def take(work: Work, row: Any) -> bool:
    """Take one logical request off the root's steps; whether it was the last.

    `row` is the run's own, or has its `tenant_id`, `id` and `root_run_id`.

    Raises:
        LimitReached: none is left, of the root or of this run's own share.
    """
    key: dict[str, Any] = {"tenant_id": row.tenant_id}
    taken = _STEP.run(work.connection, **key, root_id=row.root_run_id).first()
    if taken is None:
        raise LimitReached("steps")
    is_last = taken.steps_used >= taken.step_limit
    if row.id != row.root_run_id:  # a share of its own, so that no sub-run eats everything
        own = _OWN_STEP.run(work.connection, **key, run_id=row.id).first()
        if own is None:
            raise LimitReached("steps")
        is_last = is_last or own.steps_used >= own.step_limit
    return bool(is_last)
