"""The inbox and the card: all a person needs to decide, and forms that work without script."""

import json
import re
from datetime import timedelta
from typing import Any
from urllib.parse import unquote

import httpx2
import pytest

from app.commands import deciding
from app.commands.approval_models import Approval
from app.kernel import clock
from tests.authenticator import Authenticator, raw
from tests.commands.asking import DISCARD, REMIND, SEND, Asking
from tests.packs.expenses.desk import CARD, Desk
from tests.people import World

AGO = timedelta(minutes=6)


@pytest.fixture
def asking(world: World, spenders: None) -> Asking:
    """Everybody who asks and decides, on a database of each kind in turn."""
    return Asking(Desk(world))


def field(page: str, name: str) -> str:
    """The value of the first hidden field of this name."""
    found = re.search(rf'name="{name}" value="([^"]*)"', page)
    assert found, name
    return found[1]


def badge(page: str) -> str:
    found = re.search(r'id="badge-approvals" data-count="(\d+)"', page)
    return found[1] if found else ""


def rows(page: str) -> list[str]:
    return re.findall(r'<li id="approval-(\w+)-row"', page)


async def press(
    browser: httpx2.AsyncClient, row: Approval, verdict: str, page: str = "", **more: str
) -> httpx2.Response:
    """What a click in the dialog that is open now sends."""
    page = page or (await browser.get(f"/approvals/{row.id}")).text
    sent = {"verdict": verdict, "digest": field(page, "digest"), "nonce": field(page, "nonce")}
    headers = more.pop("headers", None)
    return await browser.post(
        f"/approvals/{row.id}/decision",
        data={**sent, **more},
        headers={"HX-Request": "true"} if headers else {},
    )


@pytest.mark.requirement("UI-72", "UI-18", "UI-22", "CMD-11")
async def test_a_card_says_everything_and_the_person_approves(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    frank = asking.desk.world.client(asking.acme["frank"])

    inbox = (await frank.get("/approvals")).text
    card = (await frank.get(f"/approvals/{row.id}")).text

    assert rows(inbox) == [row.id]
    assert badge(inbox) == "1"
    for said in (
        f"Send payment: <bdi>{row.target_label}</bdi>?",
        "L4",
        "no undo",
        "runs once",
        "Fiona",
        "You may decide: you hold “Send payments” and did not ask for it.",
        "expense.payment.send",
        CARD,
        "expense.payment.sent",
        row.digest,
        "If you do nothing, it will not run.",
        f"<strong data-type>{row.target_label}</strong>",
    ):
        assert said in card, said
    order = [
        card.index(part) for part in ("-title", "asks; it is", "-arguments", "-changes", "Raw")
    ]
    assert order == sorted(order)
    assert re.search(
        rf'>Expense report</th><td><ins><span dir="auto">(<bdi>)?{row.target_label}<', card
    )
    assert card.index(">Deny…<") < card.index(">Edit…<") < card.rindex(">Send payment</button>")

    done = await press(frank, row, "approve", card, typed=str(row.target_label))
    after = (await frank.get(f"/approvals/{row.id}")).text

    assert (done.status_code, done.headers["location"]) == (303, f"/approvals/{row.id}")
    assert "Done, approved by Frank" in after
    assert "What it changed" in after
    assert "/audit/" in after
    assert 'name="nonce"' not in after
    assert (await asking.desk.report(report))["state"] == "paid"
    assert badge((await frank.get("/approvals")).text) == "0"
    assert rows((await frank.get("/approvals", params={"state": "decided"})).text) == [row.id]


@pytest.mark.requirement("UI-65", "UI-63")
async def test_inbox_and_permalink_tell_of_one_row_and_the_link_outlives_it(
    asking: Asking,
) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    frank, fiona = (asking.desk.world.client(asking.acme[who]) for who in ("frank", "fiona"))

    for state, word in (("open", ""), ("decided", "Denied by Frank")):
        for reader in (frank, fiona):
            query = state if reader is frank else "requested"
            inbox = (await reader.get("/approvals", params={"state": query})).text
            card = (await reader.get(f"/approvals/{row.id}")).text
            listed = inbox[inbox.index(f"approval-{row.id}") :]
            assert (word in listed, word in card) == (True, True)
            for said in (str(row.target_label), "Send payment", "L4"):
                assert (said in listed, said in card) == (True, True), said
        if state == "open":
            await press(frank, row, "deny", reason="wrong account")

    card = (await fiona.get(f"/approvals/{row.id}")).text
    for said in ("wrong account", CARD, row.digest, "Fiona"):
        assert said in card, said


@pytest.mark.requirement("SEC-36", "SEC-38", "UI-71")
async def test_a_critical_one_asks_who_it_is_and_for_the_name(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    old = asking.desk.world.client(asking.acme["frank"], signed_in=AGO)

    page = (await old.get(f"/approvals/{row.id}")).text
    asked = await press(old, row, "approve", page, typed=str(row.target_label))
    fragment = await press(old, row, "approve", page, typed=str(row.target_label), headers="htmx")
    wrong = await press(asking.desk.world.client(asking.acme["frank"]), row, "approve", typed="EXP")

    assert f"/step-up?next=%2Fapprovals%2F{row.id}" in page
    assert asked.status_code == 401
    assert "Confirm that it is you" in asked.text
    assert fragment.status_code == 401
    assert fragment.text.lstrip().startswith("<article")
    assert f'value="{row.target_label}"' in fragment.text  # what was typed is kept
    assert wrong.status_code == 422
    assert "Type exactly what stands in bold." in wrong.text
    assert asking.row(row.id).state == "open"


@pytest.mark.requirement("UI-66", "CMD-13", "SEC-36")
async def test_who_is_second_reads_how_it_ended(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    alice = asking.desk.world.client(asking.acme["alice"])
    page = (await alice.get(f"/approvals/{row.id}")).text

    denied = await press(alice, row, "deny", page, reason="错误的账号")
    twice = await press(alice, row, "deny", page)
    late = await press(alice, row, "approve", page)
    replayed = await press(alice, row, "approve", page, headers="htmx")

    assert [each.status_code for each in (denied, twice, late)] == [303, 303, 409]
    assert "Denied by Alice Wang 王爱丽" in late.text
    assert "错误的账号" in late.text
    assert replayed.status_code == 409
    assert 'name="nonce"' not in replayed.text
    assert asking.row(row.id).state == "denied"


@pytest.mark.requirement("SEC-36", "SEC-T3", "SEC-T5", "UI-14", "UI-15")
async def test_nothing_but_the_dialog_decides(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    alice = asking.desk.world.client(asking.acme["alice"])
    bob = asking.desk.world.client(asking.acme["bob"])
    page = (await alice.get(f"/approvals/{row.id}")).text
    path = f"/approvals/{row.id}/decision"
    good = {"verdict": "approve", "digest": row.digest, "nonce": field(page, "nonce")}

    answers = {
        "verdict": await alice.post(path, data={**good, "verdict": "Approve"}),
        "field": await alice.post(path, data={**good, "approved_by": asking.acme["bob"].id}),
        "nonce": await alice.post(path, data={**good, "nonce": "1.2"}),
        "digest": await alice.post(path, data={**good, "digest": "0" * 64}),
        "csrf": await alice.post(path, data=good, headers={"X-CSRF-Token": "no"}),
        "site": await alice.post(path, data=good, headers={"Sec-Fetch-Site": "same-site"}),
        "get": await alice.get(path, params=good),
        "other": await bob.post(path, data=good),
    }
    agent = asking.desk.world.anonymous()
    token = await agent.post(path, data=good, headers={"Authorization": "Bearer x.y.z"})

    statuses = {name: answer.status_code for name, answer in answers.items()}
    assert statuses == {
        "verdict": 422,
        "field": 422,
        "nonce": 409,
        "digest": 409,
        "csrf": 403,
        "site": 403,
        "get": 405,
        "other": 404,
    }
    assert token.status_code == 403
    assert asking.row(row.id).state == "open"
    assert {each.user_id for each in asking.forged()} == {
        asking.acme["alice"].id,
        asking.acme["bob"].id,
    }


@pytest.mark.requirement("UI-26", "CMD-12")
async def test_what_is_not_theirs_does_not_exist(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    unknown = "01JDXP5Y8GZ0000000000000AB"
    for user in (asking.acme["bob"], asking.desk.globex_gus):
        browser = asking.desk.world.client(user)
        for part in ("", "/replacement"):
            theirs = await browser.get(f"/approvals/{row.id}{part}")
            nobodys = await browser.get(f"/approvals/{unknown}{part}")
            assert theirs.status_code == nobodys.status_code == 404
        for part in ("/replacement", "/withdrawal"):
            assert (await browser.post(f"/approvals/{row.id}{part}")).status_code == 404
        assert rows((await browser.get("/approvals")).text) == []
    auditor = await asking.desk.world.client(asking.acme["axel"]).get(f"/approvals/{row.id}")
    assert auditor.status_code == 200
    assert 'name="nonce"' not in auditor.text


@pytest.mark.requirement("CMD-28", "UI-68")
async def test_arguments_are_edited_before_they_run(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report, message="NOW"))
    alice = asking.desk.world.client(asking.acme["alice"])
    path = f"/approvals/{row.id}/replacement"

    form = (await alice.get(path)).text
    sent = {
        "digest": field(form, "digest"),
        "/targetRecordId": report,
        "/message": "when you can",
    }
    bad = await alice.post(path, data={**sent, "/message": "x" * 501})
    saved = await alice.post(path, data=sent)
    new = saved.headers["location"].rpartition("/")[2]
    card = (await alice.get(f"/approvals/{new}")).text
    old = (await alice.get(f"/approvals/{row.id}")).text

    assert "NOW" in form
    assert bad.status_code == 422
    assert saved.status_code == 303
    assert "Edited by Alice Wang 王爱丽." in card
    assert re.search(r"<del>.*NOW.*</del>.*<ins>.*when you can", card)
    assert "Replaced by a newer request" in old
    assert f"/approvals/{new}" in old
    assert (await alice.get(path)).status_code == 409


@pytest.mark.requirement("UI-81", "CMD-28")
async def test_what_changed_meanwhile_is_said_and_prepared_again(asking: Asking) -> None:
    report = await asking.desk.draft("alice", 2_000)
    row = await asking.ask(asking.call("alice", DISCARD, report))
    alice = asking.desk.world.client(asking.acme["alice"])
    page = (await alice.get(f"/approvals/{row.id}")).text
    await asking.desk.add("alice", report, 500)

    stale = (await alice.get(f"/approvals/{row.id}")).text
    refused = await press(alice, row, "approve", page)
    again = await alice.post(
        f"/approvals/{row.id}/replacement", data={"again": "true", "digest": row.digest}
    )
    new = asking.row(again.headers["location"].rpartition("/")[2])

    assert f"{row.target_label} was changed by Alice Wang 王爱丽" in stale
    assert "data-arm" not in stale
    assert refused.status_code == 409
    assert new.changed_by is None
    assert (await press(alice, new, "approve")).status_code == 303
    assert asking.row(new.id).state == "consumed"


@pytest.mark.requirement("UI-64", "UI-63", "CMD-15")
async def test_the_end_of_a_request_is_said_with_its_own_word(asking: Asking) -> None:
    alice = asking.desk.world.client(asking.acme["alice"])
    report = await asking.desk.submitted("alice", 2_000)
    withdrawn = await asking.ask(asking.call("alice", REMIND, report))
    done = await alice.post(f"/approvals/{withdrawn.id}/withdrawal")
    twice = await alice.post(f"/approvals/{withdrawn.id}/withdrawal")
    expired = await asking.ask(asking.call("alice", REMIND, report))
    asking.set(expired.id, expires_at=clock.now() - timedelta(seconds=1))
    failed = await asking.ask(asking.call("alice", REMIND, report, message="x"))
    asking.set(failed.id, preview_digest="0" * 64)
    page = await press(alice, failed, "approve")

    assert (done.status_code, twice.status_code, page.status_code) == (303, 409, 303)
    for row, said in (
        (withdrawn, "Withdrawn by Alice Wang 王爱丽"),
        (expired, "Expired; it did not run"),
        (failed, "Approved by Alice Wang 王爱丽, then refused at effect"),
    ):
        text = (await alice.get(f"/approvals/{row.id}")).text
        assert said in text
        assert "Ask again" in text
    listed = (await alice.get("/approvals", params={"state": "requested"})).text
    assert rows(listed) == [failed.id, expired.id, withdrawn.id]


CLOSED = {
    "Withdrawn by Fiona": {"state": "cancelled", "closed_why": "withdrawn"},
    "Withdrawn by Fiona ": {"state": "superseded", "closed_why": "withdrawn"},  # by its run
    "Replaced by a newer request": {"state": "superseded", "closed_why": "replaced"},
    "Denied by Frank": {"state": "denied", "decided_by": "frank"},
    "Expired; it did not run": {"state": "expired", "closed_why": "time"},
    "Approved by Frank, then expired": {"state": "expired", "decided_by": "frank"},
    "Done, approved by Frank": {"state": "consumed", "decided_by": "frank"},
    "Cancelled: the run was stopped": {"state": "cancelled", "closed_why": "run_canceled"},
    "Cancelled: the agent was switched off": {"state": "cancelled", "closed_why": "agent_disabled"},
    "Cancelled": {"state": "cancelled", "closed_why": "something_new"},
}


@pytest.mark.requirement("UI-63", "UI-69", "CMD-15")
@pytest.mark.parametrize(("words", "closed"), CLOSED.items(), ids=CLOSED)
async def test_a_closed_request_says_how_it_ended_and_offers_no_decision(
    asking: Asking, words: str, closed: dict[str, str]
) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    frank = asking.desk.world.client(asking.acme["frank"])
    fiona = asking.desk.world.client(asking.acme["fiona"])
    before = (await frank.get(f"/approvals/{row.id}")).text
    assert "You may decide" in before
    assert "data-decision" in before

    now = clock.now()
    ended: dict[str, Any] = {**closed, "closed_at": now, "closed_by": asking.acme["fiona"].id}
    if "decided_by" in closed:
        ended |= {"decided_by": asking.acme[closed["decided_by"]].id, "decided_at": now}
    asking.set(row.id, **ended)

    for browser in (frank, fiona):
        told = (await browser.get(f"/approvals/{row.id}")).text.partition("<article")[2]
        assert words.strip() in told
        for offered in (
            "may decide",
            "Who decides",
            "data-decision",
            "waits for another",
            "?</h1>",
        ):
            assert offered not in told
        listed = (await browser.get("/approvals?state=requested")).text
        assert (words.strip() in listed) is (browser is fiona)


@pytest.mark.requirement("UI-31", "UI-70")
async def test_lists_are_filtered_and_say_what_would_be_there(asking: Asking) -> None:
    browser = asking.desk.world.client(asking.acme["alice"])
    for state, said in (
        ("open", "Nothing waits for you"),
        ("decided", "Nothing was decided yet"),
        ("requested", "You asked for nothing yet"),
    ):
        assert said in (await browser.get("/approvals", params={"state": state})).text
    report = await asking.desk.submitted("alice", 2_000)
    draft = await asking.desk.draft("alice", 100)
    by_agent = await asking.ask(asking.call(asking.agent("alice"), REMIND, report))
    own = await asking.ask(asking.call("alice", DISCARD, draft))

    async def listed(**query: str) -> list[str]:
        return rows((await browser.get("/approvals", params=query)).text)

    assert await listed() == [by_agent.id, own.id]
    assert await listed(agent=str(by_agent.agent_id)) == [by_agent.id]
    assert await listed(risk="L2") == [own.id]
    assert await listed(risk="L4") == []
    assert (await browser.get("/approvals", params={"state": "x"})).status_code == 422


@pytest.mark.requirement("UI-60", "UI-73", "SEC-52")
async def test_foreign_text_poses_as_nothing(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    evil = "<script>x</script>\u202eabc\u200b"
    row = await asking.ask(asking.call("alice", REMIND, report, message=evil))
    page = (await asking.desk.world.client(asking.acme["alice"]).get(f"/approvals/{row.id}")).text

    assert "<script>x" not in page
    assert "U+202E" in page
    assert "U+200B" in page
    assert "\u202e" not in page


@pytest.mark.requirement("UI-83", "UI-19")
async def test_a_receipt_offers_the_undo_while_it_works(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    alice = asking.desk.world.client(asking.acme["alice"])
    await press(alice, row, "approve")

    page = (await alice.get(f"/approvals/{row.id}")).text

    assert "Nothing takes this back." in page
    assert unquote(f"/audit/{asking.entries(row.id)[-1].seq}") in page


@pytest.mark.requirement("UI-74")
async def test_each_decision_form_begins_with_a_button_that_does_nothing(asking: Asking) -> None:
    report = await asking.desk.submitted("alice", 2_000)
    row = await asking.ask(asking.call("alice", REMIND, report))
    page = (await asking.desk.world.client(asking.acme["alice"]).get(f"/approvals/{row.id}")).text

    decisions = re.findall(r"<form[^>]*data-decision=.*?</form>", page, re.DOTALL)
    assert len(decisions) == 2
    for form in decisions:
        assert re.findall(r"<button[^>]*>", form)[0] == "<button disabled hidden>"
    assert timedelta(minutes=2) == deciding.DIALOG_LIVES


@pytest.mark.requirement("SEC-39", "SEC-36")
async def test_a_passkey_signs_this_very_decision_and_is_kept_with_it(asking: Asking) -> None:
    report = await asking.desk.approved("alice", 2_000)
    row = await asking.ask(asking.call("fiona", SEND, report))
    other = await asking.ask(asking.call("fiona", SEND, await asking.desk.approved("alice", 1_000)))
    old = asking.desk.world.client(asking.acme["frank"], signed_in=AGO)
    passkey = Authenticator()
    fresh = asking.desk.world.client(asking.acme["frank"])
    made = (await fresh.post("/settings/passkeys/options")).json()
    await fresh.post("/settings/passkeys", data={"label": "K", "credential": passkey.create(made)})

    async def assertion(for_row: Approval, page: str) -> str:
        address = f"/approvals/{for_row.id}/passkey/options"
        asked = await old.post(address, params={"nonce": field(page, "nonce")})
        return passkey.get(asked.json())

    page = (await old.get(f"/approvals/{row.id}")).text
    typed = {"typed": str(row.target_label)}
    elsewhere = await assertion(other, (await old.get(f"/approvals/{other.id}")).text)
    wrong = await press(old, row, "approve", page, credential=elsewhere, **typed)
    none = await press(old, row, "approve", page, credential="{}", **typed)

    assert f'data-options="/approvals/{row.id}/passkey/options?nonce=' in page
    assert (wrong.status_code, none.status_code) == (400, 400)
    assert asking.row(row.id).state == "open"

    signed = await assertion(row, page)
    done = await press(old, row, "approve", page, credential=signed, **typed)

    assert done.status_code == 303
    kept = asking.row(row.id)
    assert (kept.state, kept.assertion) == ("consumed", signed)
    said = json.loads(raw(json.loads(signed)["response"]["clientDataJSON"]))
    assert raw(said["challenge"]) == deciding.challenge(row.id, row.digest, field(page, "nonce"))
