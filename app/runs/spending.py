"""What requests used, and the limits of a release; what is unknown stays so (RUN-104, RUN-105)."""

from datetime import datetime, timedelta
from typing import Any

from sqlmodel import Session, col, func, select

from app.kernel import clock
from app.kernel.db import Work
from app.kernel.prepared import Prepared
from app.runs.errors import LimitReached
from app.runs.models.protocol import Usage
from app.runs.release import Limits
from app.runs.run_models import ModelRequest, Run

MOST = 2**31 - 1  # what the column holds, and the highest limit there is

_COUNT = Prepared(
    "UPDATE run SET tokens_used = "
    "CASE WHEN tokens_used > :room THEN :most ELSE tokens_used + :tokens END, "
    "cost_micros = CASE WHEN CAST(:cost AS BIGINT) IS NULL THEN cost_micros "
    "ELSE coalesce(cost_micros, 0) + CAST(:cost AS BIGINT) END, "
    "currency = coalesce(CAST(:currency AS VARCHAR), currency) "
    "WHERE tenant_id = :tenant_id AND id = :run_id"
)


def count(
    work: Work,
    tenant_id: str,
    run_id: str,
    usage: Usage | None,
    cost_micros: int | None,
    currency: str | None,
    estimate: int,
) -> None:
    """Add one request to its run; without a measurement the estimate counts, as tokens alone."""
    tokens = estimate if usage is None else usage.input_tokens + usage.output_tokens
    _COUNT.run(
        work.connection,
        tenant_id=tenant_id,
        run_id=run_id,
        tokens=tokens,
        room=MOST - tokens,
        most=MOST,
        cost=cost_micros,
        currency=currency if cost_micros is not None else None,
    )


def check(work: Work, row: Any, limits: Limits, active_ms: int) -> None:
    """Return while the run may go on; `row` is as `authority.standing` found it.

    Raises:
        LimitReached: which limit is used up.
    """
    check_time(limits, active_ms)
    if row.tokens_used >= limits.tokens:
        raise LimitReached("tokens")
    if limits.cost_micros is not None and (row.cost_micros or 0) >= limits.cost_micros:
        raise LimitReached("money")
    if limits.daily_tokens is None and limits.daily_cost_micros is None:
        return
    tokens, cost = _today(work.session, row, clock.now())
    if limits.daily_tokens is not None and tokens >= limits.daily_tokens:
        raise LimitReached("daily_tokens")
    if limits.daily_cost_micros is not None and cost >= limits.daily_cost_micros:
        raise LimitReached("daily_money")


def check_time(limits: Limits, active_ms: int) -> None:
    """Return while there is time left; asked before each call too.

    Raises:
        LimitReached: `active_time`.
    """
    if active_ms >= limits.active_s * 1_000:
        raise LimitReached("active_time")


def _today(session: Session, row: Any, now: datetime) -> tuple[int, int]:
    """Tokens and money of the agent's requests within the last 24 hours."""
    query = (
        select(
            func.coalesce(
                func.sum(
                    func.coalesce(ModelRequest.input_tokens, 0)
                    + func.coalesce(ModelRequest.output_tokens, 0)
                ),
                0,
            ),
            func.coalesce(func.sum(func.coalesce(ModelRequest.cost_micros, 0)), 0),
        )
        .join(
            Run,
            (col(Run.tenant_id) == ModelRequest.tenant_id) & (col(Run.id) == ModelRequest.run_id),
        )
        .where(
            ModelRequest.tenant_id == row.tenant_id,
            Run.agent_id == row.agent_id,
            ModelRequest.started_at > now - timedelta(days=1),
        )
    )
    tokens, cost = session.exec(query).one()
    return int(tokens), int(cost)
