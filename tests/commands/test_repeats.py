"""Keys and repeats: the first answer again, for whoever may still have it, and nothing twice."""

from collections.abc import Callable

import pytest
from sqlalchemy import text

from app.kernel import db
from app.kernel.db import Work
from app.packs.expenses.models import Report
from tests.commands.agents import program
from tests.commands.test_refusals import at
from tests.people import World

TOUCH = "/v1/commands/sample.report.touch/calls"


@pytest.mark.requirement("CMD-9", "CMD-F1")
async def test_who_lost_the_record_does_not_read_the_old_answer(
    samples: World, report: Callable[..., str]
) -> None:
    alice, bob = samples.acme["alice"], samples.acme["bob"]
    target = report(alice)
    body = {"input": at(target, title="secret")}
    async with samples.client(alice) as browser:
        first = await browser.post(TOUCH, json=body, headers={"Idempotency-Key": "k"})
        repeat = await browser.post(TOUCH, json=body, headers={"Idempotency-Key": "k"})
        db.transact_now(give_away, target, bob.id)
        later = await browser.post(TOUCH, json=body, headers={"Idempotency-Key": "k"})

    assert (first.json()["outcome"], repeat.json()["outcome"]) == ("done", "replayed")
    assert repeat.json()["callId"] == first.json()["callId"]
    assert (later.status_code, later.json()["reason"]) == (404, "record_not_found")
    assert "secret" not in later.text


@pytest.mark.requirement("CMD-9", "CMD-F12")
async def test_the_order_of_members_makes_no_other_call(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    target = report(alice)
    one = at(target, title="x", note="y")
    other = dict(reversed(one.items()))
    async with samples.client(alice) as browser:
        first = await browser.post(TOUCH, json={"input": one}, headers={"Idempotency-Key": "k"})
        again = await browser.post(TOUCH, json={"input": other}, headers={"Idempotency-Key": "k"})

    assert list(one) != list(other)
    assert (first.json()["outcome"], again.json()["outcome"]) == ("done", "replayed")


@pytest.mark.requirement("CMD-10", "CMD-F15")
async def test_without_a_key_the_same_call_runs_twice_for_a_person_and_not_at_all_for_an_agent(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    target = report(alice)
    body = {"input": at(target, title="again")}
    async with samples.client(alice) as browser:
        ends = [(await browser.post(TOUCH, json=body)).json() for _ in range(2)]
    async with program(samples, samples.acme, alice) as agent:
        refused = await agent.post(TOUCH, json=body)

    assert [each["outcome"] for each in ends] == ["done", "done"]
    assert ends[0]["callId"] != ends[1]["callId"]
    assert refused.json()["reason"] == "key_required"


@pytest.mark.requirement("CMD-9")
async def test_a_refused_call_frees_its_key(samples: World, report: Callable[..., str]) -> None:
    alice = samples.acme["alice"]
    target = report(alice)
    key = {"Idempotency-Key": "k"}
    async with samples.client(alice) as browser:
        refused = await browser.post(TOUCH, json={"input": at(target, title="post")}, headers=key)
        corrected = await browser.post(TOUCH, json={"input": at(target, title="ok")}, headers=key)

    assert refused.status_code == 422
    assert (corrected.status_code, corrected.json()["outcome"]) == (200, "done")


@pytest.mark.requirement("CMD-F3")
async def test_a_handler_that_names_another_record_points_nobody_to_it(
    samples: World, report: Callable[..., str]
) -> None:
    alice = samples.acme["alice"]
    target, other = report(alice), report(alice)
    async with samples.client(alice) as browser:
        done = await browser.post(
            TOUCH, json={"input": at(target, title="handler other", otherId=other)}
        )

    assert done.json()["record"]["id"] == target
    assert done.json()["undo"]["input"]["targetRecordId"] == target
    untouched = db.read_now(lambda session: session.get_one(Report, (samples.acme.id, other)))
    assert untouched.version == 1


def give_away(work: Work, target: str, to: str) -> None:
    work.session.execute(
        text("UPDATE expense_report SET owner_id = :to WHERE id = :id"), {"to": to, "id": target}
    )
