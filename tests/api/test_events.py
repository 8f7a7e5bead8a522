"""Streams over a real server: resumed, bounded, and never a byte of somebody else's."""

import asyncio
import resource
import socket
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import delete
from sqlmodel import col

from app.access import standing
from app.identity import epochs, sessions, stops
from app.identity.doors import Door
from app.identity.models import (
    Delegation,
    RoleAssignment,
    Tenant,
    TenantStatus,
    User,
    UserStatus,
)
from app.identity.principal import Scope
from app.kernel import db, event_log, feed, settings, streams
from app.kernel.asgi import event_stream
from app.kernel.db import Work
from app.kernel.settings import Settings
from app.kernel.streams import Holder
from tests.api import streaming
from tests.api.streaming import Client, Frame, SignedIn
from tests.clock import Clock
from tests.mcp import connecting
from tests.people import World

pytestmark = pytest.mark.anyio

DEAF = 80  # streams nobody reads; buffered without end they would be 400 MB


@pytest.fixture
def port(opened: str) -> Iterator[int]:
    with streaming.served() as port:
        yield port
    assert streams.of_process().count() == 0


def _set(monkeypatch: pytest.MonkeyPatch, **values: Any) -> None:
    given = Settings(**values)
    monkeypatch.setattr(settings, "current", lambda: given)


async def test_events_arrive_as_they_happen(port: int) -> None:
    alice = streaming.person("alice")
    async with Client.connected(port, alice) as client:
        assert (await client.frame()).name == "ready"

        await asyncio.to_thread(streaming.log, alice.tenant_id, "one")
        await asyncio.to_thread(streaming.log, alice.tenant_id, "two")

        frames = [await client.until("test.happened") for _ in range(2)]
        assert [frame.data["subject"] for frame in frames] == ["one", "two"]
        position = db.read_now(event_log.newest, alice.tenant_id)
        assert frames[1].id == str(position)


@pytest.mark.parametrize("missed", [3, 700])
async def test_a_client_comes_back_and_misses_nothing(port: int, missed: int) -> None:
    alice = streaming.person("alice")
    streaming.log(alice.tenant_id, "known")
    known = str(db.read_now(event_log.newest, alice.tenant_id))

    def happen(work: Work) -> None:
        for number in range(missed):
            event_log.append(work, alice.tenant_id, "test.happened", str(number), {})

    db.transact_now(happen)

    async with Client.connected(port, alice, known) as client:
        assert await client.frame() == Frame("ready", known, {})
        frames = [await client.until("test.happened") for _ in range(missed)]
        assert [frame.data["subject"] for frame in frames] == [str(n) for n in range(missed)]
        await asyncio.to_thread(streaming.log, alice.tenant_id, "live")
        assert (await client.until("test.happened")).data["subject"] == "live"


async def test_a_stream_opened_before_the_first_event_of_all_can_be_resumed(port: int) -> None:
    alice = streaming.person("alice")
    async with Client.connected(port, alice) as client:
        ready = await client.frame()
    streaming.log(alice.tenant_id, "first")

    async with Client.connected(port, alice, ready.id) as client:
        await client.until("ready")
        assert (await client.until("test.happened")).data["subject"] == "first"


@pytest.mark.parametrize("position", ["nonsense", "01JZZZZZZZZZZZZZZZZZZZZZZZ:1"])
async def test_an_unknown_position_is_a_gap(port: int, position: str) -> None:
    alice = streaming.person("alice")
    streaming.log(alice.tenant_id, "before")
    async with Client.connected(port, alice, position) as client:
        gap = await client.until("gap")
        assert gap.id == str(db.read_now(event_log.newest, alice.tenant_id))
        await asyncio.to_thread(streaming.log, alice.tenant_id, "after")
        assert (await client.until("test.happened")).data["subject"] == "after"


async def test_a_log_made_anew_is_a_gap_in_mid_stream(port: int) -> None:
    alice = streaming.person("alice")
    streaming.log(alice.tenant_id, "before")
    async with Client.connected(port, alice) as client:
        await client.until("ready")
        await asyncio.to_thread(db.transact_now, event_log.new_epoch, alice.tenant_id)
        gap = await client.until("gap")
        assert gap.id == str(db.read_now(event_log.newest, alice.tenant_id))


@pytest.mark.requirement("SEC-T12", "SEC-50")
async def test_nobody_gets_a_byte_of_somebody_elses_events(port: int) -> None:
    ursula = streaming.person("ursula", "audit.read")
    mallory = streaming.person("mallory", tenant_id=ursula.tenant_id)
    stranger = streaming.person("stranger", "audit.read")

    def happen(work: Work) -> None:
        for number in range(1_000):
            event_log.append(
                work, ursula.tenant_id, "test.happened", f"secret-{number}", {}, ursula.user_id
            )
        event_log.append(
            work, ursula.tenant_id, "test.happened", "secret-trail", {}, None, "audit.read"
        )

    start = str(db.read_now(event_log.newest, ursula.tenant_id))
    async with (
        Client.connected(port, mallory) as live,
        Client.connected(port, stranger, start) as foreign,
    ):
        await live.until("ready")
        await asyncio.to_thread(db.transact_now, happen)
        for who in (ursula, stranger):
            await asyncio.to_thread(streaming.log, who.tenant_id, "for all")

        assert (await live.until("test.happened")).data["subject"] == "for all"
        assert (await foreign.until("test.happened")).data["subject"] == "for all"
        async with Client.connected(port, mallory, start) as resumed:
            assert (await resumed.until("test.happened")).data["subject"] == "for all"
            for client in (live, foreign, resumed):
                assert b"secret" not in client.raw
        async with Client.connected(port, ursula, start) as own:
            frames = [await own.until("test.happened") for _ in range(1_002)]
            assert frames[1_000].data["subject"] == "secret-trail"


@pytest.mark.requirement("SEC-T12", "SEC-31")
@pytest.mark.parametrize("what", ["sign-out", "disabled", "suspended"])
async def test_a_stream_closes_with_its_rights(port: int, what: str) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    async with Client.connected(port, alice) as client, Client.connected(port, bob) as other:
        await client.until("ready")
        await other.until("ready")

        await asyncio.to_thread(db.transact_now, _end, alice, what)

        async with asyncio.timeout(5):
            assert await client.rest() == []
        if what != "suspended":
            await asyncio.to_thread(streaming.log, alice.tenant_id, "after")
            assert (await other.until("test.happened")).data["subject"] == "after"


@pytest.mark.requirement("SEC-T12", "SEC-32")
async def test_a_lost_role_counts_from_the_next_event_on(port: int) -> None:
    alice = streaming.person("alice", "audit.read")
    async with Client.connected(port, alice) as client:
        await client.until("ready")
        await asyncio.to_thread(streaming.log, alice.tenant_id, "1", permission="audit.read")
        assert (await client.until("test.happened")).data["subject"] == "1"

        await asyncio.to_thread(db.transact_now, _lose_role, alice)
        await asyncio.to_thread(streaming.log, alice.tenant_id, "2", permission="audit.read")
        await asyncio.to_thread(streaming.log, alice.tenant_id, "3")

        assert (await client.until("test.happened")).data["subject"] == "3"
        assert b'"subject":"2"' not in client.raw


@pytest.mark.requirement("SEC-32", "SEC-31")
async def test_a_lost_notice_costs_one_heartbeat_at_most(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    _set(monkeypatch, heartbeat_s=0.2)
    alice = streaming.person("alice")
    async with Client.connected(port, alice) as client:
        await client.until("ready")

        await asyncio.to_thread(db.transact_now, _disable_in_silence, alice)

        async with asyncio.timeout(5):
            assert await client.rest() == []


@pytest.mark.requirement("SEC-31", "SEC-32")
async def test_a_stream_closes_with_the_grant_of_its_token(world: World) -> None:
    alice = world.acme["alice"]
    scopes = (Scope.EVENTS_READ,)
    granted = [connecting.granted(world.acme, alice, Door.V1, scopes) for _ in range(2)]
    with streaming.served() as port:
        first, second = (_bearing(alice, token) for token, _ in granted)
        async with Client.connected(port, first) as client, Client.connected(port, second) as other:
            await client.until("ready")
            await other.until("ready")

            await asyncio.to_thread(connecting.end_family, alice, granted[0][1])

            async with asyncio.timeout(5):
                assert await client.rest() == []
            await asyncio.to_thread(streaming.log, alice.tenant_id, "after", user_id=alice.id)
            assert (await other.until("test.happened")).data["subject"] == "after"


@pytest.mark.requirement("SEC-31")
async def test_a_tenant_suspended_by_another_process_is_heard_of_no_more(port: int) -> None:
    alice, stranger = streaming.person("alice"), streaming.person("stranger")
    async with Client.connected(port, alice) as client, Client.connected(port, stranger) as other:
        await client.until("ready")
        await other.until("ready")
        await asyncio.to_thread(db.transact_now, _suspend_in_silence, alice)

        await asyncio.to_thread(standing.look_at_streams)

        async with asyncio.timeout(5):  # long before the heartbeat
            assert await client.rest() == []
        await asyncio.to_thread(streaming.log, stranger.tenant_id, "after")
        assert (await other.until("test.happened")).data["subject"] == "after"


@pytest.mark.requirement("SEC-31")
async def test_a_stream_looks_again_when_the_time_of_its_delegation_is_over(
    world: World, clock: Clock
) -> None:
    given = world.acme.delegations["alice"]
    holder = Holder(world.acme.id, given.user_id, None, given.id, (given.agent_id,))
    await db.transaction(_limit, given, clock.now + timedelta(minutes=1))
    with streams.of_process().opened(holder, "test", 1) as stream:
        await asyncio.to_thread(standing.look_at_streams)
        assert not stream.must_look_again

        clock.move(minutes=2)
        await asyncio.to_thread(standing.look_at_streams)

        assert stream.must_look_again


@pytest.mark.requirement("SEC-32")
async def test_without_a_listener_the_log_is_looked_at(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    alice = streaming.person("alice")
    monkeypatch.setattr(db, "hears_others", lambda: False)
    monkeypatch.setattr(feed, "POLL_S", 0.1)
    monkeypatch.setattr(feed._Feed, "_hear", lambda *_: None)
    async with Client.connected(port, alice) as client:
        await client.until("ready")
        while not any(each.is_ready.done() for each in feed._feeds.values()):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        before = feed.late._value.get()

        await asyncio.to_thread(_log_in_silence, alice)

        assert (await client.until("test.happened")).data["subject"] == "silent"
        assert feed.late._value.get() == before + 1


@pytest.mark.requirement("SEC-50", "SEC-T30")
async def test_a_user_has_eight_streams(port: int) -> None:
    alice = streaming.person("alice")
    bob = streaming.person("bob", tenant_id=alice.tenant_id)
    async with asyncio.timeout(60):
        opened = [Client.connected(port, alice) for _ in range(8)]
        clients = [await each.__aenter__() for each in opened]
        refused = [await _status(port, alice) for _ in range(192)]
        assert {client.status for client in clients} == {200}
        assert set(refused) == {429}
        async with Client.connected(port, bob) as other:
            assert other.status == 200

        for each in opened:
            await each.__aexit__(None, None, None)
        await streaming.until_open(lambda count: count == 0)
        assert await _status(port, alice) == 200


@pytest.mark.requirement("SEC-50")
async def test_a_client_that_is_too_slow_is_told_and_closed(port: int) -> None:
    alice = streaming.person("alice")
    async with Client.connected(port, alice) as client:
        await client.until("ready")
        (stream,) = streams.of_process().matching(lambda _: True)

        def flood() -> None:
            for number in range(streams.BUFFER + 1):
                stream.offer(event_log.Gap(event_log.Position("E", number)))

        stream._loop.call_soon_threadsafe(flood)

        assert [frame.name for frame in await client.rest()] == ["overflow"]


@pytest.mark.requirement("SEC-T29", "SEC-50")
async def test_clients_that_never_read_are_closed_and_cost_little(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "SEND_TIMEOUT_S", 0.5)
    _set(monkeypatch, heartbeat_s=5, streams_per_user=DEAF)
    frozen = streaming.person("frozen")
    reader = streaming.person("reader", tenant_id=frozen.tenant_id)
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    sockets = [_never_reading(port, frozen) for _ in range(DEAF)]
    async with asyncio.timeout(120), Client.connected(port, reader) as other:
        await other.until("ready")
        await streaming.until_open(lambda count: count == DEAF + 1)

        def happen(work: Work, first: int) -> None:
            for number in range(first, first + 250):
                event_log.append(
                    work, frozen.tenant_id, "test.happened", str(number), {"pad": "x" * 400}
                )

        for first in range(0, 10_000, 250):  # no faster than somebody who reads can follow
            await asyncio.to_thread(db.transact_now, happen, first)
            frames = [await other.until("test.happened") for _ in range(250)]
            assert frames[-1].data["subject"] == str(first + 249)

        await streaming.until_open(lambda count: count == 1)
    for each in sockets:
        each.close()
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib
    assert grown_kib < 64 * 1024


async def test_nobody_streams_without_a_session(port: int) -> None:
    nobody = SignedIn("", "", "other=1", "")
    assert await _status(port, nobody) == 401


async def _status(port: int, who: SignedIn) -> int:
    async with Client.connected(port, who) as client:
        status: int = client.status
    return status


def _never_reading(port: int, who: SignedIn) -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.sendall(
        f"GET /v1/events HTTP/1.1\r\nHost: localhost\r\nCookie: {who.cookie}\r\n\r\n".encode()
    )
    return client


def _bearing(user: User, token: str) -> SignedIn:
    """Whoever comes with a token instead of a cookie: it goes in the place of that header."""
    return SignedIn(user.tenant_id, user.id, f"x=1\r\nAuthorization: Bearer {token}", "")


def _end(work: Work, who: SignedIn, what: str) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    if what == "sign-out":
        sessions.end_all(work, None, user, "signed_out")
    elif what == "disabled":
        stops.end_user(work, user)
    else:
        stops.end_tenant(work, work.session.get_one(Tenant, who.tenant_id))


def _lose_role(work: Work, who: SignedIn) -> None:
    work.session.execute(delete(RoleAssignment).where(col(RoleAssignment.user_id) == who.user_id))
    epochs.raise_for(work, who.tenant_id, [who.user_id], "role_changed")


def _disable_in_silence(work: Work, who: SignedIn) -> None:
    user = work.session.get_one(User, (who.tenant_id, who.user_id))
    user.status = UserStatus.DISABLED
    work.session.add(user)


def _suspend_in_silence(work: Work, who: SignedIn) -> None:
    tenant = work.session.get_one(Tenant, who.tenant_id)
    tenant.status = TenantStatus.SUSPENDED
    work.session.add(tenant)


def _limit(work: Work, given: Delegation, ends_at: datetime) -> None:
    row = work.session.get_one(Delegation, (given.tenant_id, given.id))
    row.expires_at = ends_at
    work.session.add(row)


def _log_in_silence(who: SignedIn) -> None:
    streaming.log(who.tenant_id, "silent")
