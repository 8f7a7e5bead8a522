"""`requestState` is theirs to forge: bound to its call and principal, it outlives a restart."""

import base64
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp.types import CallToolResult, ElicitResult, InputRequiredResult

from app.kernel import db, keyring
from app.mcp import approving, rings, states
from app.operator import rotate_keys
from tests.clock import Clock
from tests.commands.asking import REMIND, Asking
from tests.mcp import connecting
from tests.mcp.connecting import NEW, Mcp
from tests.packs.expenses.desk import Desk

OPENED: Any = {approving.REQUEST: ElicitResult(action="accept")}


@pytest.fixture
def asking(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Who asks, and who decides."""
    monkeypatch.setattr(approving, "PATIENCE_S", 0.0)
    return Asking(desk)


async def nobody(_context: Any, _asked: Any) -> ElicitResult:
    """A client that opens pages; the tests go round by round."""
    return ElicitResult(action="accept")


class Rounds:
    """Calls of one client, round by round."""

    def __init__(self, mcp: Mcp, token: str) -> None:
        self._mcp, self._token = mcp, token

    async def ask(self, arguments: dict[str, Any], state: str | None = None) -> Any:
        """What one round in a connection of its own gives, an error too."""
        more = {"elicitation_callback": nobody}
        async with self._mcp.client(self._token, NEW, **more) as client:
            try:
                return await client.session.call_tool(
                    REMIND,
                    arguments,
                    input_responses=OPENED if state else None,
                    request_state=state,
                    allow_input_required=True,
                )
            except MCPError as error:
                return error


async def begun(mcp: Mcp, asking: Asking) -> tuple[Rounds, dict[str, Any], str, str]:
    """A call that waits: its client, its arguments, the state, the approval's id."""
    acme = mcp.world.acme
    report = await asking.desk.submitted("alice", 2_000)
    arguments = {"targetRecordId": report, "operationType": "UPDATE", "message": "Please"}
    rounds = Rounds(mcp, connecting.token(acme, acme["alice"]))
    first = await rounds.ask(arguments)
    assert isinstance(first, InputRequiredResult)
    assert first.request_state is not None
    url: str = first.input_requests["approval"].params.url  # type: ignore[index, union-attr]
    return rounds, arguments, first.request_state, url.rpartition("/")[2]


@pytest.mark.requirement("SEC-65", "SEC-66")
async def test_a_state_is_sealed_and_good_for_its_call_and_principal_alone(
    mcp: Mcp, asking: Asking
) -> None:
    acme = mcp.world.acme
    rounds, arguments, state, approval_id = await begun(mcp, asking)
    await asking.decide("alice", asking.row(approval_id))
    bobs = Rounds(mcp, connecting.token(acme, acme["bob"]))
    others = Rounds(mcp, connecting.token(acme, acme["alice"], agent="stock"))

    assert approval_id not in state
    assert approval_id.encode() not in base64.urlsafe_b64decode(state[3:] + "==")
    for client, given, sent in (
        (rounds, {**arguments, "message": "Another"}, state),
        (bobs, arguments, state),
        (others, arguments, state),
        (rounds, arguments, state[:-2] + ("AA" if state[-2:] != "AA" else "BB")),
        (rounds, arguments, f"approval:{approval_id}"),
        (rounds, arguments, "v1."),
    ):
        refused = await client.ask(given, sent)
        assert isinstance(refused, MCPError)
        assert (refused.code, refused.data) == (-32602, {"reason": "invalid_request_state"})

    assert asking.row(approval_id).state == "approved"
    done = await rounds.ask(arguments, state)
    assert isinstance(done, CallToolResult)
    assert done.structured_content["outcome"] == "done"


@pytest.mark.requirement("SEC-65")
async def test_the_same_state_twice_acts_once(mcp: Mcp, asking: Asking) -> None:
    rounds, arguments, state, approval_id = await begun(mcp, asking)
    await asking.decide("alice", asking.row(approval_id))

    first, second = await rounds.ask(arguments, state), await rounds.ask(arguments, state)

    assert first.structured_content["outcome"] == "done"
    assert second.structured_content["outcome"] == "replayed"
    assert second.structured_content["callId"] == first.structured_content["callId"]


@pytest.mark.requirement("SEC-65", "SEC-82")
async def test_a_state_outlives_a_restart_and_a_rotation_of_keys(mcp: Mcp, asking: Asking) -> None:
    rounds, arguments, state, approval_id = await begun(mcp, asking)
    await asking.decide("alice", asking.row(approval_id))

    await mcp.world.app.state.mcp.stop()
    before = keyring.keys(rings.STATES)[0]
    db.transact_now(rotate_keys._rotate, False)
    keyring.reload()
    done = await rounds.ask(arguments, state)

    assert done.structured_content["outcome"] == "done"
    assert keyring.keys(rings.STATES)[0] != before


@pytest.mark.requirement("SEC-65")
async def test_a_state_lives_longer_than_any_approval_and_the_row_decides(
    clock: Clock, mcp: Mcp, asking: Asking
) -> None:
    rounds, arguments, state, approval_id = await begun(mcp, asking)
    asking.set(approval_id, expires_at=asking.row(approval_id).opened_at)

    ended = await rounds.ask(arguments, state)

    assert states.TTL_S > 86_400
    assert isinstance(ended, CallToolResult)
    assert ended.structured_content["reason"] == "approval_expired"
