"""Agents that work for fifty people, served or driven in a process of its own, for benches.

`python -m tests.bench.agents_at_work serve PORT FOLDER` is the whole application; `POST /say?who=3&
text=…` sends a message as a person, `GET /admitted` tells when each was. `… steps FOLDER` drives
runs without a server: a line `<runs> <steps>` is a round. The model says what the message asks for.
"""

import json
import os
import re
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast
from urllib.parse import parse_qs

import uvicorn
import uvloop
from sqlmodel import Session, col, select

from app.kernel.asgi.wire import Receive, Scope, Send
from app.runs.models.protocol import (
    Answered,
    Ask,
    Delta,
    Proposed,
    Response,
    ThoughtDelta,
)
from app.runs.outcome import Done
from app.runs.states import EntryKind
from app.runs.tool import Prepared, Tool

PEOPLE, TOKENS_PER_S = 50, 100
NAME, NOTHING = "bench", "do_nothing"
LIMITS = {
    "steps": 500, "tokens": 10**9, "active_s": 86_400, "concurrent": 100, "concurrent_per_user": 100
}  # fmt: skip


class Bidden:
    """A model that does what the last message says: `think`, `stream <s>`, or `steps <n>`."""

    provider = "scripted"
    name = label = NAME
    version = "1"
    context_tokens = 128_000
    ids_are_per_response = True

    async def stream(self, ask: Ask) -> AsyncIterator[Delta]:
        """Each token is the time at which it was made, in nanoseconds."""
        word, number, answers = _bidden(ask)
        thoughts: list[str] = []
        if word == "think":
            thoughts.append(_stamp())
            yield ThoughtDelta(thoughts[-1])
        if word == "stream":
            async for token in _paced(number):
                thoughts.append(token)
                yield ThoughtDelta(token)
        calls: tuple[Proposed, ...] = ()
        if word == "steps" and answers < number:
            given = f'{{"number": {answers}}}'
            calls = (Proposed(provider_id=f"b{answers}", name=NOTHING, arguments=given),)
        finish = "tool_calls" if calls else "stop"
        yield Answered(Response(thoughts=tuple(thoughts), calls=calls, finish=finish))


async def _paced(seconds: int) -> AsyncIterator[str]:
    import asyncio

    began = time.perf_counter()
    for count in range(seconds * TOKENS_PER_S):
        yield _stamp()
        await asyncio.sleep(max(0.0, began + (count + 1) / TOKENS_PER_S - time.perf_counter()))


def _stamp() -> str:
    return f"{time.time_ns()} "


def _bidden(ask: Ask) -> tuple[str, int, int]:
    answers = 0
    for entry in reversed(ask.entries):
        if entry.kind == EntryKind.RESPONSE:
            answers += 1
        if entry.kind == EntryKind.INPUT:
            word, _, number = entry.body["text"].partition(" ")
            return word, int(number or 0), answers
    return "", 0, answers


def _tool() -> Tool:
    """One whose call costs only what the engine makes of it."""

    async def run(_run: object, call: Prepared) -> Done:
        return Done(result={"number": call.given["number"], "text": "x" * 200})

    schema = {"type": "object", "properties": {"number": {"type": "integer"}}}
    return Tool(name=NOTHING, description="Does nothing.", schema=schema, run=run)


# --- the company ----------------------------------------------------------------------------------


def _open(folder: Path, **more: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {
        "ASSENT_DATA_DIR": str(folder),
        "ASSENT_STREAMS_PER_USER": "1000",
        "ASSENT_RATE_SESSIONS": "1000000/minute",
        "ASSENT_LOG_LEVEL": "ERROR",
        "ASSENT_MODEL": f"scripted:{NAME}",
        **more,
    }
    from app import main
    from app.kernel import logs, settings
    from app.runs import toolbox
    from app.runs.models import scripted

    logs.configure(as_json=True, level="error")
    settings.current.cache_clear()
    scripted._registered[NAME] = Bidden()  # type: ignore[assignment]
    cast("dict[str, Tool]", toolbox.discover())[NOTHING] = _tool()
    main.start(settings.current())


def _company() -> dict[str, Any]:
    """Tenant, agent and people, made by the first process that asks."""
    from app.identity import tenants
    from app.kernel import db

    if db.read_now(tenants.by_slug, NAME) is None:
        db.transact_now(_make)
    return db.transact_now(_signed_in)


def _make(work: Any) -> None:
    from app.identity import agents, delegations, roles, tenants, users
    from app.identity.models import UserStatus
    from tests.runs.sessions import AT_WORK

    tenant, root = tenants.create(work, slug=NAME, name="Bench")
    active = UserStatus.ACTIVE
    admin = users.create(work, None, root, login="admin", display_name="Admin", status=active)
    content = {"instructions": "Help.", "limits": LIMITS}
    agent = agents.create(work, None, admin, code="helper", name="Helper", content=content)
    agents.publish(work, None, agent)
    member = roles.by_code(work.session, tenant.id, "member")
    assert member is not None
    for number in range(PEOPLE):
        login = f"person{number}"
        user = users.create(work, None, root, login=login, display_name=login, status=active)
        roles.assign(work, None, user, member, root)
        delegations.make_for(work, user, agent, AT_WORK)


def _signed_in(work: Any) -> dict[str, Any]:
    from app.console.live.handles import handle_of
    from app.identity import sessions, tenants
    from app.identity.models import Agent, User
    from app.identity.sessions import Browser

    tenant = tenants.by_slug(work.session, NAME)
    assert tenant is not None
    agent = work.session.exec(select(Agent).where(Agent.tenant_id == tenant.id)).one()
    people = work.session.exec(
        select(User).where(User.tenant_id == tenant.id, col(User.login).like("person%"))
    ).all()
    signed = []
    for user in people:
        secret = sessions.start(work, user, ["pwd"], Browser("", ""))
        found = sessions.find(work.session, secret)
        assert found is not None
        signed.append([user.aid, f"__Host-sid={secret}", handle_of(found.session.id)])
    return {"tenant": tenant.id, "agent": agent.aid, "people": signed}


def _said(work: Any, company: dict[str, Any], who: int, text: str) -> None:
    from tests.runs.agents import _say

    sender = company["people"][who][0]
    _say(work, company["tenant"], sender, company["agent"], {"type": "text", "text": text})


def _admitted(session: Session) -> list[float]:
    from app.runs.run_models import RunInput

    rows = session.exec(select(RunInput).order_by(col(RunInput.log_seq))).all()
    return [each.accepted_at.timestamp() if each.accepted_at else 0.0 for each in rows]


def _runs(session: Session) -> list[list[Any]]:
    from app.runs.run_models import Run

    rows = session.exec(select(Run).order_by(col(Run.id))).all()
    return [
        [each.state, each.claimed_by, each.lease_until.timestamp() if each.lease_until else 0.0]
        for each in rows
    ]


# --- served ---------------------------------------------------------------------------------------


def _serve(port: int, folder: Path) -> None:
    _open(folder, ASSENT_PORT=str(port))
    from app import main
    from app.kernel import db
    from app.operator import serve

    company = _company()
    made = main.create_app()

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in {"/say", "/admitted", "/runs"}:
            await made(scope, receive, send)
            return
        asked = parse_qs(scope["query_string"].decode())
        body = b"[]"
        if scope["path"] == "/say":
            who, text = int(asked["who"][0]), asked["text"][0]
            await db.transaction(_said, company, who, text)
        else:
            rows = await db.read(_admitted if scope["path"] == "/admitted" else _runs)
            body = json.dumps(rows).encode()
        length = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": body})

    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, log_config=None, access_log=False, lifespan="on",
        loop="uvloop", backlog=2_048,
    )  # fmt: skip
    serve.pass_over_what_stays()
    server = uvicorn.Server(config)
    startup = server.startup

    async def started(*arguments: Any, **named: Any) -> None:
        await startup(*arguments, **named)
        _tell({"company": company})

    server.startup = started  # type: ignore[method-assign]
    try:
        server.run()
    finally:
        main.stop()


# --- driven ---------------------------------------------------------------------------------------


def _drive(folder: Path) -> None:
    if profile := os.environ.get("BENCH_PROFILE"):
        _profile_threads(Path(profile))
    _open(folder)
    from app import main

    try:
        uvloop.run(_rounds(_company()))
    finally:
        main.stop()


async def _rounds(company: dict[str, Any]) -> None:
    from app.kernel import db
    from app.runs.scheduler import Scheduler

    scheduler = Scheduler(at_once=8)
    _tell("ready")
    for line in sys.stdin:
        runs, steps = map(int, line.split())
        for who in range(runs):
            await db.transaction(_said, company, who, f"steps {steps}")
        began, used = time.perf_counter(), time.process_time()
        await scheduler.drain()
        passed, used = time.perf_counter() - began, time.process_time() - used
        states = [row[0] for row in await db.read(_runs)]
        assert set(states) == {"completed"}, states
        _tell({"seconds": passed, "cpu_s": used, "steps": runs * steps})


def _profile_threads(folder: Path) -> None:
    """Write a profile of each thread of the product into `folder`."""
    import cProfile

    run, folder = threading.Thread.run, folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def profiled(thread: threading.Thread) -> None:
        profile = cProfile.Profile(time.thread_time)
        profile.runcall(run, thread)
        profile.dump_stats(folder / f"{re.sub(r'[^a-zA-Z0-9-]+', '_', thread.name)}.prof")

    threading.Thread.run = profiled  # type: ignore[method-assign,assignment]


def _tell(what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(int(sys.argv[2]), Path(sys.argv[3]))
    else:
        _drive(Path(sys.argv[2]))
