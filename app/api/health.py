"""Is it up, can it work, and its numbers: for load balancers and Prometheus (SEC-88)."""

import ipaddress

from fastapi import APIRouter, Request
from fastapi.responses import PlainTextResponse, Response
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.kernel import db, metrics, settings
from app.kernel.asgi.proxies import WAS_FORWARDED
from app.kernel.errors import Busy, NotFound

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz() -> PlainTextResponse:
    """The process answers."""
    return PlainTextResponse("ok")


@router.get("/readyz")
async def readyz() -> PlainTextResponse:
    """The process can work: its database answers."""
    try:
        await db.read(_touch)
    except (SQLAlchemyError, Busy):
        return PlainTextResponse("not ready", 503)
    return PlainTextResponse("ok")


@router.get("/metrics")
async def numbers(request: Request) -> Response:
    """Prometheus' text form, for a peer on this machine or where the operator opened it."""
    if not (settings.current().metrics_open or _is_neighbour(request)):
        raise NotFound
    return Response(metrics.render(), media_type=metrics.CONTENT_TYPE)


def _touch(session: Session) -> None:
    session.connection().execute(text("SELECT 1 FROM tenant LIMIT 1"))


def _is_neighbour(request: Request) -> bool:
    if getattr(request.state, WAS_FORWARDED, False):
        return False  # the peer is a proxy on this machine, not the caller
    host = request.client.host if request.client else ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
