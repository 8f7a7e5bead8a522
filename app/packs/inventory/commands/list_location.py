"""`inventory.location.list`: which locations there are."""

from typing import Any, Literal

from pydantic import Field
from sqlmodel import col

from app.commands.context import Context
from app.commands.definition import CommandDefinition, Operation, Risk, Text
from app.packs.inventory import queries
from app.packs.inventory.models import Location
from app.packs.inventory.rights import READ


class ListLocations(queries.Listing):
    """Which ones."""

    text: str = Field("", max_length=100, description="Part of the code or the name; all if empty.")
    state: Literal["open", "closed", ""] = Field(
        "open", description="Only locations in this state; empty for all."
    )


def handle(ctx: Context) -> dict[str, Any]:
    """A page of locations, by code."""
    wanted: ListLocations = ctx.input
    return queries.listed(
        ctx.work.session,
        ctx.call.principal,
        Location,
        wanted,
        queries.By(col(Location.code)),
        queries.location_facts,
        queries.says(wanted.text, col(Location.code), col(Location.name)) if wanted.text else True,
        col(Location.state) == wanted.state if wanted.state else True,
    )


COMMAND = CommandDefinition(
    code="inventory.location.list",
    display_name=Text(en="List locations", zh="查询库位"),
    description=Text(
        en="Locations by code, with how many units lie at each.",
        zh="按编码列出库位及各库位存放的总数量。",
    ),
    agent_hint=Text(
        en="Use first, to find the id of a location that somebody names by its code or a part of "
        "its name; it changes nothing.",
        zh="当有人用编码或名称的一部分提到库位时，先用它查到库位的 id；不会改变任何数据。",
    ),
    risk=Risk.L0,
    idempotent=True,
    reversible=True,
    record=Location,
    operation=Operation.READ,
    input=ListLocations,
    example={"text": "A-01"},
    permission=READ,
    handler=handle,
)
