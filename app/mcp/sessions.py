"""Sessions of the older revision: few for each agent of a user; the oldest idle one makes room.

The SDK bounds all of them together: without shares, a client that begins anew for each call would
lock everybody out (SEC-66).
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from app.kernel.asgi.wire import App, Message, Receive, Scope, Send
from app.kernel.errors import TooMany
from app.kernel.i18n import N_
from app.mcp import entered

MOST = 20  # of an agent for a user
SESSION, REVISION = b"mcp-session-id", b"mcp-protocol-version"


class TooManySessions(TooMany):
    """All sessions this agent may have for this user are at work."""

    reason = "too_many_sessions"
    says = N_("Too many sessions of this agent are at work. End one and try again.")


@dataclass(eq=False, slots=True)
class _Session:
    """One session, or one that is about to begin: then it has no id.

    Attributes:
        at_work: requests and streams that go on.
        lapse: when it is over, if nothing comes.
    """

    owner: tuple[str, str, str]
    id: str = ""
    at_work: int = 0
    lapse: asyncio.TimerHandle | None = None


class Sessions:
    """Stands before the SDK's application and sees sessions begin, work and end.

    `ended` hears of each that is over, by its id.
    """

    def __init__(self, app: App, idle_s: float, ended: Callable[[str], None]) -> None:
        self._app, self._idle_s, self._ended = app, idle_s, ended
        self._known: dict[str, _Session] = {}
        self._held: dict[tuple[str, str, str], list[_Session]] = {}  # the last used comes last

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request.

        Raises:
            TooManySessions: it would begin one too many.
        """
        headers = dict(reversed(scope["headers"]))
        revision, id = headers.get(REVISION), headers.get(SESSION)
        if revision is not None and revision.decode("latin-1") not in HANDSHAKE_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
        elif id is None:
            await self._begin(scope, receive, send)
        else:
            await self._go_on(id.decode("latin-1"), scope, receive, send)

    def end_all(self) -> None:
        """Forget every session; the SDK's are over by themselves."""
        for session in [each for held in self._held.values() for each in held]:
            self._forget(session)

    async def _begin(self, scope: Scope, receive: Receive, send: Send) -> None:
        session = await self._admit(scope)

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start" and int(message["status"]) < 400:
                id = dict(message["headers"]).get(SESSION)
                if id is not None:
                    session.id = id.decode()
                    self._known[session.id] = session
            await send(message)

        try:
            with self._working(session):
                await self._app(scope, receive, watched)
        finally:
            if not session.id:
                self._forget(session)

    async def _go_on(self, id: str, scope: Scope, receive: Receive, send: Send) -> None:
        session = self._known.get(id)
        if session is None or session.owner != _owner(scope):
            await self._app(scope, receive, send)  # which knows it no better
            return
        is_over = False

        async def watched(message: Message) -> None:
            nonlocal is_over
            if message["type"] == "http.response.start":
                status = int(message["status"])
                is_over = status == 404 or (scope["method"] == "DELETE" and status < 400)
            await send(message)

        with self._working(session):
            await self._app(scope, receive, watched)
        if is_over:
            self._forget(session)

    async def _admit(self, scope: Scope) -> _Session:
        """A place for one more, if need be that of the one that was idle longest."""
        owner = _owner(scope)
        while len(held := self._held.get(owner, [])) >= MOST:
            idle = next((each for each in held if not each.at_work), None)
            if idle is None:
                raise TooManySessions(retry_after_s=5)
            self._forget(idle)
            await self._end(idle, scope)
        session = _Session(owner)
        self._held.setdefault(owner, []).append(session)
        return session

    async def _end(self, session: _Session, scope: Scope) -> None:
        """Let the SDK end a session as its client would."""
        host = [pair for pair in scope["headers"] if pair[0] == b"host"]
        headers = [*host, (SESSION, session.id.encode())]
        await self._app({**scope, "method": "DELETE", "headers": headers}, _no_body, _unheard)

    @contextmanager
    def _working(self, session: _Session) -> Iterator[None]:
        session.at_work += 1
        if session.lapse is not None:
            session.lapse.cancel()
        held = self._held[session.owner]
        held.remove(session)
        held.append(session)
        try:
            yield
        finally:
            session.at_work -= 1
            if not session.at_work and session in self._held.get(session.owner, ()):
                later = asyncio.get_running_loop().call_later
                session.lapse = later(self._idle_s, self._forget, session)

    def _forget(self, session: _Session) -> None:
        """It is over; harmless when it was forgotten."""
        held = self._held.get(session.owner, [])
        if session not in held:
            return
        held.remove(session)
        if not held:
            del self._held[session.owner]
        if session.lapse is not None:
            session.lapse.cancel()
        if self._known.pop(session.id, None) is not None:
            self._ended(session.id)


def _owner(scope: Scope) -> tuple[str, str, str]:
    """Whose a session is: this agent's, for this user; a new token changes nothing."""
    claims = entered.of(scope).claims
    return claims.tid, claims.sub, claims.actors[0]


async def _no_body() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def _unheard(_message: Message) -> None:
    """Nobody asked."""
