"""`inventory.location.create`: a new place for stock."""

from typing import Any

from pydantic import Field

from app.access import scope
from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Rule, Rules, Text
from app.commands.errors import Rejected
from app.commands.records import UNKNOWN
from app.identity.models import Org
from app.kernel.errors import FieldError, NotFound
from app.packs.inventory.booking import ID
from app.packs.inventory.models import Location
from app.packs.inventory.rights import ITEMS


class CreateLocation(Input):
    """Where it is, and whose."""

    code: str = Field(
        min_length=1,
        max_length=40,
        pattern=r"^[A-Z0-9][A-Z0-9._-]*$",
        description="What stands on its sign: capital letters, digits, dot, dash, underscore.",
    )
    name: str = Field(min_length=1, max_length=200, description="What people call it.")
    org_id: str | None = Field(
        None,
        pattern=ID,
        description="The id of the organisation it belongs to; your own when left out.",
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Let it belong to the organisation that was named, if that is in reach.

    Raises:
        Rejected: `record_not_found`, with the field that named the organisation.
    """
    location, wanted = ctx.target(Location), ctx.input
    if wanted.org_id is not None:
        try:
            org = scope.one(ctx.work.session, ctx.call.principal, ITEMS, Org, wanted.org_id)
        except NotFound as unknown:
            raise Rejected("record_not_found", FieldError("orgId", UNKNOWN)) from unknown
        location.org_id = org.id
    return {"locationId": location.id, "code": location.code}


COMMAND = CommandDefinition(
    code="inventory.location.create",
    display_name=Text(en="Create location", zh="新建库位"),
    description=Text(
        en="Adds a place where stock can lie; it belongs to one organisation.",
        zh="新增一个可以存放物料的库位，归属于一个组织。",
    ),
    agent_hint=Text(
        en="Use when stock is to lie at a place that inventory.location.list does not find; "
        "inventory.location.close takes it out of use again.",
        zh="需要使用 inventory.location.list 查不到的库位时使用；"
        "inventory.location.close 可将其关闭。",
    ),
    risk=Risk.L1,
    idempotent=False,
    reversible=True,
    undo="inventory.location.close",
    record=Location,
    operation=Operation.CREATE,
    input=CreateLocation,
    example={"code": "A-01-02", "name": "Hall A, aisle 1, shelf 2"},
    permission=ITEMS,
    rules=Rules(
        cross_field=(
            Rule(
                expr="input.name != input.code",
                message=Text(
                    en="The name says in words where the code is.",
                    zh="名称应当用文字说明位置，不能与编码相同。",
                ),
                pointers=("/name",),
            ),
        ),
    ),
    map={"code": "code", "name": "name"},
    handler=handle,
    events=("inventory.location.created",),
)
