"""Calling methods of groups as parties of a tenant, and what tests of groups begin with."""

from dataclasses import dataclass
from typing import Any

import pytest

from app.aun import queries, rpc
from app.aun.caller import Caller
from app.aun.errors import AunError
from app.aun.models import IdentityKind
from app.kernel import db
from tests.aun.parties import Parties
from tests.people import World

BASE = "assent.localhost"


def calls_in(world: World) -> "Calls":
    """Acme's `alice` and `stock`, and `tina`, `otto`, `owen` from outside."""
    parties = Parties(world.acme.tenant, BASE)
    for name in ("tina", "otto", "owen"):
        parties.add(name, IdentityKind.OUTSIDE)
    for name in ("alice", "stock"):
        found = db.read_now(queries.identity, parties.id, f"{name}.{BASE}")
        assert found is not None
        parties.made[found.aid] = found
    return Calls(parties)


@dataclass
class Calls:
    """`await calls("tina", "group.send", …)`: as `rpc.invoke`, by a party's name."""

    parties: Parties

    async def __call__(self, who: str | Caller, name: str, /, **params: Any) -> dict[str, Any]:
        caller = self.parties.caller(who) if isinstance(who, str) else who
        return await rpc.invoke(caller, name, params)

    async def refused(self, who: str | Caller, name: str, /, **params: Any) -> AunError:
        """What a call was refused with."""
        with pytest.raises(AunError) as caught:
            await self(who, name, **params)
        return caught.value

    async def group(self, owner: str, /, *members: str, **params: Any) -> str:
        """The id of a new group of these."""
        made = await self(owner, "group.create", **({"name": "Team"} | params))
        group_id: str = made["group"]["group_id"]
        for member in members:
            aid = getattr(self.parties, member)
            await self(owner, "group.add_member", group_id=group_id, aid=aid)
        return group_id

    async def say(
        self, who: str | Caller, group_id: str, text: str, /, **more: Any
    ) -> dict[str, Any]:
        """Send a plain text; its id is the text."""
        payload = {"type": "text", "text": text}
        given = {"message_id": text, "payload": payload, "encrypt": False} | more
        return await self(who, "group.send", group_id=group_id, **given)

    async def texts(self, who: str | Caller, group_id: str, /, **more: Any) -> list[Any]:
        """The texts of a pull."""
        found = await self(who, "group.v2.pull", group_id=group_id, **({"after_seq": 0} | more))
        return [row["payload"].get("text") for row in found["messages"]]
