"""Commands from the browser: found, rehearsed, run once, refused with the next act, taken back."""

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any

import httpx2
import pytest
from sqlmodel import Session, select

from app.audit.models import AuditEntry
from app.commands import catalogue, pipeline, publishing, registry
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.identity.models import User
from app.kernel import db, ids
from app.packs.expenses.models import Line, Report
from tests.people import World

SAMPLES = Path(__file__).parent.parent / "commands" / "samples"
CREATE = "/commands/expense.report.create"
CITIES = ("Oslo", "Rome", "Paris")
TRIP = {"/title": "October, Shanghai", "/period": "2026-10"}


@pytest.fixture
def desk(world: World) -> Iterator[World]:
    """The world, with commands for every kind of field and refusal besides those that ship."""
    registry.discover(SAMPLES)
    db.transact_now(publishing.sync, world.acme.id)
    catalogue.forget()
    yield world
    registry.discover()
    catalogue.forget()


def drafted(world: World, user: User, title: str = "October, Shanghai") -> str:
    """The id of a new draft of somebody's."""
    call = Call(
        code="expense.report.create",
        input={"title": title, "period": "2026-10"},
        principal=world.person(user),
    )
    done = db.transact_now(pipeline.perform, call)
    assert done.record is not None
    return str(done.record["id"])


def rows(model: type[Any]) -> list[Any]:
    return db.read_now(lambda session: list(session.exec(select(model)).all()))


def entries(session: Session) -> int:
    return len(session.exec(select(AuditEntry)).all())


def field(page: httpx2.Response, name: str) -> str:
    found = re.search(rf'name="{re.escape(name)}" value="([^"]*)"', page.text)
    assert found, page.text
    return unescape(found.group(1))


def words(page: httpx2.Response) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.text)).split())


@pytest.mark.requirement("UI-21", "UI-18")
async def test_the_catalogue_is_what_one_may_call_and_counts_the_rest(world: World) -> None:
    alice, ada = world.client(world.acme["alice"]), world.client(world.acme["ada"])

    hers, adas = await alice.get("/commands"), await ada.get("/commands")

    assert "Submit expense report" in hers.text
    assert "expense.payment.send" not in hers.text, "a name that is hidden is no name for her"
    assert re.search(r"\d+ of \d+ · \d+ hidden: .*\d+ permission", words(hers))
    assert f"/commands/expense.payment.send/why?user={world.acme['ada'].id}" in adas.text
    for said in ("L2 several records", "undo: expense.report.recall", "runs once", "no undo"):
        assert said in words(hers)


async def test_the_catalogue_is_searched_and_filtered(world: World) -> None:
    alice = world.client(world.acme["alice"])

    found = {
        query: re.findall(r'<a href="/commands/([\w.]+)">', (await alice.get(query)).text)
        for query in (
            "/commands?q=提交",
            "/commands?q=report+submit",
            "/commands?risk=L3&record=expense.report",
            "/commands?approval=true",
            "/commands?q=nothing-like-it",
        )
    }

    for query in ("/commands?q=提交", "/commands?q=report+submit"):
        assert "expense.report.submit" in found[query]
        assert "inventory.item.list" not in found[query]
    assert "expense.report.remind" in found["/commands?risk=L3&record=expense.report"]
    assert "expense.report.list" not in found["/commands?approval=true"]
    assert "expense.report.discard" in found["/commands?approval=true"]
    assert found["/commands?q=nothing-like-it"] == []


@pytest.mark.requirement("UI-18", "UI-19")
async def test_a_command_says_what_it_is_before_it_runs(world: World) -> None:
    page = await world.client(world.acme["alice"]).get("/commands/expense.report.submit")
    chinese = await world.client(world.acme["alice"]).get(
        "/commands/expense.report.submit", headers={"Accept-Language": "zh-CN"}
    )

    for said in (
        *("L2 several records", "undo: expense.report.recall", "runs once"),
        *("When to use:", "Check only", "as JSON", "as curl", "expense.report.submit"),
    ):
        assert said in words(page)
    assert "何时使用" in chinese.text
    assert "提交" in chinese.text


@pytest.mark.requirement("UI-103", "CMD-16")
async def test_a_rehearsal_shows_before_and_after_and_leaves_nothing(world: World) -> None:
    report = drafted(world, world.acme["alice"])
    alice = world.client(world.acme["alice"])
    before = db.read_now(entries)
    sent = {"/targetRecordId": report, "/title": "November"}

    page = await alice.post("/commands/expense.report.update/previews", data=sent)
    created = await alice.post(f"{CREATE}/previews", data=TRIP)

    assert page.status_code == created.status_code == 200
    assert '<del><span dir="auto"><bdi>October, Shanghai</bdi>' in page.text
    assert '<ins><span dir="auto"><bdi>November</bdi>' in page.text
    assert "nothing has happened yet" in page.text
    assert "schema_validate" in page.text
    assert "new" in words(created)
    assert "Alice Wang" in created.text
    assert [row.title for row in rows(Report)] == ["October, Shanghai"]
    assert db.read_now(entries) == before


@pytest.mark.requirement("CMD-16")
async def test_what_leaves_the_house_is_shown_before(desk: World) -> None:
    report = drafted(desk, desk.acme["alice"])
    alice = desk.client(desk.acme["alice"])
    sent = {"/targetRecordId": report, "/amountMinor": "34.20", "/account": "6222 secret 8891"}

    page = await alice.post("/commands/sample.report.danger/previews", data=sent)

    assert page.status_code == 200
    assert "Leaves the house" in words(page)
    assert "sample.report.endangered" in page.text
    assert "34.20" in page.text
    assert "6222 secret 8891" not in page.text


@pytest.mark.requirement("CMD-9", "UI-83", "UI-17")
async def test_a_double_click_is_one_call_and_one_receipt(world: World) -> None:
    alice = world.client(world.acme["alice"])
    sent = {**TRIP, "key": field(await alice.get(CREATE), "key")}

    first = await alice.post(f"{CREATE}/calls", data=sent)
    again = await alice.post(f"{CREATE}/calls", data=sent)
    other = await alice.post(f"{CREATE}/calls", data={**sent, "/title": "Another"})
    receipt = await alice.get(first.headers["location"])

    assert (first.status_code, again.status_code) == (303, 303)
    assert first.headers["location"] == again.headers["location"]
    assert other.status_code == 422
    assert "key_reused" in other.text
    assert len(rows(Report)) == 1
    assert receipt.status_code == 200
    assert "October, Shanghai" in receipt.text
    assert re.search(r'href="/audit/\d+"', receipt.text)
    assert "Undo: Discard expense report" in receipt.text


@pytest.mark.requirement("UI-83", "UI-19")
async def test_a_receipt_leads_to_the_undo_filled_in_until_it_is_too_late(world: World) -> None:
    report = drafted(world, world.acme["alice"])
    alice = world.client(world.acme["alice"])
    update = {"/targetRecordId": report, "/title": "November"}
    done = await alice.post("/commands/expense.report.update/calls", data=update)
    receipt = await alice.get(done.headers["location"])

    undo = {"fill": field(receipt, "fill")}
    form = await alice.post("/commands/expense.report.update/form", data=undo)
    assert json.loads(undo["fill"])["title"] == "October, Shanghai"
    assert 'value="October, Shanghai"' in form.text
    assert f'value="{report}" selected' in form.text
    await alice.post("/commands/expense.report.update/calls", data={**update, "/title": "Back"})
    gone = {"/targetRecordId": report}
    asked = await alice.post("/commands/expense.report.discard/calls", data=gone)

    assert asked.headers["location"].startswith("/approvals/")
    call = Call(
        code="expense.line.add",
        input={
            "targetRecordId": report,
            "operationType": "UPDATE",
            "spentOn": "2026-10-01",
            "category": "meals",
            "description": "Lunch",
            "amountMinor": 5_000,
        },
        principal=world.person(world.acme["alice"]),
    )
    db.transact_now(pipeline.perform, call)
    submit = Call(
        code="expense.report.submit",
        input={"targetRecordId": report, "operationType": "UPDATE"},
        principal=call.principal,
    )
    db.transact_now(pipeline.perform, submit)
    late = await alice.get(done.headers["location"])
    assert "It can no longer be undone:" in late.text
    assert 'name="fill"' not in late.text


@pytest.mark.requirement("UI-22", "UI-16")
async def test_a_risky_call_of_ones_own_asks_for_assent(desk: World) -> None:
    report = drafted(desk, desk.acme["alice"])
    alice = desk.client(desk.acme["alice"])
    sent = {"/targetRecordId": report, "/amountMinor": "34.20"}

    asked = await alice.post("/commands/sample.report.danger/calls", data=sent)
    script = await alice.post(
        "/commands/sample.report.danger/calls", data=sent, headers={"HX-Request": "true"}
    )

    (approval, *_) = rows(Approval)
    assert (asked.status_code, asked.headers["location"]) == (303, f"/approvals/{approval.id}")
    assert script.headers["HX-Redirect"].startswith("/approvals/")
    assert approval.arguments["amountMinor"] == 3420


@pytest.mark.requirement("UI-16", "UI-103")
async def test_a_refusal_says_where_why_and_what_to_do_next(world: World) -> None:
    report = drafted(world, world.acme["alice"])
    alice = world.client(world.acme["alice"])
    url = "/commands/expense.line.add/calls"
    line = {
        "/targetRecordId": report,
        "/spentOn": "2026-10-01",
        "/category": "meals",
        "/description": "Lunch 午餐",
        "/amountMinor": "50",
    }

    nothing = await alice.post(url, data={})
    typed = await alice.post(url, data={**line, "/amountMinor": "a lot"})
    rule = await alice.post(url, data={**line, "/receiptIssuer": "Cafe"})
    chinese_rule = await alice.post(
        url, data={**line, "/receiptIssuer": "Cafe"}, headers={"Accept-Language": "zh-CN"}
    )
    foreign = await alice.post(url, data={**line, "/targetRecordId": ids.ulid()})
    empty = await alice.post(
        "/commands/expense.report.submit/calls", data={"/targetRecordId": report}
    )
    state = await alice.post(
        "/commands/expense.report.recall/calls", data={"/targetRecordId": report}
    )
    chinese = await alice.post(
        "/commands/expense.report.recall/calls",
        data={"/targetRecordId": report},
        headers={"Accept-Language": "zh-CN"},
    )

    assert nothing.status_code == 422
    assert nothing.text.count('aria-invalid="true"') >= 4
    assert "Write an amount, such as 3420.00." in typed.text
    assert 'value="a lot"' in typed.text
    assert "Lunch 午餐" in typed.text
    assert rule.status_code == 422
    assert "A receipt that has an issuer has a number too." in rule.text
    assert chinese_rule.text.count("填写了开票方，也要填写发票号码。") == 2, (
        "above, and at the field"
    )
    assert re.search(r'href="#field-\d+"><strong>发票号码', chinese_rule.text)
    assert (foreign.status_code, "record_not_found" in foreign.text) == (404, True)
    assert (empty.status_code, "A report needs a line." in empty.text) == (422, True)
    assert state.status_code == 409
    assert "It is in the state “Draft”; this is possible from: Submitted." in words(state)
    assert "state_check illegal_state" in words(state)
    assert f"/commands/expense.report.get?target={report}" in state.text
    assert "Look at the record as it is now" in state.text
    assert "当前状态为“草稿”；仅可从以下状态执行：已提交" in words(chinese)
    assert rows(Line) == []


async def test_a_page_that_was_overtaken_is_told_so(world: World) -> None:
    report = drafted(world, world.acme["alice"])
    alice = world.client(world.acme["alice"])
    update = "/commands/expense.report.update"
    page = await alice.get(f"{update}?target={report}")
    sent = {"/targetRecordId": report, "expected_version": field(page, "expected_version")}
    await alice.post(f"{update}/calls", data={"/targetRecordId": report, "/title": "Faster"})

    late = await alice.post(f"{update}/calls", data={**sent, "/title": "Slower"})
    other = {**sent, "expected_version": f"{ids.ulid()}:9", "/title": "Slower"}
    unseen = await alice.post(f"{update}/calls", data=other)

    assert 'value="October, Shanghai"' in page.text, "an update begins with what there is"
    assert (late.status_code, "version_conflict" in late.text) == (409, True)
    assert 'value="Slower"' in late.text
    assert unseen.status_code == 303, "a version of another record says nothing"


@pytest.mark.requirement("UI-103")
async def test_records_are_chosen_among_those_one_may_use(world: World) -> None:
    acme = world.acme
    mine = [drafted(world, acme["alice"], f"Trip to {city}") for city in CITIES]
    bobs = drafted(world, acme["bob"], "Secret of Bob")
    alice = world.client(acme["alice"])
    submit = "/commands/expense.report.submit"

    page = await alice.get(f"{submit}?target={mine[1]}")
    foreign = await alice.get(f"{submit}?target={bobs}")
    recall = await alice.get("/commands/expense.report.recall")
    found = await alice.post(
        "/commands/expense.report.recall/form",
        data={"find:/targetRecordId": "trip ROME", "find": "x"},
    )

    adding = await alice.get("/commands/expense.line.add")
    sent = {"targetRecordId": mine[0], "operationType": "UPDATE"}
    lunch = {"spentOn": "2026-10-14", "category": "meals", "description": "x", "amountMinor": 1}
    for code, input in (("expense.line.add", {**sent, **lunch}), ("expense.report.submit", sent)):
        ran = await alice.post(f"/v1/commands/{code}/calls", json={"input": input})
        assert ran.status_code == 200, ran.text
    closed = await alice.get("/commands/expense.line.add")
    chosen = await alice.get(f"/commands/expense.line.add?target={mine[0]}")

    assert f'value="{mine[1]}" selected' in page.text
    assert "Not in their present state" not in adding.text
    assert re.search(rf'value="{mine[0]}" disabled>EXP-\d+ Trip to \w+ · Submitted', closed.text)
    assert f'value="{mine[1]}" disabled' not in closed.text
    assert re.search(rf'value="{mine[0]}" selected>EXP-\d+ Trip to \w+ · Submitted', chosen.text)
    for answer in (page, foreign, recall):
        assert "Trip to Oslo" in answer.text
        assert "Secret of Bob" not in answer.text
        assert bobs not in answer.text
    assert "Not in their present state" in recall.text
    assert "disabled>EXP-" in recall.text
    assert ("Trip to Rome" in found.text, "Trip to Oslo" in found.text) == (True, False)


async def test_the_form_is_redrawn_by_its_buttons(desk: World) -> None:
    alice = desk.client(desk.acme["alice"])
    url = "/commands/sample.form.write/form"

    example = await alice.post(url, data={"fill": "example"})
    grown = await alice.post(url, data={"/title": "T", "/secret": "hush", "rows": "add:/rows"})
    odd = await alice.post(url, data={"fill": "{no json"})

    assert 'value="pens"' in example.text
    assert 'name="/rows/0/label"' in grown.text
    assert 'value="T"' in grown.text
    assert "hush" not in grown.text
    assert odd.status_code == 200
    assert rows(Report) == []


@pytest.mark.requirement("CMD-20")
async def test_a_form_of_every_kind_arrives_typed_and_its_secret_stays_hidden(
    desk: World,
) -> None:
    alice = desk.client(desk.acme["alice"])
    sent = {
        "/title": "All of it",
        "/colour": "green",
        "/amountMinor": "12.50",
        "/isUrgent": "true",
        "/on": "2026-11-01",
        "/words/0": "one",
        "/words/1": "",
        "/secret": "hush 48151623",
        "/rows/0": "",
        "/rows/0/label": "pens",
        "/rows/0/count": "3",
    }

    done = await alice.post("/commands/sample.form.write/calls", data=sent)
    receipt = await alice.get(done.headers["location"])
    refused = await alice.post("/commands/sample.form.write/calls", data={**sent, "/title": ""})

    assert done.status_code == 303
    (made,) = rows(Report)
    assert (made.title, made.total_minor) == ("All of it", 1250)
    entry = db.read_now(
        lambda session: session.exec(
            select(AuditEntry).where(AuditEntry.command == "sample.form.write")
        ).first()
    )
    assert entry is not None
    assert entry.input_redacted is not None
    assert entry.input_redacted["rows"] == [{"label": "pens", "count": 3}]
    assert entry.input_redacted["words"] == ["one"]
    for page in (receipt, refused):
        assert "48151623" not in page.text
    assert "••••" in refused.text


async def test_what_a_reading_command_answers_is_a_table(world: World) -> None:
    for number in range(3):
        drafted(world, world.acme["alice"], f"Trip {number}")
    alice = world.client(world.acme["alice"])
    url = "/commands/expense.report.list/calls"

    page = await alice.post(url, data={"/limit": "2"})
    cursor = re.search(r'name="/cursor" value="([^"]+)"', page.text)
    assert cursor
    rest = await alice.post(url, data={"/limit": "2", "/cursor": cursor.group(1)})
    none = await alice.post(url, data={"/q": "nothing like it"})
    one = await alice.post(
        "/commands/expense.report.get/calls", data={"/targetRecordId": rows(Report)[0].id}
    )

    assert page.status_code == 200
    assert ("Trip 2" in page.text, "Trip 0" in page.text) == (True, False)
    assert ("Trip 2" in rest.text, "Trip 0" in rest.text) == (False, True)
    assert "/commands/expense.report.get?target=" in page.text
    assert "Nothing matches" in none.text
    assert "CN¥0.00" in one.text


@pytest.mark.requirement("CMD-22")
async def test_an_administrator_sees_which_layer_hides_a_command(world: World) -> None:
    ada, alice = world.client(world.acme["ada"]), world.client(world.acme["alice"])
    url = "/commands/expense.payment.send/why"

    asked = await ada.get(url)
    hidden = await ada.get(f"{url}?user={world.acme['alice'].id}")
    seen = await ada.get(f"/commands/expense.report.create/why?user={world.acme['alice'].id}")
    off = await ada.get(f"/commands/expense.report.create/why?user={world.acme['dora'].id}")
    foreign = await ada.get(f"{url}?user={world.globex['gus'].id}")
    curious = await alice.get(url)

    assert "Choose a person" in asked.text
    assert "does not see this command" in hidden.text
    assert "No role of this person gives expense.payment.execute." in words(hidden)
    assert re.search(r"Alice Wang \S+ sees this command", words(seen))
    assert "The account is not active." in off.text
    assert (foreign.status_code, curious.status_code) == (404, 403)


async def test_calls_of_others_and_commands_one_may_not_call_do_not_exist(world: World) -> None:
    alice, bob = world.client(world.acme["alice"]), world.client(world.acme["bob"])
    done = await alice.post(f"{CREATE}/calls", data=TRIP)
    path = done.headers["location"]

    assert (await alice.get(path)).status_code == 200
    assert (await bob.get(path)).status_code == 404
    assert (await alice.get(path.replace("create", "update"))).status_code == 404
    assert (await alice.get("/commands/expense.payment.send")).status_code == 404
    assert (await alice.get("/commands/nobody.has.this")).status_code == 404
    refused = await alice.post("/commands/expense.payment.send/calls", data={})
    assert (refused.status_code, "permission_denied" in refused.text) == (403, True)


@pytest.mark.requirement("UI-17")
async def test_a_refused_call_can_be_looked_up_by_its_id(world: World) -> None:
    alice = world.client(world.acme["alice"])
    key = field(await alice.get(CREATE), "key")
    await alice.post(f"{CREATE}/calls", data={**TRIP, "/period": "soon", "key": key})

    page = await alice.get(f"{CREATE}/calls/{key}")

    assert page.status_code == 200
    assert "Nothing was changed." in page.text
    assert "invalid_input" in page.text


async def test_a_script_gets_the_part_of_the_page_it_asked_for(world: World) -> None:
    alice = world.client(world.acme["alice"])
    asks: Callable[..., Any] = alice.post

    checked = await asks(f"{CREATE}/previews", data=TRIP, headers={"HX-Request": "true"})
    done = await asks(f"{CREATE}/calls", data=TRIP, headers={"HX-Request": "true"})
    refused = await asks(f"{CREATE}/calls", data={}, headers={"HX-Request": "true"})

    assert checked.text.strip().startswith('<div id="run">')
    assert "<html" not in checked.text
    assert done.headers["HX-Redirect"].startswith(f"{CREATE}/calls/")
    assert (refused.status_code, "<html" in refused.text) == (422, False)
