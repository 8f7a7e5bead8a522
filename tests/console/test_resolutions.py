"""Of an effect that may have happened a person finds out, and says; nothing is sent again."""

import pytest
from sqlmodel import col, select

from app.audit import trail, witness
from app.audit.models import AuditEntry
from app.audit.trail import NewEntry
from app.commands import external, resolution
from app.commands.external import ExternalResult
from app.commands.outbox_models import EffectState
from app.identity.principal import Principal
from app.kernel import clock, db, ids
from app.kernel.db import Work
from tests.commands import telling
from tests.people import World

REPORT = "01JDXP5Y8GZ0000000000000AB"


def unknown(world: World, who: str) -> str:
    """A critical call of somebody's whose effect may have happened; its id."""
    return db.transact_now(_unknown, world.person(world.acme[who]))


def _unknown(work: Work, person: Principal) -> str:
    effect = telling.unknown_effect(person, ids.ulid())
    effect.record_type, effect.record_id = "expense.report", REPORT
    work.session.add(effect)
    ordered = NewEntry(
        tenant_id=person.tenant_id,
        call_id=effect.call_id,
        command=effect.code,
        version=1,
        risk="L4",
        outcome="dispatched",
        channel="console",
        user_id=person.user_id,
        approved_by=person.user_id,
        approved_at=clock.now(),
        input_redacted={"amountMinor": 120_000, "iban": {"redacted": True, "length": 22}},
        target_type="expense.report",
        target_id=REPORT,
    )
    trail.append(work, ordered)
    external.put_on_record(work, effect, ExternalResult(outcome="unknown", reason="timeout"))
    return effect.call_id


def entries(call_id: str) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.call_id == call_id).order_by(col(AuditEntry.seq))
    return list(db.read_now(lambda session: session.exec(query).all()))


@pytest.mark.requirement("CMD-27", "UI-13")
async def test_who_ordered_it_is_asked_what_happened_and_answers_once(world: World) -> None:
    call_id = unknown(world, "alice")
    path = f"/calls/{call_id}/resolution"
    alice, bob = world.client(world.acme["alice"]), world.client(world.acme["bob"])
    entry = f"/audit/{entries(call_id)[-1].seq}"

    page, led = await alice.get(path), await alice.get(entry)
    foreign = [await bob.get(path), await bob.post(path, data={"finding": "happened"})]
    odd = await alice.post(path, data={"finding": "perhaps"})
    said = await alice.post(path, data={"finding": "happened"})
    late = await alice.post(path, data={"finding": "did_not"})
    after, closed = await alice.get(path), await alice.get(entry)

    for told in ("bank.transfer", "1,200.00", "No answer came in time.", "Alice Wang", REPORT):
        assert told in page.text, told
    assert "It happened" in page.text
    assert "gain" not in page.text.partition("<main")[2].partition("</main>")[0], "no retry"
    assert path in led.text
    assert [answer.status_code for answer in foreign] == [404, 404]
    assert (odd.status_code, said.status_code, late.status_code) == (422, 303, 409)
    assert "found out that it happened" in after.text
    assert "It did not" not in after.text
    assert path not in closed.text
    first, second, third = entries(call_id)
    assert [first.outcome, second.outcome, third.outcome] == ["dispatched", "unknown", "done"]
    assert (third.reason, third.user_id) == ("found_by_person", world.acme["alice"].id)
    assert third.approved_by == first.approved_by
    effect = db.read_now(external.one, world.acme.id, call_id)
    assert effect is not None
    assert effect.state == EffectState.DONE


@pytest.mark.requirement("CMD-27", "UI-13")
async def test_an_administrator_finds_it_listed_and_is_not_taken_for_who_did_it(
    world: World,
) -> None:
    call_id = unknown(world, "alice")
    ada, acme = world.acme["ada"], world.acme
    browser = world.client(ada)

    listed = await browser.get("/admin/webhooks")
    said = await browser.post(f"/calls/{call_id}/resolution", data={"finding": "did_not"})
    done = await browser.get("/admin/webhooks")

    assert f"/calls/{call_id}/resolution" in listed.text
    assert f"/audit?target={REPORT}" in listed.text
    assert said.status_code == 303
    assert call_id not in done.text
    last = entries(call_id)[-1]
    assert (last.outcome, last.user_id) == ("failed", acme["alice"].id)
    query = select(AuditEntry).where(AuditEntry.command == resolution.COMMAND)
    fact = db.read_now(lambda session: session.exec(query).one())
    assert (fact.user_id, fact.target_id) == (ada.id, call_id)
    assert fact.input_redacted == {"command": "bank.transfer.send", "finding": "did_not"}
    has_done = db.read_now(
        lambda session: witness.has_done(
            session.connection(),
            tenant_id=acme.id,
            user_id=ada.id,
            command="bank.transfer.send",
            target_type="expense.report",
            target_id=REPORT,
        )
    )
    assert not has_done
