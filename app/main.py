"""The application: what starts with it, what it answers, and in which order a request passes.

The only module that knows every slice.
"""

import importlib
import pkgutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.middleware import Middleware
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app import api
from app.access import standing
from app.api import calls, description, problems
from app.audit import checkpoints, listening, repeats
from app.aun import (
    delivered,
    evictions,
    http_twin,
    identities,
    participation,
    retention,
    tokens,
)
from app.aun import endpoints as aun_endpoints
from app.aun.gateway import registry as connections
from app.aun.gateway.pusher import Pusher
from app.aun.gateway.socket import Gateway
from app.aun.groups import retention as group_retention
from app.aun.pki import issuers, renewal
from app.commands import (
    approval_closing,
    approval_execution,
    approval_warning,
    deciding,
    dispatcher,
    idempotency,
    publishing,
    registry,
    rights,
)
from app.console import assets, pages, refusals, signed_in
from app.console.live import stream
from app.console.viewer import Viewing
from app.identity import csrf, delegations, paging, setup, signing_keys, tidying
from app.identity.cookies import Cookies
from app.identity.oauth import endpoints as oauth
from app.kernel import clock, db, event_log, keyring, migrations, rates, sealing, settings, tracing
from app.kernel.asgi.bodies import AUN, DEFAULT, BodyLimit
from app.kernel.asgi.context import RequestContext
from app.kernel.asgi.csp_report import CspReports
from app.kernel.asgi.event_stream import Left
from app.kernel.asgi.faults import Faults
from app.kernel.asgi.headers import SecurityHeaders
from app.kernel.asgi.heads import HeadLimit
from app.kernel.asgi.hosts import HostCheck
from app.kernel.asgi.proxies import TrustedProxies
from app.kernel.asgi.sockets import SocketsAside
from app.kernel.schedule import Job, Schedule
from app.kernel.settings import Settings
from app.mcp.door import McpDoor
from app.mcp.serving import Serving
from app.runs import cancelling, ending
from app.runs.scheduler import Scheduler

VERSION = "0.1.0"
HOUR_S, MINUTE_S, RELOAD_S, LOOK_S = 3_600, 60, 5, 2
# FastAPI's own spans hold paths and queries (SEC-53); `RequestContext` makes ours.
NO_TELEMETRY: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


class _Application(FastAPI):
    """Pours streams once all layers have returned: one that is open holds none of them (S2)."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await super().__call__(scope, receive, send)
            return
        scope["app"] = self  # as Starlette does; what FastAPI does before, we use none of
        if self.middleware_stack is None:
            self.middleware_stack = self.build_middleware_stack()
        if scope["type"] != "http":
            await self.middleware_stack(scope, receive, send)
            return
        left = Left(scope)
        try:
            await self.middleware_stack(scope, receive, send)
        except BaseException:
            left.abandon()
            raise
        if left.is_filled:
            await left.pour(scope, receive, send)


def create_app() -> FastAPI:
    """The application with its layers; `start` opens what it needs when it is served."""
    chosen = settings.current()
    app = _Application(
        title="Assent",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
        redirect_slashes=False,  # a second address for each page helps nobody but an attacker
        lifespan=_lifespan,
        middleware=layers(chosen),
        telemetry=NO_TELEMETRY,
    )
    app.state.mcp = Serving(VERSION)
    app.router.routes.append(Route("/mcp", McpDoor(app.state.mcp)))  # before hundreds are asked
    for router in routers():
        app.include_router(router)
    problems.install(app)
    description.install(app, signed_in.is_page_path)
    refusals.install(app, signed_in.is_page)
    return app


def layers(chosen: Settings) -> list[Middleware]:
    """What a request passes, the outermost first."""
    return [
        Middleware(SocketsAside, sockets={"/aun/ws": sockets(chosen)}),
        Middleware(TrustedProxies, networks=chosen.trusted_proxies),  # who is the peer
        Middleware(RequestContext),  # id, log line, numbers, span
        Middleware(SecurityHeaders, is_https=chosen.origin.startswith("https:")),
        Middleware(Faults),  # the last resort for what nobody expected
        Middleware(HeadLimit),
        Middleware(
            HostCheck,
            public_url=chosen.origin,
            port=chosen.port,
            is_aun_name=issuers.is_name,
        ),
        Middleware(BodyLimit, by_prefix={"/aun": AUN, "/conversations": DEFAULT}),
        Middleware(CspReports, rates=rates.of_process()),
        Middleware(Cookies),
        Middleware(Viewing, load=signed_in.load, is_page=signed_in.is_page),
    ]


def sockets(chosen: Settings) -> TrustedProxies:
    """What a WebSocket of AUN passes: thousands rest for hours, so each layer counts."""
    names = HostCheck(
        Gateway(),
        public_url=chosen.origin,
        port=chosen.port,
        is_aun_name=issuers.is_name,
    )
    return TrustedProxies(HeadLimit(names), networks=chosen.trusted_proxies)


def start(chosen: Settings) -> None:
    """Open the keys and the database, bring the schema up to date, and begin to listen.

    Raises:
        MasterKeyProblem, SchemaTooNew: with what to do in the message.
    """
    chosen.data_dir.mkdir(parents=True, exist_ok=True)
    tracing.attach()
    registry.discover(chosen.packs_dir)
    rights.hand_in()
    sealing.open_with(chosen)
    migrations.upgrade(chosen.database)
    db.open(chosen.database)
    _ends.append(listening.listen())
    _ends.append(publishing.listen())
    _ends.append(approval_closing.listen())
    _ends.append(participation.hand_in())
    _ends.append(stream.listen())
    _ends.append(issuers.listen())
    _ends.append(identities.listen())
    _ends.append(evictions.listen())
    _ends.append(cancelling.listen())
    _ends.append(ending.listen())
    for purpose in (csrf.PURPOSE, paging.PURPOSE, deciding.PURPOSE):
        keyring.prepare(purpose)
    signing_keys.prepare()
    db.transact_now(setup.declare)
    publishing.sync_everywhere()
    issuers.prepare()
    identities.prepare()


def stop() -> None:
    """Let go of everything `start` opened."""
    while _ends:
        _ends.pop()()
    signing_keys.close()
    keyring.close()
    db.close()


_ends: list[Any] = []


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    keeper, schedule, teller = checkpoints.Keeper(), Schedule(jobs()), dispatcher.Dispatcher()
    keeper.start()
    schedule.start()
    teller.start()
    pusher, runs = Pusher(), Scheduler()
    runs.start()
    try:
        yield
    finally:
        await app.state.mcp.stop()
        await runs.stop()
        await pusher.stop()
        await teller.stop()
        schedule.stop()
        keeper.stop()


def jobs() -> list[Job]:
    """What has to happen now and then."""
    return [
        Job("end_delegations", 10 * MINUTE_S, delegations.sweep),
        Job("tidy", 10 * MINUTE_S, lambda: db.transact_now(tidying.tidy)),
        Job("rotate_keys", HOUR_S, lambda: db.transact_now(signing_keys.rotate_due)),
        Job("reload_keys", RELOAD_S, _reload_keys),
        Job("look_at_streams", LOOK_S, standing.look_at_streams),
        Job("close_repeats", MINUTE_S, repeats.sweep),
        Job("tidy_outcomes", 10 * MINUTE_S, lambda: db.transact_now(idempotency.tidy)),
        Job("warn_of_approvals", RELOAD_S, approval_warning.sweep),
        Job("expire_approvals", RELOAD_S, approval_closing.sweep),
        Job("carry_out_approved", RELOAD_S, approval_execution.carry_out_due),
        Job("trim_events", HOUR_S, _trim_events),
        Job("tidy_outbox", HOUR_S, dispatcher.tidy),
        Job("look_at_connections", 30, connections.seen),
        Job("renew_certificates", HOUR_S, renewal.renew_due),
        Job("rotate_aun_keys", HOUR_S, lambda: db.transact_now(tokens.rotate)),
        Job("tidy_aun_tokens", HOUR_S, lambda: db.transact_now(tokens.tidy)),
        Job("write_delivered", 1, delivered.write),
        Job("expire_messages", MINUTE_S, retention.expire),
        Job("trim_messages", HOUR_S, retention.trim),
        Job("forget_group_messages", HOUR_S, group_retention.sweep),
        Job("measure_outbox", MINUTE_S, dispatcher.measure),
    ]


def _reload_keys() -> None:
    # on SQLite a command of the operator is a process whose news we do not hear
    keyring.reload()
    signing_keys.reload()
    issuers.reload()


def _trim_events() -> None:
    keep = timedelta(days=settings.current().retention_events_days)
    event_log.trim(clock.now() - keep)


def routers() -> Iterator[APIRouter]:
    """Every router, in the order in which they are asked; a page or an API module is found."""
    yield calls.router  # most requests, before hundreds of routes are asked
    yield assets.router
    yield oauth.router
    yield http_twin.router
    for package in (aun_endpoints, api, pages):
        for module in _modules(package):
            router = getattr(module, "router", None)
            if isinstance(router, APIRouter) and router is not calls.router:
                yield router


def _modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in sorted(pkgutil.iter_modules(package.__path__), key=lambda each: each.name):
        yield importlib.import_module(f"{package.__name__}.{found.name}")
