"""What members say they are doing: shown, and believed by nobody."""

from typing import Annotated, Any

from pydantic import Field
from sqlmodel import Session

from app.aun import method
from app.aun.caller import Caller
from app.aun.group_models import Member
from app.aun.groups import membership
from app.aun.groups.told import both, ms
from app.aun.methods.group import OfGroup
from app.kernel import clock
from app.kernel.db import Work

Word = Annotated[str, Field(max_length=64)]


class Report(OfGroup):
    """What a member says of itself."""

    online_status: Word
    work_status: Word


def report_status(work: Work, caller: Caller, params: Report) -> dict[str, Any]:
    """Keep what a member says of itself; no event, no push."""
    member = membership.held(work, caller, params.group_id).member
    member.said = {
        "online_status": params.online_status,
        "work_status": params.work_status,
        "updated_at": ms(clock.now()),
    }
    work.session.add(member)
    return {**both(params.group_id), "status": _told(member)}


def get_member_statuses(session: Session, caller: Caller, params: OfGroup) -> dict[str, Any]:
    """What all members said, those who said nothing among them."""
    group = membership.inside(session, caller, params.group_id).group
    items = [_told(each) for each in membership.everybody(session, group)]
    return {**both(group.id), "items": items, "total": len(items)}


def _told(row: Member) -> dict[str, Any]:
    nothing = {"online_status": "", "work_status": "", "updated_at": 0}
    return {**both(row.group_id), "aid": row.aid, **nothing, **row.said}


WRITES = {"group.report_status": method.write(report_status)}
READS = {"group.get_member_statuses": method.read(get_member_statuses)}
