"""`/aun/ws`: from the challenge to the last frame of a socket (aun.md, 3)."""

import asyncio
from functools import partial

import structlog

from app.aun import frames, rpc
from app.aun.caller import Caller, Stranger
from app.aun.errors import AunError, BadParams, BadRequestFrame, Throttled
from app.aun.frames import Refusal, Request
from app.aun.gateway import handshake, hub, registry
from app.aun.gateway.connection import NORMAL, SHUT_OUT, Connection
from app.aun.gateway.handshake import Connect
from app.aun.outgoing import Live
from app.aun.pushes.message import hints
from app.kernel import clock, db, ids
from app.kernel.abortable_socket import abort_of, write_of
from app.kernel.asgi.wire import Receive, Scope, Send
from app.kernel.errors import AppError

CONNECT = "auth.connect"
PATIENCE_S = 30.0  # until a socket has authenticated

log = structlog.get_logger(__name__)


class Gateway:
    """The application at `/aun/ws`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one socket."""
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        await Socket(scope, receive, send).serve()


class Socket:
    """One socket: a stranger's first, a caller's once `auth.connect` succeeded."""

    __slots__ = ("_caller", "_connecting", "_connection", "_hub", "_live", "_receive", "_stranger")

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._connection = Connection(send, abort_of(scope), write_of(scope))
        self._stranger = Stranger(
            address=(scope.get("client") or ("", 0))[0], nonce=ids.random_token()
        )
        self._caller: Caller | None = None
        self._live: Live | None = None
        self._hub = hub.of_process()
        self._connecting = False

    async def serve(self) -> None:
        """Read until either side ends it."""
        self._hub.met(self._connection)
        now_s = clock.now().timestamp()
        self._connection.offer(frames.challenge(self._stranger.nonce, now_s))
        patience = self._connection.loop.call_later(PATIENCE_S, self._lose_patience)
        try:
            while (message := await self._receive())["type"] != "websocket.disconnect":
                text = message.get("text")
                if text is None:
                    self._refuse(None, BadRequestFrame("frames are text"))
                else:
                    self._take(text.encode())
        finally:
            patience.cancel()
            await asyncio.shield(self._part())

    def _take(self, raw: bytes) -> None:
        try:
            request = frames.read(raw)
        except Refusal as refused:
            self._refuse(refused.id, refused.error)
            return
        caller = self._caller
        if caller is not None:
            self._connection.release()
        work = partial(self._known, caller, request) if caller else partial(self._unknown, request)
        if not self._connection.run(work):
            self._refuse(request.id, Throttled("too many requests at once"))

    async def _known(self, caller: Caller, request: Request) -> bytes | None:
        if request.method == CONNECT:
            return self._failure(request.id, BadParams("connected already", retryable=False))
        return await rpc.answer(caller, request)

    async def _unknown(self, request: Request) -> bytes | None:
        try:
            if request.method == CONNECT:
                await self._connect(request)
                return None  # answered already, before anything could be pushed
            value = await rpc.call_before(self._stranger, request.method, request.params)
            return frames.result(request.id, value)
        except AunError as error:
            return self._failure(request.id, error)
        except AppError as error:
            return self._failure(request.id, rpc.in_aun_words(error))
        except Exception:
            trace_id = ids.ulid()
            log.exception("aun_method_failed", trace_id=trace_id)
            return frames.failure(request.id, rpc.Internal("internal error"), trace_id)

    async def _connect(self, request: Request) -> None:
        if self._connecting or self._caller is not None:
            raise BadParams("connected already", retryable=False)
        self._connecting = True
        try:
            await self._admit(request)
        finally:
            self._connecting = False

    async def _admit(self, request: Request) -> None:
        params = rpc.understood(Connect, request.params)
        found = await db.read(handshake.admitted, self._stranger, params)
        await db.transaction(registry.opened, found.live)
        if self._connection.is_over:  # gone meanwhile: `_part` knew of nothing to take back
            await self._forget(found.live)
            return
        self._connection.offer(frames.result(request.id, handshake.hello(found.live)))
        self._connection.hold()
        self._caller, self._live = found.caller, found.live
        self._hub.left(self._connection)
        self._hub.add(found.live, self._connection)
        if not await db.read(registry.stands, found.live):  # its eviction came before it was here
            self._connection.close(SHUT_OUT, "blocked")
            return
        if hint := await db.read(hints, found.caller):
            self._connection.push(frames.event("message.received", hint))

    def _refuse(self, request_id: frames.Id, error: AunError) -> None:
        self._connection.offer(self._failure(request_id, error))

    def _failure(self, request_id: frames.Id, error: AunError) -> bytes:
        return frames.failure(request_id, error, ids.ulid())

    def _lose_patience(self) -> None:
        if self._caller is None:
            self._connection.close(NORMAL, "not authenticated in time")

    async def _part(self) -> None:
        self._connection.is_over = True
        self._hub.left(self._connection)
        live = self._live
        if live is not None:
            self._hub.remove(live.id)
        await self._connection.end()
        if live is not None:
            await self._forget(live)

    async def _forget(self, live: Live) -> None:
        await db.transaction(registry.closed, live.tenant_id, live.id, live.aid)
