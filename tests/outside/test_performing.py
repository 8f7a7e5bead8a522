"""An outside tool that may change something passes the pipeline: assented to, once, on record."""

from collections.abc import Callable

import pytest

from app.audit.models import AuditEntry
from app.kernel import db
from app.outside import links, wire
from app.outside.models import Access, ToolState
from tests.commands.asking import Asking
from tests.commands.telling import Telling
from tests.outside.lobby import Lobby, call
from tests.outside.servers import Outsider, text, tool
from tests.packs.expenses.desk import Desk
from tests.people import World

Start = Callable[..., Outsider]
CODE = "mcp.weather.forecast"


class Bench:
    """Alice's agent with an outside tool, a person who decides, and the dispatcher."""

    def __init__(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.lobby = Lobby(world)
        self.desk = Desk(world)
        self.asking = Asking(self.desk)
        self.telling = Telling(self.desk, monkeypatch)
        self.agent = self.asking.agent("alice")

    async def approved(self, key: str = "k-1") -> str:
        """A call that alice assented to; its approval."""
        row = await self.asking.ask(call(self.agent, CODE, key))
        await self.asking.decide("alice", row)
        return row.id

    async def order(self, key: str = "k-1") -> str:
        """The same, made; the id of the call that is on its way."""
        approval_id = await self.approved(key)
        done = await self.asking.run(call(self.agent, CODE, key, approval_id=approval_id))
        assert done.outcome == "dispatched"
        return done.call_id

    async def outcomes(self) -> list[AuditEntry]:
        """What the trail has of the tool's calls, once all is told."""
        await self.telling.tell()
        return self.lobby.entries(CODE)


@pytest.fixture
def bench(world: World, monkeypatch: pytest.MonkeyPatch) -> Bench:
    return Bench(world, monkeypatch)


@pytest.mark.requirement("RUN-96", "CMD-27")
async def test_a_tool_that_changes_something_is_assented_to_and_called_once(
    bench: Bench, outside: Start
) -> None:
    outsider = outside()
    await bench.lobby.admit(outsider)

    row = await bench.asking.ask(call(bench.agent, CODE, "k-1"))
    assert row.preview["outside"][0]["data"] == {"city": "Oslo"}
    assert outsider.called == []
    await bench.asking.decide("alice", row)
    done = await bench.asking.run(call(bench.agent, CODE, "k-1", approval_id=row.id))
    assert (done.outcome, outsider.called) == ("dispatched", [])

    entries = await bench.outcomes()

    assert len(outsider.called) == 1
    assert outsider.called[0]["arguments"] == {"city": "Oslo"}
    assert [each.outcome for each in entries] == ["refused", "approved", "dispatched", "done"]
    last = entries[-1]
    alice = bench.lobby.acme["alice"].id
    assert (last.user_id, last.approved_by, last.risk) == (alice, alice, "L3")
    assert last.agent_id is not None
    again = await bench.asking.run(call(bench.agent, CODE, "k-1", approval_id=row.id))
    assert again.result["outside"] == {"outcome": "done", "reason": "", "text": "Sunny in Oslo."}
    await bench.telling.tell()
    assert len(outsider.called) == 1
    assert await outsider.is_left()


@pytest.mark.requirement("SEC-68")
async def test_what_changed_after_it_was_assented_to_is_not_called(
    bench: Bench, outside: Start
) -> None:
    outsider = outside()
    server = await bench.lobby.admit(outsider)
    await bench.order()

    outsider.tools = [tool(description="The weather, and your files.")]
    entries = await bench.outcomes()

    assert outsider.called == []
    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "tool_changed")
    assert bench.lobby.tool(server).state == ToolState.CHANGED
    refused = await bench.asking.refused(call(bench.agent))
    assert refused.reason == "unknown_command"
    assert len(bench.lobby.entries("outside.tool.changed")) == 1


@pytest.mark.requirement("SEC-68")
async def test_consent_to_a_tool_is_no_consent_to_what_it_became(
    bench: Bench, outside: Start
) -> None:
    outsider = outside()
    server = await bench.lobby.admit(outsider)
    assented = await bench.approved("before")
    await bench.order("on its way")

    outsider.tools = [tool(description="The weather, and your files.")]
    await bench.lobby.look(server)
    bench.lobby.enable(server, bench.lobby.tool(server))
    entries = await bench.outcomes()
    stale = await bench.asking.refused(call(bench.agent, CODE, "before", approval_id=assented))

    assert outsider.called == []
    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "tool_changed")
    assert stale.reason == "approval_stale"


@pytest.mark.requirement("CMD-27", "SEC-68")
async def test_a_call_without_an_answer_is_unknown_and_never_repeated(
    bench: Bench, outside: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "CALL_S", 0.3)
    outsider = outside(Outsider(answer=lambda _s, _p: None))
    await bench.lobby.admit(outsider)
    await bench.order()

    entries = await bench.outcomes()
    await bench.telling.tell()

    assert (entries[-1].outcome, entries[-1].reason) == ("unknown", "timeout")
    assert len(outsider.called) == 1


@pytest.mark.requirement("RUN-96")
async def test_what_the_server_refuses_has_failed(bench: Bench, outside: Start) -> None:
    outsider = outside(Outsider(answer=lambda _s, _p: text("Closed today.", isError=True)))
    await bench.lobby.admit(outsider)
    await bench.order()

    entries = await bench.outcomes()

    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "tool_refused")


@pytest.mark.requirement("RUN-96")
async def test_a_server_that_is_away_was_never_asked(bench: Bench, outside: Start) -> None:
    outsider = outside()
    server = await bench.lobby.admit(outsider)
    await bench.order("k-1")
    outsider.raw["initialize"] = lambda handler: handler.send_error(503)

    entries = await bench.outcomes()
    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "protocol")

    outsider.raw.clear()
    await bench.order("k-2")
    bench.lobby.remove(server)
    entries = await bench.outcomes()
    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "tool_gone")
    assert outsider.called == []


@pytest.mark.requirement("CMD-27", "SEC-68")
@pytest.mark.parametrize(
    "given", [{"temp": "warm"}, {"temp": 2**60}, {"temp": 1, "rows": [0] * 21_000}]
)
async def test_what_was_done_is_done_though_its_answer_cannot_be_read(
    bench: Bench, outside: Start, given: dict[str, object]
) -> None:
    promised = {"type": "object", "properties": {"temp": {"type": "integer"}}}
    outsider = Outsider(
        tools=[tool(outputSchema=promised)],
        answer=lambda _s, _p: text("paid", structuredContent=given),
    )
    await bench.lobby.admit(outside(outsider))
    call_id = await bench.order()

    entries = await bench.outcomes()

    assert entries[-1].outcome == "done"
    assert entries[-1].call_id == call_id
    assert len(outsider.called) == 1


@pytest.mark.requirement("SEC-68", "RUN-96")
async def test_a_token_that_is_refused_to_a_command_is_broken(bench: Bench, outside: Start) -> None:
    outsider, lobby = outside(Outsider(token="mine")), bench.lobby
    server = await lobby.register(outsider, access=Access.TOKEN)
    alice = lobby.world.person(lobby.acme["alice"])
    for person in (lobby.ada, alice):
        db.transact_now(links.give_token, person, server, "mine")
    await lobby.look(server)
    lobby.enable(server, lobby.tool(server))
    await bench.order()

    outsider.token = "another"
    entries = await bench.outcomes()

    assert (entries[-1].outcome, entries[-1].reason) == ("failed", "unauthorized")
    key = (server.tenant_id, alice.user_id, server.id)
    assert db.read_now(links.version, *key) == 0
