"""Programs read approvals and never decide one (CMD-7, SEC-2)."""

import pytest

from app.identity.oauth import operator
from app.kernel import db
from tests.commands.asking import REMIND, Asking
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    """Everybody who asks and decides, on a database of each kind in turn."""
    return Asking(Desk(world))


def bearer(login: str, agent: str) -> dict[str, str]:
    token = db.transact_now(operator.mint, f"acme/{login}", agent, "api")
    return {"Authorization": f"Bearer {token}"}


@pytest.mark.requirement("CMD-7", "SEC-2", "SEC-T3", "CMD-15")
async def test_an_agent_reads_its_own_approvals_and_decides_none(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call(asking.agent("alice"), REMIND, report, message="hi"))
    own = await asking.ask(asking.call("alice", REMIND, report))
    program = asking.desk.world.anonymous()
    headers = bearer("alice", "expenses")

    listed = (await program.get("/v1/approvals", headers=headers)).json()
    shown = await program.get(f"/v1/approvals/{row.id}", headers=headers)
    persons = await program.get(f"/v1/approvals/{own.id}", headers=headers)

    assert [each["approvalId"] for each in listed["approvals"]] == [row.id]
    assert (listed["total"], listed["next"]) == (1, None)
    told = shown.json()
    assert (told["state"], told["cmdCode"], told["riskLevel"]) == ("open", REMIND, "L3")
    assert told["arguments"]["message"] == "hi"
    assert told["approvalUrl"].endswith(f"/approvals/{row.id}")
    assert told["preview"]["changes"][0]["id"] == report
    assert persons.status_code == 404

    person = asking.desk.person("alice")
    good = asking.decision(person, row)
    for path in (f"/v1/approvals/{row.id}", f"/v1/approvals/{row.id}/decision"):
        answer = await program.post(path, headers=headers, json={"verdict": "approve"})
        assert answer.status_code in {404, 405}
    forged = await program.post(
        f"/approvals/{row.id}/decision",
        headers=headers,
        data={"verdict": "approve", "digest": good.digest, "nonce": good.nonce},
    )
    assert forged.status_code == 403
    assert asking.row(row.id).state == "open"
    entry = asking.forged()[-1]
    assert (entry.agent_id, entry.reason) == (row.agent_id, "human_session_required")


@pytest.mark.requirement("UI-26", "CMD-7")
async def test_a_person_reads_what_the_page_shows_and_no_more(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    alice = asking.desk.world.client(asking.acme["alice"])
    bob = asking.desk.world.client(asking.acme["bob"])

    for state, seen in (("open", 1), ("decided", 0), ("requested", 1), ("all", 1)):
        answer = await alice.get("/v1/approvals", params={"state": state})
        assert len(answer.json()["approvals"]) == seen, state
    assert (await bob.get("/v1/approvals")).json()["approvals"] == []
    assert (await bob.get(f"/v1/approvals/{row.id}")).status_code == 404
    assert (await alice.get(f"/v1/approvals/{'x' * 99}")).status_code == 404
    assert (await alice.get("/v1/approvals", params={"state": "x"})).status_code == 422


@pytest.mark.requirement("CMD-14")
async def test_an_api_caller_calls_again_and_names_the_approval(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call(asking.agent("alice"), REMIND, report))
    await asking.decide("alice", row)
    program = asking.desk.world.anonymous()
    headers = {**bearer("alice", "expenses"), "Idempotency-Key": "once"}
    path = f"/v1/commands/{REMIND}/calls"

    done = await program.post(path, headers=headers, json={"approvalId": row.id})
    replayed = await program.post(path, headers=headers, json={"approvalId": row.id})
    other = {**headers, "Idempotency-Key": "twice"}
    again = await program.post(path, headers=other, json={"approvalId": row.id})

    assert (done.status_code, done.json()["outcome"]) == (200, "done")
    assert replayed.json()["outcome"] == "replayed"
    assert (again.status_code, again.json()["reason"]) == (409, "approval_consumed")
    assert asking.row(row.id).consumed_by_call == done.json()["callId"]
