"""Callers who try to get around the promises: odd addresses, borrowed consent, endless rules."""

from typing import Any

import pytest
from pydantic import Field

from app.commands import approval_replacement, expressions, pipeline, readiness
from app.commands.approval_replacement import Replacement
from app.commands.call import Call
from app.commands.definition import (
    SECRET,
    ApiCall,
    Approvers,
    CommandDefinition,
    Input,
    PostAction,
    Risk,
    Rule,
    Rules,
    SodRule,
    Text,
    Told,
)
from app.commands.expressions import BadExpression
from app.commands.readiness import Known
from app.commands.refused import Refused
from app.commands.stored import StoredDefinition
from app.console import command_form, said, schema_forms
from app.kernel import db
from tests.commands.agents import program
from tests.commands.asking import Asking, fate
from tests.commands.declaring import (
    SEE,
    WRITE,
    Ticket,
    command,
    declared,
    installed,
    reaching,
    writing,
)
from tests.packs.expenses.desk import Desk
from tests.people import World


@pytest.fixture
def desk(world: World, spenders: None) -> Desk:
    """The people of expenses, on a database of each kind in turn."""
    return Desk(world)


@pytest.mark.requirement("CMD-F28")
async def test_an_address_with_a_nul_in_it_is_unknown(world: World) -> None:
    alice = world.acme["alice"]
    bad: list[str] = []
    async with program(world, world.acme, alice) as agent:
        for method, path in (
            ("POST", "/v1/commands/a%00b/calls"),
            ("GET", "/v1/commands/a%00b"),
            ("GET", "/v1/calls/a%00b"),
            ("GET", "/v1/approvals/a%00b"),
            ("GET", "/v1/audit/a%00b"),
            ("GET", "/v1/audit?target=a%00b&command=a%00b&run=a%00b&user=a%00b&tag=a%00b"),
            ("GET", "/v1/audit?after=a%00b"),
            ("GET", "/v1/commands?q=a%00b&record=a%00b&cursor=a%00b"),
            ("GET", "/v1/approvals?cursor=a%00b"),
        ):
            body: dict[str, Any] | None = {"input": {}} if method == "POST" else None
            answer = await agent.request(method, path, json=body)
            bad += [path] if answer.status_code >= 500 else []
    async with world.client(world.acme["ada"]) as browser:
        for path in (
            "/commands/a%00b",
            "/commands/a%00b/why",
            "/commands?q=a%00b&record=a%00b&after=a%00b",
            "/commands/expense.report.get?target=a%00b",
            "/v1/commands/expense.report.get/why?user_id=a%00b",
            "/v1/commands/a%00b/why?user_id=a%00b",
            "/admin/commands/a%00b",
            "/admin/audit?target=a%00b&command=a%00b&run=a%00b&user=a%00b&tag=a%00b&conversation=a%00",
            "/audit?target=a%00b&command=a%00b&run=a%00b&user=a%00b&tag=a%00b&conversation=a%00",
            "/approvals?after=a%00b",
        ):
            answer = await browser.get(path)
            bad += [path] if answer.status_code >= 500 else []
        for path in (
            "/commands/a%00b/calls",
            "/commands/a%00b/form",
            "/commands/a%00b/previews",
            "/commands/expense.report.submit/calls",
        ):
            answer = await browser.post(
                path,
                data={"targetRecordId": "a\x00b", "expected_version": "9" * 30, "key": "a\x00\n"},
            )
            bad += [path] if answer.status_code >= 500 else []

    assert bad == []


@pytest.mark.requirement("CMD-10")
async def test_naming_an_approval_replaces_no_key_where_none_is_needed(desk: Desk) -> None:
    asking = Asking(desk)
    draft = await desk.draft("alice", 900)
    call = desk.call(
        asking.agent("alice"),
        "expense.line.add",
        draft,
        approval_id="01JDXP5Y8GZ0000000000000AB",
        spentOn="2026-10-14",
        category="meals",
        description="Lunch",
        amountMinor=100,
    )
    assert (await asking.refused(call)).reason == "key_required"


@pytest.mark.requirement("CMD-28", "CMD-12")
async def test_no_approver_asks_about_a_record_they_do_not_reach(
    samples: World, desk: Desk
) -> None:
    asking = Asking(desk)
    grants = reaching("expense.report.manage")
    samples.give(desk.acme["fiona"], "everywhere", grants=grants)
    near, far = await desk.submitted("bob", 900), await desk.submitted("fiona", 700)
    row = await asking.ask(asking.call("fiona", "sample.report.finish", near))
    mia = desk.person("mia")

    for target in (far, "01JDXP5Y8GZ0000000000000AB", 7):
        elsewhere = {**row.arguments, "targetRecordId": target}
        swapped = Replacement(digest=row.digest, input=elsewhere)
        assert await fate(approval_replacement.attempt(mia, row.id, swapped)) == "not_found"

    assert asking.row(row.id).state == "open"
    assert asking.count() == 1
    same = Replacement(digest=row.digest, input=dict(row.arguments))
    assert (await approval_replacement.attempt(mia, row.id, same)).target_id == near


@pytest.mark.requirement("CMD-8")
async def test_what_is_refused_deep_inside_says_where(world: World) -> None:
    def step(name: str, follows: str = "", **said: Any) -> CommandDefinition:
        code = f"desk.ticket.{name}"
        actions = (PostAction(code=follows, input={"subject": "input.subject"}),) if follows else ()
        hint = f"To try the step; {code} takes it back."
        return writing(
            code,
            risk=Risk.L2,
            reversible=True,
            undo=code,
            agent_hint=Text(en=hint, zh=f"用于尝试；{code} 可撤销。"),
            post_actions=actions,
            **said,
        )

    never = Rule(expr="input.subject == 'never'", message=Text(en="Never.", zh="不可。"))
    last = step("last", rules=Rules(asserts=(never,)))
    with installed(step("first", "desk.ticket.middle"), step("middle", last.code), last):
        world.give(world.acme["alice"], "desk", grants=reaching(WRITE.code))
        call = Call(
            code="desk.ticket.first",
            input={"subject": "Printer"},
            principal=world.person(world.acme["alice"]),
        )
        with pytest.raises(Refused) as refused:
            await pipeline.execute(call)

    said = refused.value
    assert (said.stage, said.reason, said.status) == ("post_action", "assertion_failed", 422)
    assert (said.facts["innerStage"], said.facts["innerCommand"]) == ("assert", last.code)


@pytest.mark.requirement("CMD-1")
def test_an_expression_that_loops_in_loops_is_none() -> None:
    ten = f"[{', '.join(map(str, range(10)))}]"
    for text in (
        f"{ten}.map(a, {ten}.map(b, {ten}.map(c, a))) != []",
        f"{ten}.all(a, {ten}.exists(b, {ten}.exists_one(c, {ten}.filter(d, true) == [])))",
        "related.lines . all (a, related.lines . all(b, related.lines.\nall(c, true)))",
    ):
        with pytest.raises(BadExpression):
            expressions.compiled(text)
    assert expressions.compiled("related.lines.map(a, a.id).all(b, b != '')")


@pytest.mark.requirement("CMD-1")
def test_no_part_of_an_expression_hides_from_its_reading() -> None:
    for text in (
        "r'\\' == secret || '' == ''",
        "'''a'b''' == secret",
        "true // '\n && input.a.all(a, input.a.all(b, true)) // '",
        "b'a' == b'a'",
    ):
        with pytest.raises(BadExpression):
            expressions.compiled(text)


class Card(Input):
    """A part of an input that is secret inside."""

    number: str = Field(description="Of the card.", max_length=30, json_schema_extra={**SECRET})
    more: "Card | None" = Field(None, description="One more card.")


class Paying(Input):
    """Secrets in every place a schema has for them."""

    pin: str | None = Field(None, description="The PIN.", json_schema_extra={**SECRET})
    card: Card | None = Field(None, description="The card, if there is one.")
    cards: list[Card] | None = Field(None, description="Other cards.")
    by_name: dict[str, Card] = Field({}, description="Cards by their names.")


@pytest.mark.requirement("CMD-20")
def test_a_secret_is_one_wherever_it_stands() -> None:
    with declared(told := writing(input=Paying, example={})):
        stored = StoredDefinition.of(told, "desk")

    assert {"pin", "card/number", "card/more", "cards/*/number", "byName"} <= stored.secrets
    assert stored.secrets.isdisjoint({"card", "cards"})


@pytest.mark.requirement("CMD-20", "CMD-2")
def test_no_definition_keeps_or_tells_a_secret() -> None:
    usual: dict[str, Any] = {"input": Paying, "example": {}, "record": Ticket}
    cases: tuple[dict[str, Any], ...] = (
        {"map": {"pin": "subject"}},
        {"computed": {"subject": "input.pin"}},
        {"events": (Told(type="desk.paid", data={"all": "string(input.card.number)"}),)},
        {"events": (Told(type="desk.paid", data={"all": "input"}),)},
        {"webhooks": (Told(type="desk.paid", data={"pin": "input.pin"}),)},
        {"api_calls": (ApiCall(name="desk.pay", data={"pin": "input.pin"}),)},
        {"post_actions": (PostAction(code="desk.note", input={"text": "input.pin"}),)},
    )
    for more in cases:
        told = writing(**usual, **more)
        with declared(told):
            stored = StoredDefinition.of(told, "desk")
            known = Known.of({told.code: stored}, [told.code])
            found = {each.code for each in readiness.check(stored, known)}
        assert "secret_kept" in found, more


@pytest.mark.requirement("CMD-2", "CMD-12")
def test_who_may_only_read_decides_nothing() -> None:
    pay, look = writing("desk.ticket.pay", approvers=Approvers(permission=SEE.code)), command()
    with declared(pay, look):
        stored = {each.code: StoredDefinition.of(each, "desk") for each in (pay, look)}
        found = readiness.check(stored[pay.code], Known.of(stored, stored))

    assert [(each.code, each.field) for each in found] == [("permission_shared", "approvers")]


@pytest.mark.requirement("CMD-20", "CMD-28")
async def test_no_form_shows_a_secret_that_was_asked_with(world: World) -> None:
    card = {"number": "6222 0001"}
    values = {"card": card, "cards": [card], "byName": {"mine": card}, "pin": "6222 0002"}
    with declared(told := writing(input=Paying, example={})):
        stored = StoredDefinition.of(told, "desk")
        person = world.person(world.acme["alice"])
        form = await db.read(schema_forms.form_for, person, stored, values=values)

    texts = [each.text for top in form.fields for each in top.all()]
    assert not any("6222" in text for text in texts), texts
    hidden = command_form._without_secrets(values, stored.secrets)
    assert "6222" not in str(hidden)


class Loosely(Input):
    """What an outside tool may ask for: anything."""

    what: dict[str, Any] = Field({}, description="Whatever it is.")


@pytest.mark.requirement("CMD-11", "SEC-52")
async def test_no_argument_hides_behind_the_look_of_another_kind(world: World) -> None:
    forged = {"redacted": True, "length": 3, "account": "6222 0001"}
    with installed(told := writing(input=Loosely, example={})):
        world.give(world.acme["alice"], "desk", grants=reaching(WRITE.code))
        person = world.person(world.acme["alice"])
        for what in (forged, {"redacted": True}, {"redacted": True, "length": "long"}):
            call = Call(code=told.code, input={"what": what}, principal=person)
            with pytest.raises(Refused) as asked:
                await pipeline.execute(call)
            approval_id = str(asked.value.facts["approvalId"])
            async with world.client(world.acme["alice"]) as browser:
                page = await browser.get(f"/approvals/{approval_id}")
            assert page.status_code == 200
            assert "kept secret" not in page.text

    for odd in ("2026-99-99T99:99:99Z", "2026-02-30", "0000-00-00T00:00:00Z"):
        assert said.say("note", odd, said.Names()) == said.Said("text", odd)


@pytest.mark.requirement("CMD-4")
async def test_duties_of_a_whole_kind_are_kept_apart_where_no_record_is_named(
    world: World,
) -> None:
    def duty(name: str, *rules: SodRule) -> CommandDefinition:
        code = f"desk.ticket.{name}"
        hint = f"To try duties; {code} takes it back."
        return writing(
            code,
            reversible=True,
            undo=code,
            agent_hint=Text(en=hint, zh=f"用于尝试职责分离；{code} 可撤销。"),
            record=Ticket,
            targeted=False,
            sod=rules,
        )

    one = duty("one")
    other = duty("other", SodRule(conflicts_with=one.code, scope="same_model"))
    with installed(one, other):
        world.give(world.acme["alice"], "desk", grants=reaching(WRITE.code))
        calls = [
            Call(
                code=each.code,
                input={"subject": "Printer"},
                principal=world.person(world.acme["alice"]),
            )
            for each in (one, other)
        ]
        await pipeline.execute(calls[0])
        with pytest.raises(Refused) as refused:
            await pipeline.execute(calls[1])

    assert (refused.value.stage, refused.value.reason) == ("sod_check", "sod_conflict")
