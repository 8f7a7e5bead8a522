"""The console's stream as a protocol: its answers, frames, positions, and who hears what."""

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from fastapi import FastAPI
from sqlmodel import Session, select
from starlette.middleware import Middleware

from app.access import standing
from app.aun.models import LiveConnection
from app.console import assets, refusals, signed_in
from app.console.live import drawing, families, stream
from app.console.live.handles import handle_of
from app.console.live.rendering import Asked, Hearer, Partial, Pass, Render, each_user
from app.console.pages import live
from app.console.viewer import Viewing
from app.identity.cookies import Cookies
from app.identity.facts import AccessChanged
from app.identity.models import User
from app.kernel import db, deltas, event_log, settings, streams
from app.kernel.asgi.event_stream import HEARTBEAT
from app.kernel.db import Work
from app.kernel.models import LoggedEvent
from app.kernel.settings import Settings
from tests import people
from tests.api import streaming
from tests.api.streaming import Client, Frame, SignedIn

pytestmark = pytest.mark.anyio
KIND = "test.happened"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A family of markers; for whom what was drawn."""
    made: list[str] = []

    def draw(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
        made.append(f"{event.subject} {hearer.language}")
        yield Partial("#markers", "beforeend", f"<li>{event.subject}\r\n{hearer.language}\r</li>")

    def own(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
        yield Partial("#own", "outerHTML", hearer.user_id)

    def fail(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
        raise RuntimeError("a fault of a renderer")

    def region(session: Session, asked: Asked) -> str | None:
        return f"<li>{asked.key} {asked.oldest}</li>" if asked.key != "gone" else None

    found = families.Families(
        renders={KIND: [Render(draw), Render(own, each_user)], "test.failing": [Render(fail)]},
        passes={AccessChanged: Pass(lambda s, e, h: [Partial("#p", "outerHTML", e.why)], _hears)},
        regions={"markers": region},
    )
    monkeypatch.setattr(families, "found", lambda: found)
    return made


def _hears(session: Session, event: AccessChanged) -> list[str]:
    return [event.user_id or ""]


@pytest.fixture
def port(opened: str, drawn: list[str]) -> Iterator[int]:
    app = FastAPI(
        middleware=[
            Middleware(Cookies),
            Middleware(Viewing, load=signed_in.load, is_page=signed_in.is_page),
        ]
    )
    app.include_router(live.router)
    refusals.install(app, signed_in.is_page)
    with people.ready(), streaming.served(app) as port:
        yield port
    assert streams.of_process().count() == 0


def connected(port: int, who: SignedIn, after: str = "", **more: Any) -> Any:
    """Told from `after` on, else from now on: whatever the stream is slow at, nothing is missed."""
    after = after or str(db.read_now(event_log.newest, who.tenant_id))
    handle = more.get("handle", handle_of(who.session_id))
    return Client.connected(
        port, who, more.get("last", ""), f"/live/stream?session={handle}&after={after}"
    )


@pytest.mark.requirement("UI-33")
async def test_each_answer_says_what_the_hub_shall_do(port: int, drawn: list[str]) -> None:
    alice = streaming.person("alice")
    nobody = SignedIn("", "", "", "")
    async with connected(port, alice) as client:
        assert client.status == 200
        assert client.headers["content-type"].startswith("text/event-stream")
        assert client.headers["cache-control"] == "no-store, no-transform"
        assert client.headers["x-accel-buffering"] == "no"
        assert "content-encoding" not in client.headers
        assert await client._text() == HEARTBEAT.decode().strip(), "at once, and a comment"
        for number in range(7):
            await _enter(connected(port, alice), number)
        async with connected(port, alice) as ninth:
            assert (ninth.status, ninth.headers["retry-after"]) == (429, "5")
    async with connected(port, alice, handle="0123456789abcdef") as other:
        assert other.status == 409
    path = f"/live/stream?session={handle_of(alice.session_id)}"
    async with Client.connected(port, nobody, path=path) as client:
        assert client.status in {303, 401}
    await _leave_all()


@pytest.mark.requirement("UI-33")
async def test_a_person_is_there_as_long_as_their_stream_flows(port: int) -> None:
    alice = streaming.person("alice")
    db.transact_now(_name, alice)

    async with connected(port, alice) as one, connected(port, alice) as another:
        assert HEARTBEAT.decode().strip() == await one._text() == await another._text()
        assert db.read_now(_there) == {"alice.acme.example": 2}

    async with asyncio.timeout(streaming.PATIENCE_S):
        while db.read_now(_there):  # noqa: ASYNC110 - who goes tells nobody of a stream
            await asyncio.sleep(0.01)


def _name(work: Work, who: SignedIn) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    user.aid = "alice.acme.example"
    work.session.add(user)


def _there(session: Session) -> Counter[str]:
    return Counter(session.exec(select(LiveConnection.aid)))


_entered: list[Any] = []


async def _enter(client: Any, number: int) -> None:
    _entered.append(client)
    assert (await client.__aenter__()).status == 200, number


async def _leave_all() -> None:
    while _entered:
        await _entered.pop().__aexit__(None, None, None)


@pytest.mark.requirement("UI-34", "UI-41")
async def test_an_event_is_one_frame_drawn_once_for_all_of_one_language(
    port: int, drawn: list[str]
) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    async with connected(port, alice) as hers, connected(port, bob) as his:
        await streaming.until_open(lambda count: count == 2)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "one")
        frames = [await client.until("message") for client in (hers, his)]

    position = str(db.read_now(event_log.newest, alice.tenant_id))
    for frame, who in zip(frames, (alice, bob), strict=True):
        assert frame == Frame(
            "message",
            position,
            '<hx-partial hx-target="#markers" hx-swap="beforeend">'
            "<li>one\nen&#13;</li></hx-partial>"
            f'<hx-partial hx-target="#own" hx-swap="outerHTML">{who.user_id}</hx-partial>',
        )


@pytest.mark.requirement("UI-37", "UI-39")
@pytest.mark.parametrize("missed", [3, 500, 501])
async def test_what_was_missed_is_told_again_or_drawn_anew(
    port: int, drawn: list[str], missed: int
) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    streaming.log(alice.tenant_id, "known")
    known = str(db.read_now(event_log.newest, alice.tenant_id))

    def happen(work: Work) -> None:
        for number in range(missed):
            event_log.append(work, alice.tenant_id, KIND, str(number), {}, alice.user_id)
            event_log.append(work, alice.tenant_id, "test.undrawn", "x", {})

    db.transact_now(happen)
    head = str(db.read_now(event_log.newest, alice.tenant_id))

    async with connected(port, alice, known) as client:
        if missed <= stream.AT_MOST:
            frames = [await client.until("message") for _ in range(missed)]
            assert [f"<li>{number}\n" in frame.data for number, frame in enumerate(frames)]
        else:
            assert await client.frame() == Frame("resync", head, "1")
        await asyncio.to_thread(streaming.log, alice.tenant_id, "live")
        assert "<li>live\n" in (await client.until("message")).data
        async with connected(port, bob, known) as his:  # none of it was his
            assert "<li>live\n" in (await his.frame()).data


@pytest.mark.requirement("UI-39")
@pytest.mark.parametrize("after", ["nonsense", "01JZZZZZZZZZZZZZZZZZZZZZZZ:1", "above"])
async def test_a_place_that_is_none_is_a_resync_and_then_live(
    port: int, drawn: list[str], after: str
) -> None:
    alice = streaming.person("alice")
    streaming.log(alice.tenant_id, "before")
    newest = db.read_now(event_log.newest, alice.tenant_id)
    after = f"{newest.epoch}:{newest.seq + 1}" if after == "above" else after
    async with connected(port, alice, after) as client:
        assert await client.frame() == Frame("resync", str(newest), "1")
        await asyncio.to_thread(db.transact_now, event_log.new_epoch, alice.tenant_id)
        again = await client.until("resync")
        assert again.id == str(db.read_now(event_log.newest, alice.tenant_id)) != str(newest)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "after")
        assert "<li>after\n" in (await client.until("message")).data


@pytest.mark.requirement("UI-40", "SEC-32", "SEC-T12")
async def test_a_stream_says_that_it_is_over_when_the_session_is(
    port: int, drawn: list[str]
) -> None:
    alice = streaming.person("alice")
    async with connected(port, alice) as client:
        await streaming.until_open(lambda count: count == 1)
        await asyncio.to_thread(db.transact_now, _end_in_silence, alice)
        await asyncio.to_thread(standing.look_at_streams)  # every two seconds, by the schedule
        await asyncio.to_thread(streaming.log, alice.tenant_id, "after")
        async with asyncio.timeout(5):
            rest = await client.rest()
    assert [frame.name for frame in rest] == ["signed-out"]


async def test_a_slow_reader_is_told_to_come_back(port: int, drawn: list[str]) -> None:
    alice = streaming.person("alice")
    async with connected(port, alice) as client:
        await streaming.until_open(lambda count: count == 1)
        (opened,) = streams.of_process().matching(lambda _: True)
        big = streams.Passing(AccessChanged(tenant_id="", ends=False, why=""), {}, 600 * 1024)
        opened._loop.call_soon_threadsafe(_offer, opened, big, big)
        assert [frame.name for frame in await client.rest()] == ["overflow"]


@pytest.mark.requirement("UI-41")
async def test_whose_rows_are_drawn_too_slowly_is_told_to_come_back(
    port: int, drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, draw = threading.Event(), drawing._rendered

    def slow(*arguments: Any) -> str:
        assert goes_on.wait(30)
        return draw(*arguments)

    monkeypatch.setattr(drawing, "_rendered", slow)
    alice = streaming.person("alice")
    async with connected(port, alice) as client:
        goes_on.set()
        await asyncio.to_thread(streaming.log, alice.tenant_id, "live")
        assert (await client.until("message")).id
        goes_on.clear()
        (opened,) = streams.of_process().matching(lambda _: True)
        await asyncio.to_thread(db.transact_now, _log_many, alice, 3 * streams.BUFFER)
        async with asyncio.timeout(30):
            while not opened.is_overflown:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)
        goes_on.set()
        frames = await client.rest()
    assert frames[-1].name == "overflow"
    assert 0 < len(frames) - 1 < 2 * streams.BUFFER
    places = [int(frame.id.rpartition(":")[2]) for frame in frames[:-1]]
    assert places == sorted(places), "who comes back misses nothing"


def _log_many(work: Work, who: SignedIn, number: int) -> None:
    for each in range(number):
        event_log.append(work, who.tenant_id, kind=KIND, subject=str(each), data={})


@pytest.mark.requirement("CON-6")
async def test_two_hundred_heartbeats_of_nothing_are_one_quiet_request(
    port: int, drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, heartbeat_s=0.02)
    alice = streaming.person("alice")
    async with connected(port, alice) as client, asyncio.timeout(60):
        for _ in range(200):
            assert await client._text() == HEARTBEAT.decode().strip()
            assert await client._text() == ""
        assert streams.of_process().count() == 1


async def test_a_stream_of_half_an_hour_ends_at_a_quiet_moment(
    port: int, drawn: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, heartbeat_s=0.05)
    monkeypatch.setattr(stream, "LIFE_S", 0.2)
    alice = streaming.person("alice")
    async with connected(port, alice) as client:
        assert await client.rest() == []


@pytest.mark.requirement("UI-36")
async def test_growing_text_is_joined_and_goes_to_its_user_alone(
    port: int, drawn: list[str]
) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    async with connected(port, alice) as hers, connected(port, bob) as his:
        await streaming.until_open(lambda count: count == 2)
        at = 0
        for piece in ("想", "😀", "a\nb", "<b>"):
            deltas.append(alice.tenant_id, alice.user_id, "thought-1-text", at, piece)
            at += deltas.units(piece)
        first, second = await hers.until("delta"), await hers.until("delta")
        assert first.data == {"to": "thought-1-text", "at": 0, "text": "想"}
        assert second.data == {"to": "thought-1-text", "at": 1, "text": "😀a\nb<b>"}
        deltas.append(alice.tenant_id, alice.user_id, "thought-1-text", at + 4, "late")
        assert (await hers.until("delta")).data["at"] == at + 4
        await asyncio.to_thread(streaming.log, alice.tenant_id, "marker")
        assert (await his.frame()).name == "message", "no delta went to anybody else"


async def test_what_passes_goes_to_those_it_is_for(port: int, drawn: list[str]) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    stop = stream.listen()
    async with connected(port, alice) as hers, connected(port, bob) as his:
        await streaming.until_open(lambda count: count == 2)
        await asyncio.to_thread(db.transact_now, _pass, alice)
        frame = await hers.frame()
        assert (frame.id, "here now" in frame.data) == ("", True)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "marker")
        assert "<li>marker\n" in (await his.frame()).data
    stop()


async def test_a_renderer_that_fails_has_the_page_look_for_itself(
    port: int, drawn: list[str]
) -> None:
    alice = streaming.person("alice")
    async with connected(port, alice) as client:
        await streaming.until_open(lambda count: count == 1)
        await asyncio.to_thread(
            db.transact_now, event_log.append, alice.tenant_id, "test.failing", "x", {}
        )
        assert (await client.frame()).name == "resync"


@pytest.mark.requirement("UI-46", "UI-38")
async def test_regions_are_drawn_as_of_one_cursor(port: int, drawn: list[str]) -> None:
    alice = streaming.person("alice")
    streaming.log(alice.tenant_id, "before")
    handle = handle_of(alice.session_id)
    wanted = "&".join(
        f"region={name}"
        for name in ("markers:a@12", "markers", "markers:gone@3", "nothing", "markers:'x")
    )
    async with Client.connected(port, alice, path=f"/live/regions?session={handle}&{wanted}") as c:
        assert c.status == 200
        assert c.headers["live-cursor"] == str(db.read_now(event_log.newest, alice.tenant_id))
        body = (await c._reader.readexactly(int(c.headers["content-length"]))).decode()
    inner = {"markers:a": "<li>a 12</li>", "markers": "<li> None</li>", "markers:gone": ""}
    assert body == "".join(
        str(Partial(f"[data-region='{name}']", "innerMorph", html)) for name, html in inner.items()
    )
    other = f"/live/regions?session=0123456789abcdef&{wanted}"
    async with Client.connected(port, alice, path=other) as c:
        assert c.status == 409


def test_a_frame_holds_no_break_but_its_own() -> None:
    assert drawing.frame(None, "", "a\rb\r\nc\nd") == b"data: a&#13;b\r\ndata: c\r\ndata: d\r\n\r\n"


def _end_in_silence(work: Work, who: SignedIn) -> None:
    from app.identity.models import BrowserSession
    from app.kernel import clock

    row = work.session.get_one(BrowserSession, (who.tenant_id, who.session_id))
    row.idle_until = clock.now()
    work.session.add(row)


def _offer(opened: streams.Stream, *items: streams.Passing) -> None:
    for item in items:
        opened.offer(item)


def _pass(work: Work, who: SignedIn) -> None:
    work.announce(
        AccessChanged(tenant_id=who.tenant_id, user_id=who.user_id, ends=False, why="here now")
    )


def _set(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    given = Settings(**values)
    monkeypatch.setattr(settings, "current", lambda: given)


@pytest.mark.requirement("UI-104")
def test_the_script_of_the_live_layer_is_small() -> None:
    """Without comments and indentation, as console.md, 9 counts."""
    files = (assets.STATIC / "js").glob("*.js")
    size = {path.name: len(_bare(path.read_text(encoding="utf-8"))) for path in files}
    live = {"live.js", "live-hub.js", "live-worker.js"}

    assert sum(size[name] for name in live) <= 11.9 * 1024
    assert size["app.js"] + size["notices.js"] + size["composer.js"] <= 10.5 * 1024


def _bare(script: str) -> bytes:
    lines = (re.sub(r"(^|\s+)// .*$", "", line.strip()) for line in script.splitlines())
    return "".join(lines).encode()
