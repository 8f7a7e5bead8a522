"""Sockets of the gateway: who may speak when, how many, and what ends them."""

import asyncio
import contextlib
import json
import socket as sockets
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

import pytest
import websockets
from sqlmodel import Session, func, select

from app.aun.events import Evicted
from app.aun.gateway import connection, hub, registry
from app.aun.models import Identity, IdentityStatus, LiveConnection
from app.kernel import db
from app.kernel.db import Work
from tests.aun.serving import (
    GATEWAY,
    NORMAL,
    PATIENCE_S,
    Party,
    Raw,
    Refused,
    party,
    raw,
    served,
    text,
)
from tests.people import World

pytestmark = pytest.mark.anyio


@pytest.fixture
def port(world: World) -> Iterator[int]:
    """The whole application, listening."""
    with served(world.app) as port:
        yield port


@pytest.fixture
def tina(world: World, port: int) -> Party:
    """An outside AID of Acme."""
    return party(port, world.acme.id, "tina")


async def test_the_first_frame_is_a_challenge_and_nothing_but_logging_in_comes_before_connecting(
    port: int, tina: Party
) -> None:
    async with raw(port) as first, raw(port) as second:
        assert first.challenge["method"] == "challenge"
        assert first.nonce != second.nonce

        for method in ("message.send", "meta.ping", "nonsense"):
            with pytest.raises(Refused) as refused:
                await first.call(method)
            assert refused.value.code == -32013
            assert refused.value.data["trace_id"]


async def test_a_refused_connect_keeps_the_socket_and_its_nonce(port: int, tina: Party) -> None:
    async with raw(port) as socket:
        wrong: list[tuple[dict[str, Any], int]] = [
            ({"nonce": "another"}, 4010),
            ({"auth": {"method": "kite_token", "token": "no.token.at-all"}}, 4001),
            ({"protocol": {"min": "2.0", "max": "3.0"}}, -32000),
            ({"device": {"id": 7}}, -32602),
        ]
        for params, code in wrong:
            with pytest.raises(Refused) as refused:
                await socket.call("auth.connect", **tina.connect_params(socket.nonce) | params)
            assert refused.value.code == code

        hello = await socket.call("auth.connect", **tina.connect_params(socket.nonce))

        assert hello["status"] == "ok"
        assert hello["capabilities"]["p2p_peer_pull_v1"] is True
        assert hello["identity"]["aid"] == tina.aid
        status = await socket.call("meta.status")
        assert status["aid"] == tina.aid
        assert status["behavior_mode"] == "autonomous"
        assert (await socket.call("meta.ping", whatever=1))["pong"] is True


async def test_unsafe_frames_are_refused_with_their_id_and_harm_nobody(
    port: int, tina: Party
) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    unsafe = [
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":NaN}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":-Infinity}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":9007199254740993}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":1e300}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":1,"n":2}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":"\\ud800"}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"\\udfff":1}}',
        '{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{"n":"\\u0000"}}',
        f'{{"jsonrpc":"2.0","id":"x","method":"meta.ping","params":{{"n":{deep}}}}}',
    ]
    async with tina.connected() as socket:
        for text in unsafe:
            answer = await socket.send(text, "x")
            is_large = "1e300" in text  # a float that RFC 8785 writes with an exponent is safe
            if not is_large:
                assert answer["error"]["code"] == -32602, text[:100]

        for text, code in (
            ("not json", -32700),
            ("[]", -32600),
            ('{"id":null,"method":3}', -32600),
            ('{"id":{},"method":"meta.ping"}', -32600),
        ):
            assert (await socket.send(text, None))["error"]["code"] == code
        assert (await socket.send(b"\x00\x01", None))["error"]["code"] == -32600
        assert (await socket.ask({"method": "storage.put", "params": {}}))["error"][
            "code"
        ] == -32601
        assert (await socket.call("meta.ping"))["pong"] is True


async def test_a_frame_that_is_too_large_ends_its_own_connection_only(
    port: int, tina: Party
) -> None:
    async with tina.connected(device={"id": "one"}) as big, tina.connected() as other:
        with contextlib.suppress(websockets.ConnectionClosed):  # it may be closed half way
            await big.socket.send(
                '{"id":"x","method":"meta.ping","params":{"n":"' + "x" * (5 << 20)
            )

        assert await big.closed() == 1009
        assert (await other.call("meta.ping"))["pong"] is True


async def test_a_second_long_connection_takes_the_place_of_the_first_and_a_short_one_of_none(
    port: int, tina: Party
) -> None:
    async with tina.connected() as first, tina.connected(options={"kind": "short"}) as short:
        assert (await first.call("meta.ping"))["pong"] is True
        async with tina.connected() as second:
            told = await first.event("gateway.disconnect")
            assert (told["code"], told["reason"]) == (4009, "replaced_by_new_connection")
            assert await first.closed() == 4009
            assert (await second.call("meta.ping"))["pong"] is True
            assert (await short.call("meta.ping"))["pong"] is True
            async with tina.connected(client={"slot_id": "work:2"}) as elsewhere:
                assert (await second.call("meta.ping"))["pong"] is True
                assert (await elsewhere.call("meta.ping"))["pong"] is True


async def test_short_connections_of_a_slot_are_few_and_modes_of_delivery_do_not_mix(
    port: int, tina: Party
) -> None:
    async with asyncio.TaskGroup() as group:
        held: list[Raw] = []
        enough = asyncio.Event()

        async def hold() -> None:
            async with tina.connected(options={"kind": "short"}) as socket:
                held.append(socket)
                await enough.wait()

        for _ in range(registry.SHORT_PER_KEY):
            group.create_task(hold())
        async with asyncio.timeout(20):
            while len(held) < registry.SHORT_PER_KEY:  # noqa: ASYNC110 - they tell nobody
                await asyncio.sleep(0.01)
        async with raw(port) as socket:
            params = tina.connect_params(socket.nonce)
            with pytest.raises(Refused) as refused:
                await socket.call("auth.connect", **params | {"options": {"kind": "short"}})
            assert refused.value.code == -32429
            assert refused.value.data["retryable"] is True
            with pytest.raises(Refused, match="delivery_mode_conflict"):
                await socket.call("auth.connect", **params | {"delivery_mode": {"mode": "queue"}})
        enough.set()


async def test_rows_of_connections_follow_the_sockets(port: int, tina: Party) -> None:
    async with tina.connected():
        assert db.read_now(_rows) == 1
    await _until(0)


async def test_who_leaves_while_connecting_is_not_taken_for_present(port: int, tina: Party) -> None:
    for number in range(30):
        async with raw(port) as socket:
            params = tina.connect_params(socket.nonce, device={"id": f"device-{number}"})
            request = {"jsonrpc": "2.0", "id": "c", "method": "auth.connect", "params": params}
            await socket.socket.send(json.dumps(request))
            if number % 2:
                socket.socket.transport.abort()

    await _until(0)
    async with asyncio.timeout(20):
        while len(hub.of_process()):  # noqa: ASYNC110 - likewise
            await asyncio.sleep(0.01)


async def test_a_blocked_aid_is_told_to_stay_away_and_an_unlinked_one_may_return(
    world: World, port: int, tina: Party
) -> None:
    for code in (4003, NORMAL):
        async with tina.connected() as socket:
            db.transact_now(_evict, world.acme.id, tina.aid, code)
            assert await socket.closed() == code
            assert len(socket.events("gateway.disconnect")) == (1 if code == 4003 else 0)
        await _until(0)


@pytest.mark.requirement("SEC-32")
async def test_an_aid_that_is_shut_out_reads_and_writes_nothing_more_on_an_open_socket(
    world: World, port: int, tina: Party
) -> None:
    async with tina.connected() as socket:
        await _until_settled()
        db.transact_now(_block, world.acme.id, tina.aid)  # and nobody heard of it

        for method in ("meta.ping", "message.peers", "message.query_online"):
            with pytest.raises(Refused, match="blocked"):
                await socket.call(method, aids=[tina.aid])
        async with raw(port) as another:
            with pytest.raises(Refused):
                await another.call("auth.connect", **tina.connect_params(another.nonce))


async def test_a_reader_that_stops_is_closed_and_stops_nobody(port: int, tina: Party) -> None:
    deaf, stuck = await _stopped(port, tina)

    async with tina.connected() as other:
        for _ in range(400):  # more than may wait, and than a kernel's buffers hold
            stuck.loop.call_soon_threadsafe(stuck.offer, b'"' + b"x" * 60_000 + b'"')
        assert (await other.call("meta.ping"))["pong"] is True
        await _until(1)
    deaf.transport.abort()


async def test_a_reader_that_pauses_gets_everything_in_its_order(port: int, tina: Party) -> None:
    slow, connected = await _stopped(port, tina)
    frames = [b"[%d, " % number + b'"' + b"x" * 30_000 + b'"]' for number in range(240)]

    for frame in frames:  # the first at once, then those that wait, and the last at once again
        connected.loop.call_soon_threadsafe(connected.offer, frame)
    slow.transport.resume_reading()
    async with asyncio.timeout(PATIENCE_S):
        came = [json.loads(await slow.recv())[0] for _ in frames]
    connected.loop.call_soon_threadsafe(connected.offer, b"[240]")
    async with asyncio.timeout(PATIENCE_S):
        last = json.loads(await slow.recv())

    assert (came, last) == ([*range(240)], [240])
    await slow.close()


async def test_what_nobody_asked_for_comes_after_a_clients_first_request_in_its_order(
    port: int, tina: Party, world: World
) -> None:
    otto = party(port, world.acme.id, "otto")
    ids = [f"m-{number}" for number in range(5)]
    with patch.object(connection, "LISTENS_S", 600):
        async with (
            tina.connected() as sender,
            otto.connected() as quiet,
            otto.connected(device={"id": "device-2"}) as talking,
        ):
            await talking.call("meta.ping")
            for each in ids:
                await sender.call("message.send", to=otto.aid, message_id=each, payload=text("hi"))
            await talking.event("message.received", message_id=ids[-1])
            assert quiet.heard == []

            await quiet.call("meta.ping")
            await quiet.event("message.received", message_id=ids[-1])
            assert [row["message_id"] for row in quiet.events("message.received")] == ids

        async with otto.connected() as again:
            assert again.heard == [], "the hint of what waits is one of these"
            await again.call("meta.ping")
            await again.event("message.received", kind="message.online_unread_hint")


async def test_who_only_listens_hears_as_well(port: int, tina: Party, world: World) -> None:
    otto = party(port, world.acme.id, "otto")
    async with otto.connected() as listener, tina.connected() as sender:
        await sender.call("message.send", to=otto.aid, message_id="m-1", payload=text("hi"))
        await listener.event("message.received", message_id="m-1")


async def test_what_is_held_back_is_bounded_as_well(port: int, tina: Party) -> None:
    with patch.object(connection, "LISTENS_S", 600):
        async with tina.connected() as quiet:
            live = hub.of_process().of(*_only_key())[0]
            held = hub.of_process().connection(live.id)
            assert held is not None
            for _ in range(connection.MOST_FRAMES + 1):
                held.loop.call_soon_threadsafe(held.push, b"{}")
            assert await quiet.closed() == NORMAL
            assert quiet.heard == []


async def test_when_the_server_stops_every_socket_is_closed_with_a_code_that_lets_it_return(
    port: int, tina: Party
) -> None:
    async with tina.connected() as socket, raw(port) as stranger:
        loop = hub.of_process().connection(hub.of_process().of(*_only_key())[0].id)
        assert loop is not None
        closing = asyncio.run_coroutine_threadsafe(hub.of_process().close_all(), loop.loop)
        await asyncio.wrap_future(closing)

        assert await socket.closed() == NORMAL
        assert await stranger.closed() == NORMAL


async def _stopped(port: int, party: Party) -> tuple[Any, connection.Connection]:
    """A client that takes no more bytes, with small buffers, and its connection here."""
    listener = sockets.socket()
    listener.setsockopt(sockets.SOL_SOCKET, sockets.SO_RCVBUF, 4_096)
    listener.connect(("127.0.0.1", port))
    listener.setblocking(False)
    client = await websockets.connect(GATEWAY, sock=listener, ping_interval=None, max_queue=1)
    nonce = json.loads(await client.recv())["params"]["nonce"]
    params = party.connect_params(nonce, device={"id": "deaf"})
    request = {"jsonrpc": "2.0", "id": "c", "method": "auth.connect", "params": params}
    await client.send(json.dumps(request))
    assert "result" in json.loads(await client.recv())
    client.transport.pause_reading()
    here = hub.of_process().connection(hub.of_process().of(*_only_key())[0].id)
    assert here is not None
    return client, here


def _only_key() -> tuple[str, str]:
    (key,) = hub.of_process()._by_aid
    return key


def _rows(session: Session) -> int:
    return session.exec(select(func.count()).select_from(LiveConnection)).one()


async def _until(count: int) -> None:
    async with asyncio.timeout(20):
        while await db.read(_rows) != count:  # noqa: ASYNC110 - a socket's end tells nobody here
            await asyncio.sleep(0.01)


async def _until_settled() -> None:
    """Return when the only connection has nothing under way: its connecting is over."""
    only = hub.of_process().connection(hub.of_process().of(*_only_key())[0].id)
    assert only is not None
    async with asyncio.timeout(20):
        while only._running:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


def _evict(work: Work, tenant_id: str, aid: str, code: int) -> None:
    work.announce(Evicted(tenant_id=tenant_id, aid=aid, code=code, reason="test"))


def _block(work: Work, tenant_id: str, aid: str) -> None:
    found = work.session.get(Identity, (tenant_id, aid))
    assert found is not None
    found.status = IdentityStatus.BLOCKED
    work.session.add(found)
