"""The audit as people see it: who sees what, filters, views, entries, files, verification."""

import csv
import io
import re
from datetime import timedelta
from typing import Any

import httpx2
import orjson
import pytest
from sqlmodel import Session, select

from app.audit import queries, trail
from app.audit.models import AuditEntry, SavedView
from app.audit.queries import Filters
from app.audit.trail import NewEntry
from app.identity.models import AgentRelease, DataScope, User
from app.kernel import clock, db, ids, rates
from app.kernel.db import Work
from tests.audit import trails
from tests.people import World

ROW = re.compile(r'id="entry-(\d+)-row"')


@pytest.mark.requirement("CMD-21")
async def test_an_auditor_sees_every_entry_and_others_their_own(world: World) -> None:
    alices, bobs = call(world, "alice"), call(world, "bob")
    call(world, "gus", tenant="globex")
    axel, alice = world.client(world.acme["axel"]), world.client(world.acme["alice"])

    every, own = await axel.get("/audit"), await alice.get("/audit")
    file = await alice.get("/audit.csv")
    pages = [await alice.get(f"/audit/{seq}") for seq in (alices, bobs, 10**8)]

    assert {alices, bobs} <= rows(every.text)
    assert rows(own.text) & {alices, bobs} == {alices}
    assert "Verify the chain" in every.text
    assert "Verify the chain" not in own.text
    assert {int(row["seq"]) for row in table(file)} & {alices, bobs} == {alices}
    assert [page.status_code for page in pages] == [200, 404, 404]
    unlike = told(pages[1].text) != told(pages[2].text)
    assert not unlike, "as if it were not there"
    assert "Gus" not in every.text


async def test_who_reads_the_audit_of_an_organisation_sees_what_it_reaches(world: World) -> None:
    alices, bobs, axels = call(world, "alice"), call(world, "bob"), call(world, "axel")
    grants = {"audit.read": DataScope.ORG_AND_BELOW.value}
    world.give(world.acme["bob"], "reader", world.acme.orgs["sales"], grants=grants)
    own = call(world, "ada", org="beijing")

    bob = world.client(world.acme["bob"])
    seen = rows((await bob.get("/audit")).text)
    verified = await bob.post("/audit/verification")

    assert seen & {alices, bobs, axels, own} == {bobs}
    assert (await bob.get(f"/audit/{axels}")).status_code == 404
    assert verified.status_code == 403, "the whole chain is not theirs to verify"


@pytest.mark.requirement("CMD-21", "UI-20")
async def test_filters_stand_in_the_address_and_as_chips(world: World) -> None:
    hers = call(world, "alice", risk="L3", agent=True)
    axel = world.client(world.acme["axel"])
    agent = world.acme.agents["stock"]

    asked = f"/audit?user=alice&agent={agent.code}&release=1&risk=L3&risk=L4&from=2020-01-01"
    page = await axel.get(asked)
    none = await axel.get(f"{asked}&outcome=refused")
    odd = await axel.get("/audit?from=yesterday")

    assert rows(page.text) == {hers}
    assert "Person: Alice Wang 王爱丽" in page.text
    assert "Risk: L4" in page.text
    assert (
        'href="/audit?from=2020-01-01&amp;user=alice&amp;agent=stock&amp;release=1&amp;risk=L3"'
        in (page.text)
    )
    assert rows(none.text) == set()
    assert "No entry matches" in none.text
    assert odd.status_code == 422


async def test_days_are_those_of_the_viewer(world: World) -> None:
    before = call(world, "alice", at=clock.now().replace(2026, 3, 1, 15, 59, 59))
    after = call(world, "alice", at=clock.now().replace(2026, 3, 1, 16, 0, 1))
    axel = world.acme["axel"]
    db.transact_now(_live_in, axel, "Asia/Shanghai")

    browser = world.client(axel)
    second = await browser.get("/audit?from=2026-03-02&to=2026-03-02")
    first = await browser.get("/audit?from=2026-03-01&to=2026-03-01")

    assert (rows(first.text), rows(second.text)) == ({before}, {after})
    assert "UTC+08:00" in first.text
    assert "2026-03-02" in second.text


@pytest.mark.requirement("CMD-21")
async def test_the_usual_questions_are_views(world: World) -> None:
    asked = call(world, "alice", risk="L3", agent=True, approved_by=world.acme["bob"].id)
    unasked = call(world, "alice", risk="L1", agent=True)
    gone = call(world, "alice", risk="L2", reversible=False)
    refused = call(world, "bob", outcome="refused", stage="sod_check", reason="sod_conflict")
    every = {asked, unasked, gone, refused}
    axel = world.client(world.acme["axel"])
    links = re.findall(
        r'<li><a class="chip" href="(/audit\?[^"]+)"', (await axel.get("/audit?user=alice")).text
    )

    found = [rows((await axel.get(link.replace("&amp;", "&"))).text) & every for link in links[:5]]
    stages = await axel.get("/audit?outcome=refused")

    assert found == [{asked}, {gone}, {asked}, {unasked}, {refused}]
    assert "Refusals by stage" in stages.text
    assert "sod_check" in stages.text.partition("</figure>")[0]


@pytest.mark.requirement("CMD-21")
async def test_a_person_keeps_views_of_their_own(world: World) -> None:
    axel, ada = world.client(world.acme["axel"]), world.client(world.acme["ada"])

    saved = await axel.post("/audit/views", data={"name": "Risky", "query": "risk=L4&x=1&risk=L3"})
    again = await axel.post("/audit/views", data={"name": "Risky", "query": "risk=L3"})
    broken = await axel.post("/audit/views", data={"name": "Odd", "query": "risk=L9"})
    listed = await axel.get("/audit")
    view = db.read_now(_views)[0]
    foreign = [
        await ada.get(f"/audit/views/{view.id}"),
        await ada.post(f"/audit/views/{view.id}", data={"name": "Mine"}),
        await ada.post(f"/audit/views/{view.id}/removal"),
    ]
    renamed = await axel.post(f"/audit/views/{view.id}", data={"name": "Stakes"})
    mine = await axel.get("/audit/views")
    removed = await axel.post(f"/audit/views/{view.id}/removal")

    assert saved.headers["location"] == "/audit?risk=L4&risk=L3"
    assert (again.status_code, broken.status_code) == (422, 422)
    assert "You have a view of this name already." in again.text
    assert 'href="/audit?risk=L4&amp;risk=L3"' in listed.text
    assert "Risky" not in (await ada.get("/audit")).text
    assert [answer.status_code for answer in foreign] == [404, 404, 404]
    assert (renamed.status_code, removed.status_code) == (303, 303)
    assert "Stakes" in mine.text
    assert db.read_now(_views) == []


async def test_views_are_not_kept_without_end(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.audit.views.MOST", 1)
    axel = world.client(world.acme["axel"])
    await axel.post("/audit/views", data={"name": "First", "query": "risk=L3"})

    second = await axel.post("/audit/views", data={"name": "Second", "query": "risk=L3"})

    assert second.status_code == 422
    assert "You have 1 saved views. Delete one first." in second.text


@pytest.mark.requirement("UI-20")
async def test_an_entry_tells_everything(world: World) -> None:
    parent = call(world, "alice")
    seq = call(
        world,
        "alice",
        agent=True,
        risk="L4",
        reversible=False,
        parent_call_id=entry(world, parent).call_id,
        approval_id="01ARZ3NDEKTSV4RRFFQ69G5FAV",
        approved_by=world.acme["bob"].id,
        approved_at=clock.now(),
        brief="none",
        run_id="RUN1",
        prompt_ref="MESSAGE1",
        input_redacted={"note": "<b>\u202e出差</b>", "pin": {"redacted": True, "length": 4}},
        changes=[
            {
                "record": "expense.report",
                "id": "R1",
                "label": "EXP-2041",
                "operation": "update",
                "fields": {"state": ["approved", "paid"], "total": [0, 1200]},
            },
            {"field": "status", "before": None, "after": "active"},
        ],
        timings={"effect": "2.5", "load": "0.25"},
    )
    outcome = call(world, "alice", outcome="failed", call_id=entry(world, seq).call_id)
    axel = world.client(world.acme["axel"])

    page = (await axel.get(f"/audit/{seq}")).text
    plain = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))

    assert re.search(r"Stock r 1", plain), "the agent and its release"
    assert "陈博 Bob Chen" in plain
    assert 'href="/approvals/01ARZ3NDEKTSV4RRFFQ69G5FAV"' in page
    assert "The user was not told beforehand." in plain
    assert "⟨U+202E⟩" in plain, "what reorders text is seen"
    assert "<b>" not in page
    assert re.search(r"EXP-2041 State approved paid", plain)
    assert re.search(r"Status nothing active", plain)
    assert plain.index("load 0.25") < plain.index("effect 2.5"), "in the order of the stages"
    assert f'href="/audit/{parent}"' in page
    assert f'href="/audit/{outcome}"' in page
    assert f'rel="prev" href="/audit/{parent}"' in page
    assert f'rel="next" href="/audit/{outcome}"' in page
    assert "follows from the one before it" in plain
    assert entry(world, seq).hash in page
    chinese = await axel.get(f"/audit/{seq}", headers={"Accept-Language": "zh-CN"})
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", chinese.text))
    assert "EXP-2041 状态 approved paid" in words, "fields are words"
    assert re.search(r" 状态 \S+ active", words)


@pytest.mark.requirement("SEC-75")
async def test_an_entry_that_was_changed_says_so(world: World, opened: str) -> None:
    seq = call(world, "alice")
    following = call(world, "alice")
    trails.unlocked(opened, f"UPDATE audit_entry SET reason = 'x', hash = 'y' WHERE seq = {seq}")  # noqa: S608
    axel = world.client(world.acme["axel"])

    changed, behind = await axel.get(f"/audit/{seq}"), await axel.get(f"/audit/{following}")
    verified = await axel.post("/audit/verification")

    assert "the entry was changed" in changed.text
    assert "the trail was changed" in behind.text
    assert "The trail is not as it was written." in verified.text
    assert f'href="/audit/{seq}"' in verified.text


async def test_the_chain_is_verified_on_demand_and_not_all_the_time(world: World) -> None:
    axel, alice = world.client(world.acme["axel"]), world.client(world.acme["alice"])

    verified = await axel.post("/audit/verification")
    refused = await alice.post("/audit/verification")
    rates.of_process.cache_clear()
    often = [(await axel.post("/audit/verification")).status_code for _ in range(7)]

    assert "each is as it was written" in verified.text
    assert refused.status_code == 403
    assert often == [200] * 6 + [429]


@pytest.mark.requirement("SEC-79", "UI-20", "SEC-54")
async def test_a_file_has_the_filters_on_screen_and_is_on_record(world: World) -> None:
    hers = call(world, "alice", risk="L3", target_id="=1+1")
    call(world, "bob", risk="L1")
    axel = world.client(world.acme["axel"])

    page = await axel.get("/audit?risk=L3")
    link = re.findall(r'href="(/audit\.csv[^"]*)"', page.text)[0]
    answer = await axel.get(link)
    lines = (await axel.get("/audit.jsonl?risk=L3")).text.splitlines()
    exports = db.read_now(_entries, world, "audit.export")

    found = table(answer)
    assert "Export CSV (1)" in page.text
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"].startswith('attachment; filename="audit-')
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert [int(row["seq"]) for row in found] == [hers]
    assert (found[0]["target_id"], found[0]["user"]) == ("'=1+1", "Alice Wang 王爱丽")
    assert orjson.loads(lines[0])["filters"] == {"risk": ["L3"]}
    assert [orjson.loads(line)["seq"] for line in lines[1:]] == [hers]
    assert [(e.user_id, e.input_redacted) for e in exports] == [
        (world.acme["axel"].id, {"format": "csv", "filters": {"risk": ["L3"]}}),
        (world.acme["axel"].id, {"format": "jsonl", "filters": {"risk": ["L3"]}}),
    ]


@pytest.mark.requirement("UI-108")
async def test_the_chart_and_its_table_tell_the_same_numbers_as_the_list(world: World) -> None:
    today = clock.now()
    for ago, outcome in ((0, "done"), (1, "done"), (1, "refused"), (3, "failed")):
        call(world, "alice", outcome=outcome, at=today - timedelta(days=ago), target_id="CHART")
    axel = world.client(world.acme["axel"])

    page = (await axel.get("/audit?target=CHART")).text
    figure = page[page.index("<figure") : page.index("</figure>")]
    days = re.findall(r'<a href="(/audit\?[^"]+)"', figure)

    assert len(rows(page)) == 4
    assert re.search(r"<tfoot>.*Total.*2.*1.*1.*4", figure, re.DOTALL)
    assert figure.count("<rect") == 4 + 3, "a part for each, and the legend"
    assert len(days) == 3
    on_the_day = await axel.get(days[1].replace("&amp;", "&"))
    assert len(rows(on_the_day.text)) == 2
    assert "style=" not in figure


async def test_pages_go_on_and_back(world: World) -> None:
    for _ in range(60):
        call(world, "alice", target_id="MANY")
    axel = world.client(world.acme["axel"])

    first = await axel.get("/audit?target=MANY")
    link = re.findall(r'rel="next" href="([^"]+)"', first.text)[0].replace("&amp;", "&")
    second = await axel.get(link)
    back = re.findall(r'rel="prev" href="([^"]+)"', second.text)[0].replace("&amp;", "&")

    assert (len(rows(first.text)), len(rows(second.text))) == (50, 10)
    assert rows(first.text) & rows(second.text) == set()
    assert rows((await axel.get(back)).text) == rows(first.text)


async def test_the_page_is_all_there_in_chinese(world: World) -> None:
    seq = call(world, "alice", risk="L3", outcome="refused", stage="assert", reason="x")
    axel = world.client(world.acme["axel"])
    axel.headers["Accept-Language"] = "zh-CN"

    page, one = await axel.get("/audit?outcome=refused&by=person"), await axel.get(f"/audit/{seq}")

    for words in ("审计", "结果：已拒绝", "影响外部", "按阶段统计的拒绝", "导出 CSV"):
        assert words in page.text
    assert "该记录与写入时一致，并与前一条相衔接。" in one.text


def call(
    world: World,
    login: str,
    *,
    tenant: str = "acme",
    agent: bool = False,
    org: str | None = None,
    **more: Any,
) -> int:
    """Put a call of somebody on record, as the pipeline would; the number of its entry."""
    company = world.acme if tenant == "acme" else world.globex
    given: dict[str, Any] = {
        "tenant_id": company.id,
        "call_id": ids.ulid(),
        "command": "expense.report.submit",
        "outcome": "done",
        "channel": "run" if agent else "console",
        "user_id": company[login].id,
        "org_id": company.orgs[org].id if org else company[login].org_id,
    }
    if agent:
        stock = company.agents["stock"]
        given |= {"agent_id": stock.id, "agent_release": _release_of(stock.id), "model": "m-large"}
    return db.transact_now(lambda work: trail.append(work, NewEntry(**{**given, **more})))


def entry(world: World, seq: int) -> AuditEntry:
    """An entry of Acme."""
    found = db.read_now(queries.one, world.acme.id, seq)
    assert found is not None
    return found


def rows(html: str) -> set[int]:
    """The numbers of the entries in a list."""
    return {int(number) for number in ROW.findall(html)}


def table(file: httpx2.Response) -> list[dict[str, str]]:
    """The rows of a CSV."""
    return list(csv.DictReader(io.StringIO(file.content.decode("utf-8-sig"), newline="")))


def told(html: str) -> str:
    """What a page says, without the ids of its request."""
    return re.sub(r"[0-9A-HJKMNP-TV-Z]{26}|(?:/|%2F)audit(?:/|%2F)\d+", "·", html)


def _release_of(agent_id: str) -> str:
    def find(session: Session) -> str:
        return session.exec(select(AgentRelease.id).where(AgentRelease.agent_id == agent_id)).one()

    return db.read_now(find)


def _views(session: Session) -> list[SavedView]:
    return list(session.exec(select(SavedView)).all())


def _entries(session: Session, world: World, command: str) -> list[AuditEntry]:
    page = queries.page(session, world.acme.id, Filters(command=command))
    return list(reversed(page.rows))


def _live_in(work: Work, user: User, zone: str) -> None:
    row = work.session.get_one(User, (user.tenant_id, user.id))
    row.time_zone = zone
    work.session.add(row)
