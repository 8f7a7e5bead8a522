"""`/.well-known/aun-gateway` and `/health`: where the gateway is, and whether it answers."""

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, PlainTextResponse

from app.aun.endpoints import hosts
from app.aun.pki import issuers
from app.kernel import db

router = APIRouter(include_in_schema=False)


@router.get("/.well-known/aun-gateway")
async def gateway(request: Request) -> JSONResponse:
    """The one gateway of the tenant, at the scheme and port that were asked.

    Clients keep the address until somebody deletes it: the path never changes.
    """
    domain = await db.read(issuers.domain_of, hosts.tenant(request))
    scheme = "wss" if request.url.scheme == "https" else "ws"
    url = f"{scheme}://gateway.{domain}{hosts.port(request)}/aun/ws"
    return JSONResponse({"gateways": [{"url": url, "priority": 1}]})


@router.get("/health")
async def health() -> PlainTextResponse:
    """What clients call `/healthz`."""
    return PlainTextResponse("ok")
