"""Requests of agents for a person's word, with everything that goes wrong around the click."""

import asyncio
import json
import re
from collections.abc import Iterator

import pytest
from playwright.async_api import Locator, Page, expect

from app.commands import approval_closing, approval_warning
from app.commands.approval_models import Approval
from app.kernel import db
from app.runs import ending
from app.runs.models.scripted import Call, Script, Step, Story, register
from app.runs.states import RunState
from e2e.conftest import Axe, PageFor
from e2e.scene import ALICE, Scene, deny, path_of, read, remind, scene, verb
from tests.commands.asking import SEND
from tests.runs.playing import playing, told

REMIND_CODE = "expense.report.remind"
AGAIN = Call("send_message", {"text": "I am here."})
ODD = "He said \"no\"\nand 'never', <b>twice</b> 🙂 — 不行。"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scene(tmp_path_factory.mktemp("decisions")) as made:
        yield made


@pytest.fixture
async def played(served: Scene) -> Scene:
    await served.over()
    return served


def said(page: Page, text: str) -> Locator:
    """A message in a conversation."""
    return page.locator("#messages").get_by_text(text, exact=True)


async def is_free(page: Page) -> None:
    """A card says how it ended, and leaves nothing behind that cannot be pressed."""
    await expect(verb(page)).to_have_count(0)
    await expect(page.locator("form[data-decision]")).to_have_count(0)
    await expect(page.locator("article :is(:disabled, [aria-busy=true])")).to_have_count(0)


@pytest.mark.requirement("CON-23", "CON-24", "UI-78", "UI-74")
async def test_pressed_twice_on_a_slow_network_it_is_one_decision(
    played: Scene, page_for: PageFor
) -> None:
    control, before = played.house.control, len(played.stage.done("expense.report.discard"))
    for width in 1280, 320:
        asked = await played.asks_to_discard(Step())
        page = await played.page(page_for, path_of(asked), width=width)
        posted = f"{path_of(asked)}/decision"
        control.stream("hold", path=posted)
        await read(page)
        if width == 1280:
            await verb(page).dblclick()
        else:
            await verb(page).scroll_into_view_if_needed()
            box = await verb(page).bounding_box()
            assert box
            at = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
            await page.touchscreen.tap(*at)
            await page.touchscreen.tap(*at)

        form = page.locator("form[data-decision=approve]")
        await expect(verb(page)).to_be_disabled()
        await expect(form).to_have_attribute("aria-busy", "true")
        control.release(posted)
        await expect(page.locator("[id$=-state]")).to_contain_text("Approved by Alice")
        await is_free(page)
        assert len(control.asked(posted)) == 1
        await played.stage.play()
        await expect(page.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")
        await page.context.close()
    assert len(played.stage.done("expense.report.discard")) == before + 2


@pytest.mark.requirement("CON-25", "CON-27", "CON-29", "UI-66")
async def test_who_comes_late_reads_in_the_place_of_the_buttons_how_it_ended(
    played: Scene, page_for: PageFor
) -> None:
    control = played.house.control
    asked = await played.asks_to_discard(Step())
    first = await played.page(page_for, path_of(asked))
    control.stream("hang")  # the other one hears of nothing
    second = await page_for(played.house.base_url)
    await played.house.sign_in(second, played.house.world.acme["alice"])
    await second.goto(path_of(asked))
    await read(first)
    await verb(first).click()
    await expect(first.locator("[id$=-state]")).to_contain_text("Approved by Alice")

    async with second.expect_response("**/decision") as answered:
        await deny(second, "Too late")
    assert (await answered.value).status == 409
    notice = second.locator("article .notice")
    await expect(notice).to_contain_text("closed already")
    await expect(notice).to_contain_text("Approved by Alice")
    await expect(notice).to_be_focused()
    await expect(second.locator("[id$=-state]")).to_contain_text("Approved by Alice")
    await is_free(second)
    assert (played.row(asked).state, played.row(asked).reason) == ("approved", None)
    control.stream("ok")
    await played.stage.play()
    assert played.row(asked).state == "consumed"

    asked = await played.asks_to_discard()
    posted = f"{path_of(asked)}/decision"
    await played.go(first, path_of(asked))
    await played.go(second, path_of(asked))
    await read(second)
    control.stream("hold", path=posted)
    await second.bring_to_front()
    await verb(second).click()
    await expect(verb(second)).to_be_disabled()
    await played.stage.stop()  # while the click is on its way
    await expect(first.locator("[id$=-state]")).to_contain_text("Cancelled: the run was stopped")
    await is_free(first)
    control.release(posted)
    await expect(second.locator("article .notice")).to_contain_text("the run was stopped")
    await is_free(second)
    assert played.row(asked).state == "cancelled"


@pytest.mark.requirement("CON-26", "CON-28", "CON-30", "UI-80", "UI-82")
async def test_nobody_decides_in_time_while_the_agent_is_busy(
    played: Scene, page_for: PageFor
) -> None:
    stage = played.stage
    report = await stage.desk.submitted("alice", 5_000)
    after = Step(check=told('\\"outcome\\":\\"expired\\"'))
    asks = Story("Nudge", (Step(calls=[remind(report)]), after))
    model = register("loop", Script(stories=(asks, Story("Think", (Step(gate="thought"),)))))
    await stage.tell("Nudge them")
    [asked] = stage.open_approvals()
    stage.say("alice", "expenses", "Think hard", thread_id="another")
    async with played.at_work():
        await asyncio.wait_for(model.gate("thought").reached.wait(), 60)
        page = await page_for(played.house.base_url)
        await page.clock.install()
        await played.house.sign_in(page, played.house.world.acme["alice"])
        await played.go(page, path_of(asked))
        talk = await played.page(page_for, played.talk)
        countdown = page.locator("article .countdown")

        await page.clock.pause_at(await page.evaluate("Date.now() / 1_000 + 530"))
        await expect(countdown).to_contain_text("(1:")
        await expect(countdown).not_to_have_class(re.compile("soon"))
        await page.clock.run_for(15_000)
        await expect(page.locator("#status")).to_have_text("One minute left to decide.")
        await expect(countdown).to_have_class(re.compile("soon"))
        stage.asking.set(asked.id, opened_at=played.in_s(-540), expires_at=played.in_s(58))
        assert db.transact_now(approval_warning.warn_due) == 1
        assert db.transact_now(approval_warning.warn_due) == 0  # it is said once
        await expect(talk.locator("#status")).to_contain_text(
            "One minute left to decide: Remind approver EXP-"
        )

        left = re.search(r"\(0:(\d\d)\)", await countdown.inner_text())
        assert left
        await page.clock.run_for((int(left[1]) - 1) * 1_000)
        await expect(verb(page)).to_be_visible()
        await page.clock.run_for(2_000)
        for control in (verb(page), page.locator("[data-deny]"), page.locator("[data-edit]")):
            await expect(control).to_be_hidden()
        await expect(page.locator("#status")).to_have_text("Expired; it did not run.")
        assert stage.runs()[-1].state == "running"

        stage.asking.set(asked.id, expires_at=played.in_s(-1))
        db.transact_now(approval_closing.expire_due)
        await page.clock.resume()  # frames are painted by a timer
        await expect(page.locator("[id$=-state]")).to_contain_text("Expired; it did not run")
        await is_free(page)
        card = talk.locator(".tool", has_text="Remind approver")
        await expect(card.locator("summary")).to_contain_text("Expired")
        await expect(card.locator(".approval-card")).to_contain_text("Expired; it did not run")
        model.gate("thought").open()
        await expect(talk.locator(".strip")).to_have_count(0)

    [result] = stage.results(asked.run_id)
    assert result["outcome"] == "expired"
    [entry] = [each for each in stage.asking.entries(asked.id) if each.outcome != "refused"]
    assert (entry.outcome, entry.reason) == ("expired", "time")
    await page.goto(f"/audit/{entry.seq}")
    texts = [await each.locator("main").inner_text() for each in (page, talk)]
    assert not re.search("(?i)denied|reject", " ".join([*texts, json.dumps(result)]))
    assert stage.done("expense.report.remind") == []


def keyed(text: str) -> list[str]:
    """The keys that write a text; a line break is not Enter alone, which sends."""
    return ["Shift+Enter" if each == "\n" else each for each in text]


@pytest.mark.requirement("CON-32", "CON-33", "CON-36", "CON-37", "UI-74", "UI-75")
async def test_whoever_writes_decides_nothing_and_loses_nothing(
    played: Scene, page_for: PageFor
) -> None:
    stage = played.stage
    report = await stage.desk.submitted("alice", 5_000)
    model = playing(Step(calls=[remind(report)], gate="asks"), Step())
    stage.say("alice", "expenses", "Nudge them")
    async with played.at_work():
        await asyncio.wait_for(model.gate("asks").reached.wait(), 60)
        page = await played.page(page_for, played.talk)
        box = page.locator("#composer-text")
        review = page.get_by_role("link", name="Review…")
        draft = "yes 1\n2 approve y\n\n ok"
        await box.focus()
        for at, key in enumerate(keyed(draft)):
            await page.keyboard.press(key)
            if at == 4:
                model.gate("asks").open()
            if at == 12:
                await expect(review).to_be_visible()
        await expect(box).to_have_value(draft)
        await expect(box).to_be_focused()
        for send in "Control+Enter", "Meta+Enter":
            await page.keyboard.press(send)
            await expect(box).to_have_value("")
            await page.keyboard.type(f"After {send}")
        await expect(said(page, "After Control+Enter")).to_be_visible()
        [asked] = stage.open_approvals()
        assert asked.rev == 1

        for _ in range(5):
            await page.keyboard.press("ArrowLeft")
        await review.focus()
        for key in "Enter", "Enter", "Space", "y", "1", "Enter":  # most of them while it loads
            await page.keyboard.press(key)
        await page.wait_for_url(f"**{path_of(asked)}")
        for key in "Enter", "Space", "y", "a", "1", "Control+Enter":
            await page.keyboard.press(key)
        await verb(page).focus()
        assert played.row(asked).rev == 1
        await page.go_back()
        await expect(box).to_have_value("After Meta+Enter")
        assert await box.evaluate("each => [each.selectionStart, each.selectionEnd]") == [11, 11]
        assert played.row(asked).rev == 1


@pytest.mark.requirement("CON-33", "CON-34", "UI-77")
async def test_the_press_that_brings_the_window_back_only_does_that(
    played: Scene, page_for: PageFor
) -> None:
    asked = await played.asks_to_discard(Step())
    page = await page_for(played.house.base_url)
    await page.clock.install()
    await page.add_init_script(
        "window.away = false; Document.prototype.hasFocus = () => !window.away"
    )
    await played.house.sign_in(page, played.house.world.acme["alice"])
    await page.clock.pause_at(await page.evaluate("Date.now() / 1_000 + 1"))
    await page.goto(path_of(asked))
    for box in await page.locator("[data-read]").all():
        await box.evaluate("each => each.scrollTo(0, each.scrollHeight)")
    for press in "Enter", "Space":  # before anybody can have seen it
        await verb(page).press(press)
    await expect(verb(page)).to_have_attribute("aria-disabled", "true")
    await page.clock.run_for(2_000)
    await expect(verb(page)).to_have_attribute("aria-disabled", "false")

    for armed in False, True:
        await page.evaluate("away = true; dispatchEvent(new Event('blur'))")
        await expect(verb(page)).to_have_attribute("aria-disabled", "true")
        await page.evaluate("away = false; dispatchEvent(new Event('focus'))")
        if armed:
            await page.clock.run_for(2_000)
            await expect(verb(page)).to_have_attribute("aria-disabled", "false")
        await verb(page).click(force=True)
        await expect(page.locator("#status")).to_contain_text("One moment")
        await page.evaluate("document.getElementById('status').textContent = ''")
        await page.clock.run_for(1)  # what follows the press
        assert played.row(asked).state == "open"
    await page.clock.run_for(2_000)
    await verb(page).click()
    await expect(page.locator("[id$=-state]")).to_contain_text("Approved by Alice")


EDITING = ("Home", "End", "Backspace", "Delete", "Control+A", "Control+Z", "Control+Y")
ACTING = ("Enter", "Control+Enter", "Meta+Enter", "Escape", "Alt+Enter")


@pytest.mark.requirement("CON-35", "UI-74")
async def test_keys_in_a_field_write_and_do_nothing_else(played: Scene, page_for: PageFor) -> None:
    stage = played.stage
    report = await stage.desk.approved("alice", 2_000)
    payment = await stage.asking.ask(stage.asking.call("fiona", SEND, report))
    frank = await played.page(page_for, path_of(payment), "frank")
    asked = await played.asks_to_remind(message="Please")
    page = await played.page(page_for, path_of(asked))
    await page.locator("summary", has_text="Deny").click()
    edit = await played.page(page_for, f"{path_of(asked)}/replacement")
    other = await played.page(page_for, f"{path_of(payment)}/replacement", "frank")

    for field in (
        frank.locator("input[name=typed]"),
        page.locator("textarea[name=reason]"),
        edit.locator("[name='/message']"),
        other.locator("input[name='/payeeAccount']"),
    ):
        own = field.page
        at = own.url
        for key in ACTING:  # before anything is written, when all would be in order
            await field.press(key)
        await field.press_sequentially("a b")
        for key in (*EDITING, *ACTING, "d", "e", "j", "1", "y"):
            await field.press(key)
        await expect(field).to_be_focused()
        await expect(field).to_have_value(re.compile("dej1y"))
        await own.evaluate("new Promise(done => setTimeout(done))")
        assert own.url == at
        for row in asked, payment:
            assert played.row(row).rev == 1


SHOWS_ITS_END = """(box) => {
  const range = document.createRange();
  range.selectNodeContents(box.querySelector("tr:last-child > td"));
  const end = [...range.getClientRects()].at(-1), { top, bottom } = box.getBoundingClientRect();
  return end.top >= top && end.bottom <= bottom && end.bottom <= innerHeight;
}"""


@pytest.mark.requirement("CON-38", "CON-39", "UI-72", "UI-73")
async def test_a_huge_value_is_read_to_its_end_beside_buttons_that_stay(
    played: Scene, page_for: PageFor, axe: Axe
) -> None:
    asked = await played.asks_to_remind()
    kept = played.row(asked).arguments
    huge = "".join(f"word{number:05} " for number in range(499)) + "and ended."
    assert len(huge) == 5_000
    played.stage.asking.set(asked.id, arguments={**kept, "message": huge})
    page = await played.page(page_for, path_of(asked), width=320)
    await page.set_viewport_size({"width": 320, "height": 568})
    await page.reload()
    assert await axe(page) == []
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    box = page.get_by_role("region", name="Arguments", exact=True)
    assert huge in " ".join((await box.inner_text()).split())

    buttons = (page.locator("summary", has_text="Deny"), page.locator("[data-edit]"), verb(page))
    for _ in range(40):
        for button in buttons:
            await expect(button).to_be_in_viewport(ratio=1)
        await page.keyboard.press("Tab")
        if await box.evaluate("each => each === document.activeElement"):
            break
    await expect(box).to_be_focused()
    await expect(page.locator("[data-missing]")).to_contain_text("to their end first")
    await page.keyboard.press("End")
    for other in await page.locator("[data-read]").all():
        await other.focus()
        await page.keyboard.press("End")
    await expect(verb(page)).to_have_attribute("aria-disabled", "false")
    assert await box.evaluate(SHOWS_ITS_END)
    for button in buttons:
        await expect(button).to_be_in_viewport(ratio=1)

    for nothing in "", " \u2800\u200b":
        played.stage.asking.set(asked.id, arguments={**kept, "targetRecordId": nothing})
        await page.reload()
        await expect(page.locator("article .notice")).to_contain_text("what is empty")
        await expect(verb(page)).to_have_count(0)
        await expect(page.locator("summary", has_text="Deny")).to_be_visible()
        assert await axe(page) == []


@pytest.mark.requirement("CON-41", "CON-58", "UI-67")
async def test_a_no_and_its_reason_arrive_as_written_and_the_agent_goes_on(
    played: Scene, page_for: PageFor
) -> None:
    thanks = Call("send_message", {"text": "Then I leave it."})
    asked = await played.asks_to_remind(Step(calls=[thanks]), Step(), Step(calls=[AGAIN]), Step())
    page = await played.page(page_for, path_of(asked))
    talk = await played.page(page_for, played.talk)

    await deny(page, ODD)
    await expect(page.locator("article blockquote")).to_have_text(ODD, use_inner_text=True)
    async with played.at_work():
        await expect(said(talk, "Then I leave it.")).to_be_visible()
        card = talk.locator(".tool", has_text="Remind approver").last
        await expect(card.locator("summary")).to_contain_text("Denied")
        await expect(talk.locator(".strip")).to_have_count(0)
        await talk.locator("#composer-text").fill("And now?")
        await talk.keyboard.press("Control+Enter")
        await expect(said(talk, "I am here.")).to_be_visible()

    [result] = [each for each in played.stage.results() if each["outcome"] == "denied"]
    assert (result["by"], result["reason"]) == (ALICE, ODD)
    assert played.row(asked).reason == ODD
    assert [run.state for run in played.stage.runs()[-2:]] == ["completed", "completed"]


@pytest.mark.requirement("CON-31", "CON-43", "CON-45")
async def test_a_yes_is_not_done_and_counts_for_one_call_that_may_fail(
    played: Scene, page_for: PageFor
) -> None:
    stage, desk = played.stage, played.stage.desk
    report, before = await desk.submitted("alice", 5_000), len(stage.done(REMIND_CODE))
    playing(*[Step(calls=[remind(report)]) for _ in range(3)])
    await stage.tell("Nudge")
    first = stage.open_approvals()[-1]
    page = await played.page(page_for, path_of(first))
    talk = await played.page(page_for, played.talk)
    cards = talk.locator(".approval-card")

    await read(page)
    await verb(page).click()
    for where in page.locator("[id$=-state]"), cards.last:  # nobody works yet
        await expect(where).to_contain_text(f"Approved by {ALICE}, starting")
        await expect(where).not_to_contain_text("Done")
    await desk.run("mia", "expense.report.reject", report, reason="Look again")
    await desk.run("mia", "expense.report.reopen", report)
    await stage.play()
    failed = re.compile(f"Approved by {ALICE}, then refused at")
    await expect(page.locator("[id$=-state]")).to_contain_text(failed)
    await expect(page.get_by_role("link", name="Ask again")).to_be_visible()
    await expect(card_of(talk, first)).to_contain_text(failed)
    await expect(cards.last).to_contain_text("Waiting for you")

    second = stage.open_approvals()[-1]
    assert second.id != first.id
    await played.go(page, path_of(second))
    form = page.locator("form[data-decision=approve]")
    names = await form.evaluate("form => [...form.elements].map(each => each.name).filter(Boolean)")
    assert sorted(names) == ["_csrf", "digest", "nonce", "verdict"]
    await read(page)
    await verb(page).click()
    await expect(page.locator("[id$=-state]")).to_contain_text("starting")
    await stage.play()
    await expect(page.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")
    await expect(cards.last).to_contain_text("Waiting for you")  # the very same once more
    third = stage.open_approvals()[-1]
    assert third.id not in (first.id, second.id)
    await played.go(page, path_of(third))
    await expect(page.get_by_text("You approved such a call before")).to_be_visible()
    await expect(page.get_by_text("It is asked each time.")).to_be_visible()
    assert len(stage.done(REMIND_CODE)) == before + 1


@pytest.mark.requirement("CON-40", "UI-69")
async def test_a_message_during_a_request_waits_and_both_ways_out_work(
    played: Scene, page_for: PageFor
) -> None:
    stage, before = played.stage, len(played.stage.done(REMIND_CODE))
    asked = await played.asks_to_remind(Step(check=told("Wait for me")))
    talk = await played.page(page_for, played.talk)
    chips = talk.locator("#messages .input-chip")
    async with played.at_work():
        await talk.locator("#composer-text").fill("Wait for me: ok, 同意, approve")
        await talk.keyboard.press("Control+Enter")
        await expect(chips.last).to_contain_text("waits for your decision")
        assert played.row(asked).rev == 1
        await chips.last.get_by_role("button", name="withdraw the request").click()
        await expect(talk).to_have_url(re.compile("/runs/"))
        await played.go(talk, played.talk)
        await expect(chips.last).to_contain_text("used")
        withdrawn = talk.locator(".approval-card").last
        await expect(withdrawn).to_contain_text(f"Withdrawn by {ALICE}")
    assert played.row(asked).state == "superseded"
    assert len(stage.done(REMIND_CODE)) == before

    asked = await played.asks_to_remind(Step(check=told("Later is fine")))
    async with played.at_work():
        await talk.locator("#composer-text").fill("Later is fine")
        await talk.keyboard.press("Control+Enter")
        await expect(chips.last).to_contain_text("waits for your decision")
        await talk.get_by_role("link", name="Review…").click()
        await read(talk)
        await verb(talk).click()
        await expect(talk.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")
        await talk.go_back()
        await expect(chips.last).to_contain_text("used")
    assert len(stage.done(REMIND_CODE)) == before + 1


@pytest.mark.requirement("CON-44", "UI-68", "CMD-28")
async def test_what_was_edited_is_checked_shown_run_and_put_on_record(
    played: Scene, page_for: PageFor
) -> None:
    stage, polite = played.stage, "Kindly, 谢谢 & soon"
    asked = await played.asks_to_remind(Step(check=told("changed_by")), message="Hurry")
    page = await played.page(page_for, path_of(asked))
    await page.locator("[data-edit]").click()
    field = page.locator("[name='/message']")
    await expect(field).to_have_value("Hurry")
    await field.evaluate("each => each.removeAttribute('maxlength')")
    await field.fill("x" * 501)
    await page.get_by_role("button", name="Check and ask anew").click()
    await expect(field).to_have_attribute("aria-invalid", "true")
    assert played.row(asked).rev == 1
    await field.fill(polite)
    await page.get_by_role("button", name="Check and ask anew").click()
    await expect(page.get_by_text("took the place of the earlier one")).to_be_visible()

    [new] = stage.open_approvals()
    row = page.get_by_role("row", name=re.compile("Message"))
    await expect(row.locator("del")).to_have_text("Hurry")
    await expect(row.locator("ins")).to_have_text(polite)
    await expect(page.get_by_text(f"Edited by {ALICE}")).to_be_visible()
    preview = page.locator(f"[id='approval-{new.id}-preview']")
    await expect(preview).to_contain_text(polite)
    await expect(preview).not_to_contain_text("Hurry")
    await stage.play()  # the run waits for the new one
    assert stage.runs()[-1].state == "suspended"
    await read(page)
    await verb(page).click()
    await expect(page.locator("[id$=-state]")).to_contain_text("starting")
    await stage.play()
    await expect(page.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")

    assert (played.row(asked).state, played.row(new).state) == ("superseded", "consumed")
    entry = stage.done(REMIND_CODE)[-1]
    assert (entry.input_redacted or {})["message"] == polite
    result = stage.results(stage.runs()[-1].id)[-1]
    assert (result["outcome"], result["changed_by"]) == ("done", ALICE), result
    assert result["changed"] == ["message"]
    await page.get_by_role("link", name=f"Entry {entry.seq}").click()
    await expect(page.locator("main")).to_contain_text(polite)
    await expect(page.locator("main")).not_to_contain_text("Hurry")


@pytest.mark.requirement("CON-49", "CON-50", "CON-51", "CON-52", "UI-70")
async def test_of_several_requests_each_is_whole_and_has_its_own_buttons(
    played: Scene, page_for: PageFor
) -> None:
    stage = played.stage
    reports = [await stage.desk.submitted("alice", 1_000 * number) for number in (1, 2, 3)]
    stories = [
        Story(f"Nudge {number}", (Step(calls=[remind(report, f"for {number}")]), Step()))
        for number, report in enumerate(reports)
    ]
    register("loop", Script(stories=stories))
    for number in range(3):
        stored = stage.say("alice", "expenses", f"Nudge {number}", thread_id=f"t{number}")
    await stage.hear()
    talk = await played.page(page_for, f"/conversations/{stored.conversation_id}")
    before = await talk.locator(".approval-card").count()
    inbox = await played.page(page_for, "/approvals")
    await inbox.evaluate(LISTENS)
    rows, nothing = inbox.locator("#approvals > li"), inbox.locator(".empty")
    await expect(nothing).to_contain_text("Nothing waits for you")
    await expect(inbox.locator("#approvals")).to_be_hidden()
    async with played.at_work():
        await expect(rows).to_have_count(3)
        await expect(nothing).to_be_hidden()
        await expect(talk.locator(".approval-card")).to_have_count(before + 3)
        await expect(inbox.locator("#badge-approvals")).to_contain_text("3")
        asked = {each.arguments["message"]: each for each in stage.open_approvals()}
        for each in asked.values():
            for where in rows, talk.locator(".approval-card"):
                await expect(where.filter(has_text=str(each.target_label))).to_have_count(1)
        for shown in inbox, talk:
            assert not re.search(
                r"\b3 (calls|requests)\b", await shown.locator("#messages, #approvals").inner_text()
            )
        heard = inbox.locator("#heard > p")
        await expect(heard.filter(has_text="Approval needed: Remind approver")).to_have_count(3)
        for each in asked.values():
            ending = {"opened_at": played.in_s(-540), "expires_at": played.in_s(50)}
            stage.asking.set(each.id, **ending)
        assert db.transact_now(approval_warning.warn_due) == 3
        await expect(heard.filter(has_text="One minute left to decide")).to_have_count(3)
        for each in asked.values():
            stage.asking.set(each.id, expires_at=each.expires_at)

        first, second, third = (asked[f"for {number}"] for number in range(3))
        page = await played.page(page_for, path_of(second))
        await expect(page.get_by_role("region", name="Arguments", exact=True)).to_contain_text(
            "for 1"
        )
        await deny(page, "Not this one")
        await expect(page.locator("[id$=-state]")).to_contain_text("Denied by")
        await expect(row_of(inbox, second)).to_contain_text("Denied by")
        for other in first, third:
            await expect(row_of(inbox, other).locator(".countdown")).to_contain_text("expires")
            await expect(card_of(talk, other)).to_contain_text("Waiting for you")
            await played.go(page, path_of(other))
            await expect(verb(page)).to_be_visible()
            await expect(page.locator("summary", has_text="Deny")).to_be_visible()
            assert played.row(other).rev == 1
        await read(page)
        await verb(page).click()
        await expect(page.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")
        await expect(row_of(inbox, first).locator(".countdown")).to_contain_text("expires")
    states = [played.row(each).state for each in (first, second, third)]
    assert states == ["open", "denied", "consumed"]
    assert [each.target_id for each in stage.done(REMIND_CODE)[-1:]] == [reports[2]]


# What the page says aloud stays, in a list of its own.
LISTENS = """() => {
  const heard = document.body.appendChild(document.createElement("div"));
  heard.id = "heard";
  new MutationObserver((all) => all.forEach(({ addedNodes }) => addedNodes.forEach((each) => {
    if (each.localName === "p") heard.append(each.cloneNode(true));
  }))).observe(document.getElementById("status"), { childList: true });
}"""


def row_of(page: Page, approval: Approval) -> Locator:
    """A request in the inbox."""
    return page.locator(f"#approval-{approval.id}-row")


def card_of(page: Page, approval: Approval) -> Locator:
    """A request in a conversation."""
    return page.locator(f"#approval-{approval.id}-card")


@pytest.mark.requirement("CON-48", "CON-27", "UI-63")
async def test_a_late_answer_after_a_failure_reads_what_happened_and_what_comes_next(
    played: Scene, page_for: PageFor
) -> None:
    stage = played.stage
    asked = await played.asks_to_remind()
    page = await played.page(page_for, path_of(asked))
    await read(page)
    played.house.control.stream("hold", path=f"{path_of(asked)}/decision")
    await verb(page).click()
    run = stage.runs()[-1]
    db.transact_now(ending.end, run, RunState.FAILED, "internal")
    played.house.control.release(f"{path_of(asked)}/decision")

    for _ in "at once", "after a reload":
        await expect(page.locator("[id$=-state]")).to_contain_text("Cancelled: the run failed")
        await is_free(page)
        await expect(page.get_by_role("link", name="Ask again")).to_be_visible()
        await page.reload()
    await page.get_by_role("link", name="Ask again").click()
    await expect(page.locator("select[name='/targetRecordId']")).to_have_value(str(asked.target_id))
    playing(Step(calls=[AGAIN]), Step())
    await played.go(page, played.talk)
    await expect(page.locator(f"#run-{run.id}-end")).to_contain_text("the fault is ours")
    await page.locator("#composer-text").fill("Still there?")
    await page.locator("#composer-text").press("Enter")
    async with played.at_work():
        await expect(said(page, "I am here.").last).to_be_visible()


@pytest.mark.requirement("CON-46", "CMD-F14")
async def test_a_yes_to_one_agent_in_one_conversation_is_none_for_another(
    played: Scene, page_for: PageFor
) -> None:
    stage = played.stage
    report, before = await stage.desk.submitted("alice", 5_000), len(stage.done(REMIND_CODE))
    stage.enable("alice", "stock")
    nudge = Step(calls=[remind(report)])
    register("loop", Script(stories=(Story("Nudge", (nudge, Step())),)))
    await stage.tell("Nudge them")
    stage.say("alice", "expenses", "Nudge here", thread_id="elsewhere")
    stage.say("alice", "stock", "Nudge too")
    await stage.play()
    first, *others = stage.open_approvals()
    assert len(others) == 2, [(r.state, r.reason, r.public_error) for r in stage.runs()[-4:]]
    page = await played.page(page_for, path_of(first))
    await read(page)
    await verb(page).click()
    await expect(page.locator("[id$=-state]")).to_contain_text("starting")
    await stage.play()
    await expect(page.locator("[id$=-state]")).to_contain_text(f"Done, approved by {ALICE}")

    assert len(stage.done(REMIND_CODE)) == before + 1
    for other in others:
        assert played.row(other).rev == 1
        await played.go(page, path_of(other))
        await expect(page.locator("[id$=-state]")).to_contain_text("Waiting for you")
        await expect(page.locator("article")).to_contain_text("This request can no longer run")
    stock = stage.asking.agent("alice", "stock")
    named = stage.asking.call(stock, REMIND_CODE, report, approval_id=first.id)
    assert (await stage.asking.refused(named)).reason == "approval_required"
    assert len(stage.done(REMIND_CODE)) == before + 1
