"""Conversations without script: whom one writes to, what is shown, what is refused."""

import re
from datetime import timedelta
from typing import Any

import httpx2
import pytest
import time_machine
from sqlmodel import select

from app.aun import identities, rpc
from app.aun.caller import Caller
from app.aun.models import IdentityKind, Message
from app.identity.models import User
from app.kernel import clock, db
from tests.aun.conversation_rows import caller_of
from tests.console import run_stage
from tests.people import World

DRAFT = {"client_id": "c-1"}


async def say(caller: Caller, to: str, message_id: str, **payload: Any) -> None:
    """A message as any other party sends it."""
    params = {"to": to, "message_id": message_id, "payload": {"type": "text", **payload}}
    await rpc.invoke(caller, "message.send", params)


def agent(world: World) -> Caller:
    """The agent `stock`, as it sends."""
    stock, alice = world.acme.agents["stock"], world.acme["alice"]
    session = db.read_now(identities.caller_of_user, world.person(alice))
    row = db.read_now(lambda session: session.get_one(type(stock), (stock.tenant_id, stock.id)))
    return Caller(session.tenant_id, row.aid or "", IdentityKind.AGENT, "hosted")


def aid(user: User) -> str:
    return db.read_now(lambda session: session.get_one(User, (user.tenant_id, user.id)).aid) or ""


def me(user: User) -> Caller:
    return caller_of(db.read_now(lambda s: s.get_one(User, (user.tenant_id, user.id))))


def messages(page: str) -> list[str]:
    return re.findall(r'<li id="message-(\w+)"', page)


async def begin(browser: httpx2.AsyncClient, to: str, text: str = "Hello") -> str:
    """The path of the conversation that a first message begins."""
    answer = await browser.post("/conversations", data={"to": to, "text": text, "client_id": "c-0"})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


@pytest.mark.requirement("UI-1", "UI-2", "UI-3", "AUN-11", "AUN-12", "UI-28", "UI-57", "CON-85")
async def test_two_people_write_and_silence_looks_like_nothing(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as hers, world.client(bob) as his:
        found = (await hers.get(f"/conversations/new?q={aid(bob)}")).text
        assert f"to={aid(bob)}" in found
        empty = await hers.get("/conversations/new", params={"to": aid(bob)})
        assert 'name="text"' in empty.text
        path = await begin(hers, aid(bob), "**Hello** <b>a < b && c</b> &lt;")
        again = await begin(hers, aid(bob), "**Hello** <b>a < b && c</b> &lt;")
        assert again == path, "the same client id sends nothing twice"
        known = await hers.get("/conversations/new", params={"to": aid(bob)})
        assert known.headers["location"] == path

        sent = (await hers.get(path)).text
        assert "<strong>Hello</strong> &lt;b&gt;a &lt; b &amp;&amp; c&lt;/b&gt; &amp;lt;" in sent
        assert ">Delivered<" in sent
        log = sent.partition('role="log"')[2].partition("</ol>")[0]
        assert not re.search("no reply|answer|waiting|error|alert", log, re.IGNORECASE)
        with time_machine.travel(clock.now() + timedelta(minutes=20)):
            assert (await hers.get(path)).text.count(">Delivered<") == 1, "whatever time goes by"

        his_page = (await his.get(path)).text
        [first] = messages(his_page)
        assert 'id="new"' in his_page
        assert 'data-count="1"' in his_page
        seq = re.findall(r'name="seq" value="(\d+)"', his_page)[0]
        for number in range(4):
            reply = {"text": f"r{number}", "client_id": f"c-r{number}", "reply_to": first}
            assert (await his.post(f"{path}/messages", data=reply)).status_code == 303
        assert (await his.post(f"{path}/read-position", data={"seq": seq})).status_code == 303
        assert 'id="new"' not in (await his.get(path)).text

        page = (await hers.get(path)).text
        assert "4 replies" in page
        assert len(messages(page)) == 5
        assert ">Seen<" in page
        assert 'class="quote"' not in page, "the first follows directly, the others join it"
        between = {"text": "between", "client_id": "c-b"}
        await hers.post(f"{path}/messages", data=between)
        late = {"text": "late", "client_id": "c-l", "reply_to": first}
        await his.post(f"{path}/messages", data=late)
        page = (await hers.get(path)).text
        assert page.count('class="quote"') == 1
        assert f'href="#message-{first}"' in page
        assert (await hers.get("/")).headers["location"] == path


@pytest.mark.requirement("UI-4", "UI-8", "AUN-13", "UI-31")
async def test_an_agent_begins_a_conversation(world: World) -> None:
    alice = world.acme["alice"]
    async with world.client(alice) as hers:
        assert "No conversation yet" in (await hers.get("/conversations")).text
        await say(agent(world), aid(alice), "a-1", text="Paper runs low.")

        listed = (await hers.get("/conversations")).text
        assert "started by the agent" in listed
        assert 'id="badge-unread" data-count="1"' in listed
        path = re.findall(r'href="(/conversations/\w{26})"', listed)[0]
        page = (await hers.get(path)).text
        assert "It may answer, not answer, answer several times, or start a conversation." in page
        answer = {"text": "Thanks", "client_id": "c-t"}
        await hers.post(f"{path}/messages", data=answer)
        assert "started by the agent" not in (await hers.get("/conversations")).text
        checked = await hers.get(f"{path}/connection", headers={"HX-Request": "true"})
        assert "online" in checked.text
        assert "message" not in re.sub(r"<[^>]*>", "", checked.text)
        assert (await hers.get(f"{path}/connection")).headers["location"] == path


@pytest.mark.requirement("UI-61")
async def test_what_was_written_is_there_to_copy_for_those_in_the_conversation(
    world: World,
) -> None:
    alice, written = world.acme["alice"], "**Paid** <b>`1`</b>\n- 二"
    await say(agent(world), aid(alice), "a-2", text=written)
    async with world.client(alice) as hers, world.client(world.acme["bob"]) as his:
        listed = (await hers.get("/conversations")).text
        path = re.findall(r'href="(/conversations/\w{26})"', listed)[0]
        (source,) = re.findall(r'href="([^"]*/source)"', (await hers.get(path)).text)

        answer = await hers.get(source)
        assert answer.text == written
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"
        assert answer.headers["cache-control"] == "no-store"
        assert (await his.get(source)).status_code == 404
        assert (await hers.get(f"{path}/messages/{'0' * 26}/source")).status_code == 404


@pytest.mark.requirement("UI-6", "CON-71", "UI-58")
async def test_reported_tools_attachments_and_odd_payloads_are_pictures(world: World) -> None:
    alice, caller = world.acme["alice"], agent(world)
    call = {"type": "tool_call", "call_id": "x1", "name": "pay", "arguments": {"to": "<b>"}}
    async with world.client(alice) as hers:
        await say(caller, aid(alice), "m-1", type="tool_result", call_id="x0", ok=False, error="e")
        await say(caller, aid(alice), "m-2", **call)
        await say(caller, aid(alice), "m-3", type="tool_result", call_id="x1", ok=True, result=1)
        await say(caller, aid(alice), "m-4", type="odd", data={"a": "<script>"})
        files = [{"url": "https://x.example/f", "filename": "F"}, {"url": "javascript:alert(1)"}]
        await say(caller, aid(alice), "m-5", text="see", attachments=files)
        path = (await hers.get("/")).headers["location"]
        page = (await hers.get(path)).text

    reported = re.findall(r'<details class="reported".*?</details>', page, re.DOTALL)
    assert len(reported) == 3
    assert all("reported by" in each for each in reported)
    assert not any(re.search("<(button|form|a|input)", each) for each in reported)
    assert "no call reported" in reported[0]
    assert all("reported</p>" not in each for each in reported[1:]), "call and result are a pair"
    assert "pay" in reported[2]
    assert "<script>" not in page.split("<main", 1)[1]
    assert "javascript:" not in page
    assert 'href="https://x.example/f" rel="noopener noreferrer nofollow ugc"' in page


async def test_a_message_is_taken_back_within_two_minutes(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as hers, world.client(bob) as his:
        path = await begin(hers, aid(bob), "a secret")
        [first] = messages((await hers.get(path)).text)
        assert (await his.post(f"{path}/messages/{first}/recall")).status_code == 404
        done = await hers.post(f"{path}/messages/{first}/recall")
        assert done.status_code == 303
        for browser in (hers, his):
            page = (await browser.get(path)).text
            assert "This message was taken back." in page
            assert "a secret" not in page
        await hers.post(f"{path}/messages", data={"text": "old", "client_id": "c-o"})
        second = messages((await hers.get(path)).text)[-1]
        with time_machine.travel(clock.now() + timedelta(seconds=121)):
            await hers.post(f"{path}/messages/{second}/recall")
            page = (await hers.get(path)).text
        assert "two minutes only" in page
        assert "<p>old</p>" in page


@pytest.mark.requirement("UI-88", "CON-76", "UI-89")
async def test_a_long_conversation_is_read_in_pages(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    for number in range(120):
        await say(me(bob), aid(alice), f"b-{number}", text=f"number {number}.")
    async with world.client(alice) as hers:
        path = (await hers.get("/")).headers["location"]
        page = (await hers.get(path)).text
        assert len(messages(page)) == 50
        assert 'role="log" aria-live="off"' in page
        assert "number 119." in page
        before = re.findall(r'hx-get="([^"]+)"', page)[0]
        older = (await hers.get(before, headers={"HX-Request": "true"})).text
        assert len(messages(older)) == 50
        assert "<html" not in older
        whole = (await hers.get(before)).text
        assert messages(whole) == messages(older)
        assert not set(messages(page)) & set(messages(older))
        assert ">99+<" in (await hers.get("/conversations")).text


@pytest.mark.requirement("UI-26")
async def test_what_is_refused_says_why_and_keeps_the_text(world: World) -> None:
    alice, bob = world.acme["alice"], world.acme["bob"]
    async with world.client(alice) as hers, world.client(world.acme["axel"]) as stranger:
        path = await begin(hers, aid(bob))
        assert (await stranger.get(path)).status_code == 404
        assert (await stranger.get("/conversations/new?to=nobody.here")).status_code == 404
        blank = await hers.post(f"{path}/messages", data={"text": " ", "client_id": "c-2"})
        assert blank.status_code == 422
        assert "Fill this in." in blank.text
        nowhere = {"text": "kept", "client_id": "c-3", "reply_to": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
        assert (await hers.post(f"{path}/messages", data=nowhere)).status_code == 422
        off = await hers.get("/conversations/new?q=dora")
        assert "Nobody found" in off.text, "who is off cannot be chosen"
        stored = db.read_now(lambda session: session.exec(select(Message)).all())
    assert len(stored) == 1


async def test_the_longest_message_that_the_composer_takes_is_sent(world: World) -> None:
    async with world.client(world.acme["alice"]) as hers:
        stage = await run_stage.opened(world, hers)
        for number, letter in enumerate("x报"):
            data = {"text": letter * 100_000, "client_id": f"c-long-{number}"}
            sent = await hers.post(f"{stage.path}/messages", data=data)
            assert sent.status_code == 303
            assert (stage.newest().payload or {}).get("text") == letter * 100_000
