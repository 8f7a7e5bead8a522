"""Serve the console and all doors."""

import argparse
import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI

from app import main
from app.aun.frames import LONGEST_FRAME
from app.aun.gateway import hub
from app.commands import registry
from app.identity import setup
from app.kernel import db, logs, settings, streams
from app.kernel.abortable_socket import AbortableSocket
from app.kernel.bounded_head import BoundedHead
from app.kernel.settings import Settings
from app.operator.refusing import Refused, chosen_settings, opened

if TYPE_CHECKING:
    from app.identity.demo import DemoResult

BACKLOG = 2_048
AT_ONCE = 4_096  # connections; idle ones count as well (SEC-49)
SOCKETS: dict[str, Any] = {  # of AUN; frames of its clients hardly get smaller by compression
    "ws": AbortableSocket,
    "ws_max_size": LONGEST_FRAME,
    "ws_ping_interval": 20,
    "ws_per_message_deflate": False,
}
COLLECT = (10_000, 20, 20)  # garbage is looked for after so many new objects, not after 700
LAST_WORDS_S = 5  # how long open requests may take when the server stops


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to listen, where the data is, and whether to fill it with examples."""
    parser.add_argument("--host", help="address to listen on (ASSENT_HOST, 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (ASSENT_PORT, 8000)")
    parser.add_argument("--data", type=Path, help="folder of database and keys (ASSENT_DATA_DIR)")
    parser.add_argument("--demo", action="store_true", help="fill an empty database with examples")
    parser.add_argument(
        "--credentials", type=Path, help="with --demo: write the sign-ins to this file, mode 0600"
    )


def run(chosen: argparse.Namespace) -> int:
    """Serve until a signal says stop.

    Raises:
        Refused: settings, keys or database do not allow it.
    """
    _into_environment(chosen)
    given = chosen_settings()
    as_json = given.log_format == "json" or (given.log_format == "auto" and not sys.stderr.isatty())
    logs.configure(as_json=as_json, level=given.log_level.lower())
    with opened():
        app = main.create_app()  # before passwords are made that are shown only once
        welcome = _prepare(given, chosen)
        pass_over_what_stays()
        factory = _config(given, app, given.port).get_loop_factory()
        with asyncio.Runner(loop_factory=factory) as runner:  # uvloop: `serve` takes what runs
            return runner.run(_serve(given, app, welcome))


def pass_over_what_stays() -> None:
    """Let the collector leave alone what is loaded: to walk it took a sixth of the loop's time."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT)


def _into_environment(chosen: argparse.Namespace) -> None:
    for name, value in (
        ("ASSENT_HOST", chosen.host),
        ("ASSENT_PORT", chosen.port),
        ("ASSENT_DATA_DIR", chosen.data),
    ):
        if value is not None:
            os.environ[name] = str(value)
    settings.current.cache_clear()


def _prepare(given: Settings, chosen: argparse.Namespace) -> str:
    """Examples and the setup link; returns what to tell the operator once the server is ready."""
    lines = ["", f"  Assent is at {given.origin}"]
    if chosen.demo:
        lines += _demo(given, chosen.credentials)
    elif (url := _setup_url(given)) is not None:
        lines += ["  Nobody can sign in yet. Set it up within the hour, with this link:", ""]
        lines += [f"    {url}"]
    return "\n".join([*lines, "", ""])


def _setup_url(given: Settings) -> str | None:
    secret = db.transact_now(setup.make_link)
    return f"{given.origin}/setup/{secret}" if secret else None


def _demo(given: Settings, credentials: Path | None) -> list[str]:
    from app.aun import demo as _conversations  # noqa: F401, PLC0415 - likewise: a step of it
    from app.identity import demo  # noqa: PLC0415 - what a start without --demo does not need
    from app.runs import demo as _runs  # noqa: F401, PLC0415 - a step after it

    registry.import_demos()
    if credentials is not None:
        demo.check_credentials(credentials)  # before passwords are made that could not be kept
    seeded = asyncio.run(demo.seed(given))
    if credentials is not None:
        demo.write_credentials(credentials, seeded, _setup_url(given))
    return _sign_ins(seeded)


def _sign_ins(seeded: "DemoResult") -> list[str]:
    made = [person for person in seeded.users if person.password]
    if not made:
        return ["  The demo workspace is there; its passwords were printed when it was made."]
    rows = [
        f"    {one.tenant:<10}{one.username:<12}{one.password:<20}{', '.join(one.roles)}"
        for one in made
    ]
    return ["  The demo workspace was made. These passwords are shown once:", "", *rows]


async def _serve(given: Settings, app: FastAPI, welcome: str) -> int:
    servers = [_Server(_config(given, app, given.port))]
    if given.tls_port is not None:
        if given.tls_cert is None or given.tls_key is None:
            raise Refused("ASSENT_TLS_PORT needs ASSENT_TLS_CERT and ASSENT_TLS_KEY.")
        servers.append(_Companion(_config(given, app, given.tls_port, tls=True)))
    tasks = [asyncio.create_task(server.serve()) for server in servers]
    telling = asyncio.create_task(_tell(servers, welcome))
    await tasks[0]
    for server in servers[1:]:
        server.should_exit = True
    await asyncio.gather(*tasks)
    telling.cancel()
    return 0 if servers[0].started else 1


async def _tell(servers: "list[_Server]", welcome: str) -> None:
    for server in servers:
        await server.ready.wait()
    sys.stdout.write(welcome)
    sys.stdout.flush()


def _config(given: Settings, app: FastAPI, port: int, *, tls: bool = False) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=given.host,
        port=port,
        http=BoundedHead,
        **SOCKETS,
        loop="uvloop",
        lifespan="off" if tls else "on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        backlog=BACKLOG,
        limit_concurrency=AT_ONCE,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=LAST_WORDS_S,
        ssl_certfile=given.tls_cert if tls else None,
        ssl_keyfile=given.tls_key if tls else None,
    )


class _Server(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = asyncio.Event()

    async def startup(self, sockets: "list[object] | None" = None) -> None:  # type: ignore[override]
        """Listen."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if self.started:
            self.ready.set()

    async def shutdown(self, sockets: "list[object] | None" = None) -> None:  # type: ignore[override]
        """End the streams, and AUN's sockets with 1000: after uvicorn's 1012 clients stay away."""
        streams.of_process().leave_all()
        await hub.of_process().close_all()
        await super().shutdown(sockets)  # type: ignore[arg-type]


class _Companion(_Server):
    """A second listener of the same process; signals are the first one's."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave them alone."""
        yield
