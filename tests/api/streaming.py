"""The events endpoint on a real server of this process, and clients that read it slowly or not."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import uvicorn
from fastapi import FastAPI
from starlette.middleware import Middleware

from app.api import events, problems
from app.identity import sessions
from app.identity.cookies import Cookies
from app.identity.models import (
    Grant,
    Org,
    Permission,
    Role,
    RoleAssignment,
    Tenant,
    User,
    UserStatus,
)
from app.identity.sessions import Browser
from app.kernel import clock, db, event_log, ids, streams
from app.kernel.db import Work

PATIENCE_S = 60


@contextmanager
def served(app: FastAPI | None = None) -> Iterator[int]:
    """The endpoint, or another application, on a free port of 127.0.0.1."""
    app = app or _endpoint()
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    # accepted sockets inherit it: a reader that stops is felt at once, not after megabytes
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16 * 1024)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        thread.join()
        listener.close()


def _endpoint() -> FastAPI:
    app = FastAPI(middleware=[Middleware(Cookies)])
    app.include_router(events.router)
    problems.install(app)
    return app


async def until_open(is_so: Callable[[int], bool]) -> None:
    """Return once the number of open streams is as asked: a client learns of an end before it."""
    async with asyncio.timeout(PATIENCE_S):
        while not is_so(streams.of_process().count()):  # noqa: ASYNC110 - closing tells nobody
            await asyncio.sleep(0.01)


@dataclass(frozen=True)
class SignedIn:
    """A person with a session."""

    tenant_id: str
    user_id: str
    cookie: str
    session_id: str


def person(login: str, *permissions: str, tenant_id: str = "") -> SignedIn:
    """A new person who holds `permissions` everywhere in their tenant, signed in."""
    return db.transact_now(_make, login, permissions, tenant_id)


def log(tenant_id: str, subject: str, **more: Any) -> int:
    """Log an event."""
    return db.transact_now(event_log.append, tenant_id, "test.happened", subject, {}, **more)


def _make(work: Work, login: str, permissions: tuple[str, ...], tenant_id: str) -> SignedIn:
    now = clock.now()
    if not tenant_id:
        tenant_id = ids.ulid()
        work.session.add(Tenant(id=tenant_id, slug=tenant_id.lower(), name="Acme", created_at=now))
        work.session.flush()
    org = Org(tenant_id=tenant_id, id=ids.ulid(), path=f"/{ids.ulid()}/", name="Acme")
    role = Role(tenant_id=tenant_id, id=ids.ulid(), code=login, name=login)
    user = User(
        tenant_id=tenant_id,
        id=ids.ulid(),
        login=login,
        display_name=login,
        org_id=org.id,
        status=UserStatus.ACTIVE,
        created_at=now,
    )
    work.session.add_all([org, role])
    work.session.flush()
    work.session.add(user)
    for permission in permissions:
        if work.session.get(Permission, permission) is None:
            work.session.add(Permission(code=permission, pack="t", title={}))
        work.session.add(
            Grant(tenant_id=tenant_id, role_id=role.id, permission=permission, data_scope="all")
        )
    work.session.flush()
    work.session.add(
        RoleAssignment(
            tenant_id=tenant_id, user_id=user.id, role_id=role.id, org_id=org.id, assigned_at=now
        )
    )
    secret = sessions.start(work, user, ["pwd"], Browser("", ""))
    signed = sessions.find(work.session, secret)
    assert signed is not None
    return SignedIn(tenant_id, user.id, f"__Host-sid={secret}", signed.session.id)


@dataclass(frozen=True)
class Frame:
    """One server-sent event."""

    name: str
    id: str
    data: Any


class Client:
    """A client that reads one stream, a line at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.raw = bytearray()

    @classmethod
    @contextlib.asynccontextmanager
    async def connected(
        cls, port: int, who: SignedIn, last_event_id: str = "", path: str = "/v1/events"
    ) -> Any:
        """A client whose answer has begun."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        client = cls(reader, writer)
        try:
            await client._ask(who, last_event_id, path)
            yield client
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _ask(self, who: SignedIn, last_event_id: str, path: str) -> None:
        resume = f"Last-Event-ID: {last_event_id}\r\n" if last_event_id else ""
        cookie = f"Cookie: {who.cookie}\r\n" if who.cookie else ""
        head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n{cookie}"
        self._writer.write(f"{head}{resume}\r\n".encode())
        self.status = int((await self._line()).split()[1])
        while line := await self._line():
            name, _, value = line.partition(": ")
            self.headers[name.lower()] = value

    async def frame(self) -> Frame | None:
        """The next event, comments left out; None at the end."""
        fields: dict[str, str] = {}
        while True:
            line = await self._text()
            if line is None:
                return None
            if not line and "data" in fields:
                data = fields["data"]
                is_json = data.startswith("{")
                name = fields.get("event", "message")
                return Frame(name, fields.get("id", ""), orjson.loads(data) if is_json else data)
            name, _, value = line.partition(": ")
            if name == "data" and "data" in fields:
                value = f"{fields['data']}\n{value}"
            if name:
                fields[name] = value

    async def until(self, name: str) -> Frame:
        """The next event of this name."""
        async with asyncio.timeout(60):
            while (frame := await self.frame()) is not None:
                if frame.name == name:
                    return frame
        raise AssertionError(f"the stream ended before {name}")

    async def rest(self) -> list[Frame]:
        """Everything until the stream ends."""
        found = []
        async with asyncio.timeout(60):
            while (frame := await self.frame()) is not None:
                found.append(frame)
        return found

    async def _text(self) -> str | None:
        """A line of the body; the chunks of HTTP are one line of length and one of content."""
        while b"\r\n" not in self._body:
            size = (await self._line()) or ""
            if not size or size == "0":
                return None
            self._body += (await self._reader.readexactly(int(size, 16) + 2))[:-2]
        line, _, self._body = self._body.partition(b"\r\n")
        self.raw += line
        return line.decode()

    async def _line(self) -> str:
        try:
            return (await self._reader.readuntil(b"\r\n"))[:-2].decode()
        except (asyncio.IncompleteReadError, ConnectionError):
            return ""

    _body = b""
