"""Running commands over HTTP, what became of a call, and what the door itself refuses."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from sqlalchemy import Engine, event
from sqlmodel import Session, func, select

from app.audit.models import AuditEntry
from app.commands import pipeline
from app.commands.call import Call
from app.commands.errors import CallerGone
from app.commands.models import CommandOutcome
from app.commands.outbox_models import OutboxEvent
from app.commands.refused import Refused
from app.identity import users
from app.identity.doors import Door
from app.identity.models import Delegation
from app.identity.principal import Principal
from app.kernel import db, rates
from app.kernel.db import Work
from app.kernel.errors import Busy, PermissionDenied
from app.kernel.prepared import Prepared
from app.kernel.rates import DEFAULTS, Rates
from app.packs.expenses.models import Report
from tests.clock import Clock
from tests.commands.agents import program
from tests.mcp import connecting
from tests.people import World

CREATE, LIST = "expense.report.create", "expense.report.list"
TRIP = {"title": "October, Shanghai", "period": "2026-10"}
UNKNOWN = "01JDXP5Y8GZ0000000000000AB"
LARGEST_EXACT = 2**53 - 1


@pytest.fixture(autouse=True)
def _counted_anew() -> Iterator[None]:
    """Rates are counted from nought, and forgotten afterwards."""
    rates.of_process.cache_clear()
    yield
    rates.of_process.cache_clear()


def stored(session: Session) -> tuple[int, ...]:
    """How many rows a call could have left behind."""
    tables: tuple[Any, ...] = (Report, CommandOutcome, OutboxEvent, AuditEntry)
    return tuple(session.exec(select(func.count()).select_from(table)).one() for table in tables)


async def run(client: httpx2.AsyncClient, code: str = CREATE, **body: Any) -> httpx2.Response:
    key = {"Idempotency-Key": body.pop("key")} if "key" in body else {}
    return await client.post(
        f"/v1/commands/{code}/calls", json={"input": TRIP, **body}, headers=key
    )


@pytest.mark.requirement("CMD-7", "CMD-26", "UI-26")
async def test_what_became_of_a_call_is_told_to_who_made_it_and_to_nobody_else(
    clock: Clock, world: World
) -> None:
    alice, bob, gina = world.acme["alice"], world.acme["bob"], world.globex["gina"]
    browser = world.client(alice)
    done = (await run(browser)).json()
    refused = (await run(browser, input={**TRIP, "period": "2026-13"})).json()

    became = (await browser.get(f"/v1/calls/{done['callId']}")).json()
    failed = (await browser.get(f"/v1/calls/{refused['callId']}")).json()

    assert (became["outcome"], became["cmdCode"]) == ("done", CREATE)
    assert became["auditSeq"] == done["auditSeq"]
    assert (became["result"], became["record"]) == (done["result"], done["record"])
    assert became["undo"]["cmdCode"] == "expense.report.discard"
    ended = (failed["outcome"], failed["stage"], failed["reason"], failed["result"])
    assert ended == ("refused", "schema_validate", "invalid_input", None)
    nobodys = await browser.get(f"/v1/calls/{UNKNOWN}")
    assert (nobodys.status_code, nobodys.json()["reason"]) == (404, "not_found")
    for other in (world.client(bob), program(world, world.acme, alice), world.client(gina)):
        answer = await other.get(f"/v1/calls/{done['callId']}")
        assert (answer.status_code, answer.json()) == (404, nobodys.json())

    clock.move(hours=25)
    later = (await world.client(alice).get(f"/v1/calls/{done['callId']}")).json()
    assert later["outcome"] == "done", "the trail forgets nothing"


@pytest.mark.requirement("CMD-7", "CMD-F8", "CMD-F11")
async def test_a_preview_shows_all_of_it_and_leaves_nothing(world: World) -> None:
    browser = world.client(world.acme["alice"])
    before = db.read_now(stored)

    shown = (await run(browser, preview=True)).json()

    assert (shown["outcome"], shown["complete"]) == ("preview", True)
    assert {"title", "period"} <= set(shown["changes"][0]["fields"])
    assert db.read_now(stored) == before
    done = (await run(browser)).json()
    found = await run(browser, "expense.report.get", input={"targetRecordId": done["record"]["id"]})
    assert found.json()["result"]["title"] == TRIP["title"]


@pytest.mark.requirement("CMD-26")
async def test_a_guard_that_fails_takes_everything_back_and_owes_no_entry(world: World) -> None:
    person, before = world.person(world.acme["alice"]), db.read_now(stored)

    for raised in (CallerGone(), PermissionDenied(), RuntimeError("a bug of the guard")):

        def guard(work: Work, raised: Exception = raised) -> None:
            made = work.session.exec(select(func.count()).select_from(Report)).one()
            assert made == before[0] + 1
            raise raised

        with pytest.raises(CallerGone) as refused:
            await pipeline.execute(Call(code=CREATE, input=TRIP, principal=person, guard=guard))

        told = (refused.value.reason, refused.value.status, refused.value.advice)
        assert told == ("caller_gone", 409, "reread_state")
        assert db.read_now(stored) == before


@pytest.mark.requirement("CMD-26")
async def test_an_id_that_a_caller_chose_is_good_for_one_call_of_the_tenant(world: World) -> None:
    alice, bob = (world.person(world.acme[name]) for name in ("alice", "bob"))
    gus = world.person(world.globex["gus"])
    chosen = {"code": CREATE, "input": TRIP, "call_id": "run-7-step-3"}

    def call(who: Principal) -> Call:
        return Call(principal=who, **chosen)  # type: ignore[arg-type]

    done = await pipeline.execute(call(alice))
    before = db.read_now(stored)[:3]
    for again in (alice, bob):
        with pytest.raises(Refused) as refused:
            await pipeline.execute(call(again))
        assert (refused.value.stage, refused.value.reason) == ("effect", "key_reused")

    assert done.call_id == "run-7-step-3"
    assert db.read_now(stored)[:3] == before
    assert (await pipeline.execute(call(gus))).call_id == "run-7-step-3", "another tenant's own"
    found = await world.client(world.acme["alice"]).get("/v1/calls/run-7-step-3")
    assert found.status_code == 200


@pytest.mark.requirement("CMD-F28", "SEC-48", "SEC-T28")
async def test_odd_and_huge_bodies_are_refused_and_leave_nothing(world: World) -> None:
    browser = world.client(world.acme["alice"])
    before, wrong = db.read_now(stored)[:3], []
    head = b'{"input":{"title":"x","period":"2026-10",'
    for name, body in {
        "10 MB": head + b'"payeeName":"' + b"x" * (10 << 20) + b'"}}',
        "10,000 deep": b'{"input":{"title":' + b"[" * 10_000 + b"]" * 10_000 + b"}}",
        "1e999": head + b'"payeeName":1e999}}',
        "NaN": head + b'"payeeName":NaN}}',
        "a lone surrogate": head + rb'"payeeName":"\ud800"}}',
        "__proto__": head + b'"__proto__":{"isAdmin":true}}}',
        "__proto__ above": b'{"__proto__":{"preview":false},"input":{}}',
        "constructor": head + b'"constructor":{"prototype":{}}}}',
        "a key twice": head + b'"title":"y"}}',
        "an array": b"[]",
        "nothing": b"",
        "a number for an input": b'{"input":7}',
        "text for a version": head[:-1] + b'},"expectedVersion":"1"}',
        "beyond 2^53": head[:-1] + b'},"expectedVersion":9007199254740993}',
        "an approval that is none": b'{"approvalId":"../../x"}',
        "neither input nor approval": b"{}",
    }.items():
        answer = await browser.post(
            f"/v1/commands/{CREATE}/calls",
            content=body,
            headers={"Content-Type": "application/json", "Accept": "application/json"},
        )
        if not 400 <= answer.status_code < 500 or answer.json()["advice"] != "fix_arguments":
            wrong.append(f"{name}: {answer.status_code} {answer.text[:300]}")
        if "Traceback" in answer.text or "/app/" in answer.text:
            wrong.append(f"{name}: {answer.text[:300]}")

    assert wrong == []
    assert db.read_now(stored)[:3] == before


@pytest.mark.requirement("CMD-10", "SEC-48")
async def test_a_key_is_printable_and_short(world: World) -> None:
    browser = world.client(world.acme["alice"])
    for key in ("x" * 256, "a b"):
        answer = await run(browser, key=key)
        assert (answer.status_code, answer.json()["reason"]) == (422, "invalid_input"), key
    assert (await run(browser, key="k" * 255)).json()["outcome"] == "done"
    assert (await run(browser, key="k" * 255)).json()["outcome"] == "replayed"


@pytest.mark.requirement("CMD-F20")
async def test_the_token_of_a_user_who_is_gone_opens_nothing(world: World) -> None:
    alice = world.acme["alice"]
    agent = program(world, world.acme, alice)
    assert (await run(agent, key="before")).json()["outcome"] == "done"
    before = db.read_now(stored)[:3]

    db.transact_now(lambda work: users.disable(work, world.acme_admin, world.user(alice)))

    for answer in (
        await run(agent, key="after"),
        await run(agent, key="before"),
        await agent.get("/v1/commands"),
        await agent.get("/v1/approvals"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (401, "invalid_token")
        assert 'error="invalid_token"' in answer.headers["www-authenticate"]
    assert db.read_now(stored)[:3] == before


@pytest.mark.requirement("CMD-F21")
async def test_no_id_and_no_number_beyond_two_to_the_53rd_leaves_as_a_number(world: World) -> None:
    browser = world.client(world.acme["olga"])
    made = await run(world.client(world.acme["alice"]))
    target = made.json()["record"]["id"]
    answers = [
        made,
        await browser.get("/v1/audit"),
        await browser.get("/v1/commands"),
        await browser.get("/v1/approvals"),
        await browser.get("/v1/me"),
        await run(browser, "expense.report.get", input={"targetRecordId": target}),
        await run(browser, LIST, input={}),
    ]

    wrong = [fault for answer in answers for fault in unsafe(answer.json())]

    assert [answer.status_code for answer in answers] == [200] * len(answers)
    assert wrong == []


def unsafe(value: Any, name: str = "") -> Iterator[str]:
    """Numbers that a reader in JavaScript would get wrong, and ids that are numbers."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from unsafe(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from unsafe(item, name)
    elif isinstance(value, int) and (abs(value) > LARGEST_EXACT or name.endswith(("Id", "id"))):
        yield f"{name}: {value}"


@pytest.mark.requirement("CMD-8")
async def test_a_refusal_speaks_the_language_of_the_request_and_keeps_its_codes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = world.client(world.acme["alice"])
    problems = []
    for language in ("en", "zh-CN"):
        browser.headers["Accept-Language"] = language
        answer = await run(browser, "expense.no.such")
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["content-language"] == language
        problems.append(answer.json())

    english, chinese = problems
    assert english["type"] == chinese["type"] == "/problems/unknown_command"
    codes = ("title", "status", "stage", "reason", "advice")
    assert [english[name] for name in codes] == [chinese[name] for name in codes]
    assert "没有" in chinese["detail"]

    def busy(*_args: Any, **_more: Any) -> None:
        raise Busy

    monkeypatch.setattr(pipeline, "execute", busy)
    answer = await run(browser)
    assert (answer.status_code, answer.json()["advice"]) == (503, "retry_later")
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.requirement("SEC-51", "CMD-8")
async def test_too_many_calls_wait_and_too_many_writes_pause_the_agent(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    reader, writer = program(world, world.acme, bob), program(world, world.acme, alice)
    person = world.client(alice)

    read = [await run(reader, LIST, input={}) for _ in range(121)]
    written = [await run(writer, preview=True, key=f"k{number}") for number in range(62)]

    assert [answer.status_code for answer in read[:120]] == [200] * 120
    late = read[120]
    assert (late.status_code, late.json()["reason"]) == (429, "rate_limited")
    assert late.json()["advice"] == "retry_later"
    assert 1 <= int(late.headers["retry-after"]) <= 61
    assert [answer.status_code for answer in written[:60]] == [200] * 60
    for answer in (*written[60:], await writer.get("/v1/commands")):
        assert (answer.status_code, answer.json()["reason"]) == (403, "delegation_paused")
    paused = db.read_now(paused_of, alice.id)
    assert [(row.paused_at is not None, row.paused_why) for row in paused] == [
        (True, "too_many_writes")
    ]
    told = db.read_now(
        lambda session: session.exec(
            select(AuditEntry).where(AuditEntry.command == "identity.delegation.pause")
        ).all()
    )
    assert len(told) == 1, "once, however many calls came after it"
    assert (await run(person)).status_code == 200, "the person goes on"


@pytest.mark.requirement("SEC-51", "SEC-25")
async def test_a_token_that_stands_no_more_counts_for_nobody(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = Rates({**DEFAULTS, "call": "5/minute", "write": "2/minute"})
    monkeypatch.setattr(rates, "of_process", lambda: counts)
    alice = world.acme["alice"]
    agent, revoked = program(world, world.acme, alice), world.anonymous()
    token, family = connecting.granted(world.acme, alice, Door.V1)
    revoked.headers["Authorization"] = f"Bearer {token}"
    assert (await revoked.get("/v1/me")).status_code == 200
    connecting.end_family(alice, family)

    refused = [await run(revoked) for _ in range(7)]
    refused += [await run(revoked, preview=True) for _ in range(7)]
    refused += [await run(revoked, LIST, input={}) for _ in range(7)]
    stands = [await run(agent, key=f"k{number}") for number in range(2)]
    paused = await run(agent)
    hidden = [await run(revoked), await run(revoked, preview=True)]

    assert {each.status_code for each in (*refused, *hidden)} == {401}
    for each in (*refused, *hidden):
        assert 'error="invalid_token"' in each.headers["www-authenticate"]
    assert [each.status_code for each in stands] == [200, 200]
    assert (paused.status_code, paused.json()["reason"]) == (403, "delegation_paused")


async def test_the_call_of_an_agent_is_one_transaction_of_few_statements(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = program(world, world.acme, world.acme["alice"])
    report = (await run(agent, key="made")).json()["record"]["id"]
    change = {"targetRecordId": report, "operationType": "UPDATE"}

    async def update(number: int) -> httpx2.Response:
        sent = {**change, "title": f"Trip {number}"}
        return await run(agent, "expense.report.update", input=sent, key=f"k{number}")

    await update(1)  # what is kept for the next ones is read once
    prepared, compiled = list[Prepared](), list[str]()
    run_with = Prepared.run_with

    def note_prepared(statement: Prepared, connection: Any, values: Any) -> Any:
        prepared.append(statement)
        return run_with(statement, connection, values)

    def note_compiled(_c: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        compiled.append(statement)

    monkeypatch.setattr(Prepared, "run_with", note_prepared)
    event.listen(Engine, "before_cursor_execute", note_compiled)
    try:
        answer = await update(2)
    finally:
        event.remove(Engine, "before_cursor_execute", note_compiled)

    assert (answer.status_code, answer.json()["outcome"]) == (200, "done")
    assert len(prepared) <= (13 if db.is_sqlite() else 12)  # two of which are two in one
    assert compiled == []


def paused_of(session: Session, user_id: str) -> list[Delegation]:
    query = select(Delegation).where(
        Delegation.user_id == user_id,
        Delegation.paused_at.is_not(None),  # type: ignore[union-attr]
    )
    return list(session.exec(query))
