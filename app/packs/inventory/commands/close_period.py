"""`inventory.period.close`: a month in which nothing is booked any more."""

from typing import Any

from pydantic import Field
from sqlmodel import col, func, select

from app.commands.context import Context
from app.commands.definition import Approvers, CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.kernel.i18n import N_
from app.packs.inventory.models import Item, Move, Period
from app.packs.inventory.rights import APPROVE_CLOSE, CLOSE


class ClosePeriod(Input):
    """Which month."""

    period: str = Field(
        pattern=r"^20[0-9]{2}-(0[1-9]|1[0-2])$",
        description="The month, as 2026-10. It is over (UTC) and not closed yet.",
    )
    note: str = Field("", max_length=500, description="What the books should say about it.")


def handle(ctx: Context) -> dict[str, Any]:
    """Keep what the month held: bookings under way are counted, later ones find it closed.

    No other call runs meanwhile (`runs_alone`).

    Raises:
        Rejected: `period_not_over`, or `period_closed`.
    """
    period, tenant_id = ctx.target(Period), ctx.call.principal.tenant_id
    session = ctx.work.session
    if period.period >= ctx.now.date().isoformat()[:7]:
        raise Rejected(
            "period_not_over",
            says=N_("The month %(period)s is not over yet."),
            period=period.period,
        )
    moves = select(func.count()).where(
        col(Move.tenant_id) == tenant_id, col(Move.period) == period.period
    )
    on_hand = select(func.coalesce(func.sum(col(Item.on_hand)), 0)).where(
        col(Item.tenant_id) == tenant_id
    )
    period.moves = session.exec(moves).one()
    period.on_hand = int(session.exec(on_hand).one())
    return {"periodId": period.id, "moves": period.moves, "onHand": period.on_hand}


COMMAND = CommandDefinition(
    code="inventory.period.close",
    display_name=Text(en="Close period", zh="关闭期间"),
    description=Text(
        en="Closes a month: nothing is booked in it any more, ever. Somebody else approves.",
        zh="关闭某个月份：此后永远不能再在该月记账。须由他人批准。",
    ),
    agent_hint=Text(
        en="Use when a month is over, counted and reconciled and its books shall stand; nothing "
        "opens it again, and another person has to approve.",
        zh="月份已结束、盘点核对完毕、账目需要定稿时使用；关闭后无法重新打开，须由另一人批准。",
    ),
    risk=Risk.L4,
    idempotent=False,
    reversible=False,
    record=Period,
    operation=Operation.CREATE,
    input=ClosePeriod,
    example={"period": "2026-10", "note": "Counted on 2 November"},
    permission=CLOSE,
    approvers=Approvers(permission=APPROVE_CLOSE),
    set={"closed_at": "now", "closed_by": "user.id"},
    map={"period": "period", "note": "note"},
    handler=handle,
    runs_alone=True,
    events=("inventory.period.closed",),
)
