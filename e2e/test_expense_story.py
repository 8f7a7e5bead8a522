"""One report from the draft to the bank: by people in the browser, and by agents over HTTP."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.async_api import Browser, Page, expect

from e2e.conftest import Watch
from e2e.doors import Doors, demo_in
from e2e.every_page import OWNER, Demo
from tests.webhook_receiver import Receiver, listening

ALICE, BOB, FIONA, FRANK, AUDREY = "alice", "bob", "fiona", "frank", "audrey"
PAID = "expense.payment.sent"


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    """The bank."""
    with listening() as running:
        yield running


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> Iterator[Demo]:
    folder: Path = tmp_path_factory.mktemp("story")
    with demo_in(folder, ASSENT_OUTBOUND_ALLOW=receiver.pair) as running:
        yield running


@pytest.fixture
async def doors(demo: Demo, browser: Browser) -> AsyncIterator[Doors]:
    made = Doors(demo, browser)
    yield made
    await made.close()


async def opened(doors: Doors, quiet: Watch, who: str) -> Page:
    page = await doors.page(who, "light", "en", 1280)
    quiet.over(page.context)
    return page


async def tell_the_bank(doors: Doors, quiet: Watch, receiver: Receiver) -> str:
    """Let the bank hear of payments; returns the secret that signs what it gets."""
    page = await opened(doors, quiet, OWNER)
    await page.goto("/admin/webhooks/new")
    await page.get_by_label("Address").fill(receiver.url)
    await page.get_by_label("Description").fill("Bank 银行")
    await page.locator(f"input[value='{PAID}']").check()
    await page.get_by_role("button", name="Add receiver").click()
    return await page.locator("[data-copy-text]").first.inner_text()


async def run(page: Page, code: str, target: str = "", **fields: str) -> None:
    """Fill in a command's form and press its verb."""
    await page.goto(f"/commands/{code}" + (f"?target={target}" if target else ""))
    for name, value in fields.items():
        field = page.locator(f"[name='/{name}']")
        if await field.evaluate("each => each.tagName") == "SELECT":
            await field.select_option(value)
        else:
            await field.fill(value)
    await page.locator("#call button:not([hidden])").last.click()


async def assent(page: Page, path: str) -> None:
    """Read an approval to its end, type what it asks for, and press the verb."""
    await page.goto(path)
    for box in await page.locator("[data-read]").all():
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    if await page.locator("input[name=typed]").count():
        await page.locator("input[name=typed]").fill(await page.locator("[data-type]").inner_text())
    verb = page.locator("[data-arm]")
    await expect(verb).to_have_attribute("aria-disabled", "false")
    await verb.click()


@pytest.mark.requirement("CMD-17", "CMD-24", "CMD-25")
async def test_people_take_a_report_from_the_draft_to_the_bank(
    doors: Doors, quiet: Watch, demo: Demo, receiver: Receiver
) -> None:
    secret = await tell_the_bank(doors, quiet, receiver)
    alice, bob = await opened(doors, quiet, ALICE), await opened(doors, quiet, BOB)
    fiona, frank = await opened(doors, quiet, FIONA), await opened(doors, quiet, FRANK)

    await run(
        alice,
        "expense.report.create",
        title="Fair in Shenzhen",
        period="2026-11",
        payeeAccount="6222 0000 1111 2222",
    )
    await alice.wait_for_url("**/calls/*")
    report = demo.one("SELECT id FROM expense_report WHERE title = ?", "Fair in Shenzhen")
    number = demo.one("SELECT number FROM expense_report WHERE id = ?", report)
    for amount in ("120.50", "88.00"):
        await run(
            alice,
            "expense.line.add",
            report,
            spentOn="2026-11-03",
            category="travel",
            description="Train",
            amountMinor=amount,
        )
        await alice.wait_for_url("**/calls/*")
    await run(alice, "expense.report.submit", report)
    await alice.wait_for_url("**/calls/*")
    await run(bob, "expense.report.approve", report)
    await bob.wait_for_url("**/calls/*")

    await run(fiona, "expense.payment.send", report)
    await fiona.wait_for_url("**/approvals/*")
    path = fiona.url.removeprefix(demo.server.base_url)
    await expect(fiona.locator("[data-arm]")).to_have_count(0)
    await assent(frank, path)
    await expect(frank.get_by_text("Done, approved by Frank Weber")).to_be_visible()

    await heard(frank, receiver, 1)
    (event,) = [each for each in receiver.received if each.type == PAID]
    assert event.is_signed_with(secret)
    assert event.event["data"]["number"] == number
    assert event.event["data"]["amountMinor"] == 20850
    assert demo.one("SELECT state FROM expense_report WHERE id = ?", report) == "paid"

    audrey = await opened(doors, quiet, AUDREY)
    await audrey.goto(f"/audit?command=expense.payment.send&outcome=done&target={report}")
    row = audrey.locator("tr", has=audrey.locator("code", has_text="expense.payment.send"))
    await expect(row).to_contain_text("Fiona Fang")
    await expect(row).to_contain_text("Frank Weber")
    await row.get_by_role("link").first.click()
    await audrey.wait_for_url("**/audit/*")
    await expect(audrey.locator("main")).to_contain_text(path.rpartition("/")[2])


@pytest.mark.requirement("CMD-11", "CMD-14", "CMD-F13")
async def test_agents_take_the_same_way_and_a_person_assents_in_the_browser(
    doors: Doors, quiet: Watch, demo: Demo, receiver: Receiver
) -> None:
    if not receiver.received:
        await tell_the_bank(doors, quiet, receiver)
    before = len([each for each in receiver.received if each.type == PAID])
    alice, bob, pays = (program(demo, who) for who in (ALICE, BOB, FIONA))

    made = await alice(
        "expense.report.create",
        title="Taxi 出租车",
        period="2026-11",
        payeeAccount="6222 3333 4444 5555",
    )
    target = {"targetRecordId": made["record"]["id"], "operationType": "UPDATE"}
    await alice(
        "expense.line.add",
        **target,
        spentOn="2026-11-04",
        category="transport",
        description="Taxi",
        amountMinor=9900,
    )
    await alice("expense.report.submit", **target)
    await bob("expense.report.approve", **target)
    refused = await pays("expense.payment.send", expect_status=428, **target)
    assert (refused["stage"], refused["reason"]) == ("approval_check", "approval_required")
    assert refused["advice"] == "ask_user"

    frank = await opened(doors, quiet, FRANK)
    await assent(frank, f"/approvals/{refused['approvalId']}")
    await expect(frank.locator("[data-arm]")).to_have_count(0)
    done = await pays("expense.payment.send", approval=refused["approvalId"], **target)
    again = await pays(
        "expense.payment.send", approval=refused["approvalId"], expect_status=409, **target
    )

    assert done["outcome"] == "done"
    assert done["record"]["state"] == "paid"
    assert again["reason"] in {"approval_consumed", "illegal_state"}
    await heard(frank, receiver, before + 1)
    payments = "SELECT count(*) FROM expense_payment WHERE report_id = ?"
    assert demo.one(payments, made["record"]["id"]) == "1"


async def heard(page: Page, receiver: Receiver, times: int) -> None:
    """Wait until the bank has heard of so many payments, and of no more."""
    while sum(each.type == PAID for each in receiver.received) < times:
        await page.reload()
    assert sum(each.type == PAID for each in receiver.received) == times


def program(demo: Demo, who: str) -> Any:
    """Calls commands over HTTP with the token of the agent that acts for somebody."""
    agent = ("--agent", "expenses", "--audience", "api")
    token = demo.server.command("token", "--user", f"acme/{who}", *agent).strip()
    count = 0

    async def call(
        code: str, *, approval: str = "", expect_status: int = 200, **input: Any
    ) -> dict[str, Any]:
        nonlocal count
        count += 1
        body = {"input": input, **({"approvalId": approval} if approval else {})}
        headers = {"Authorization": f"Bearer {token}", "Idempotency-Key": f"{who}-{count}"}
        async with httpx2.AsyncClient(base_url=demo.server.base_url, timeout=30) as client:
            answer = await client.post(f"/v1/commands/{code}/calls", json=body, headers=headers)
        assert answer.status_code == expect_status, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return call
