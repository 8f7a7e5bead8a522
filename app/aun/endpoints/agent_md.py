"""`/agent.md`: the card of the AID whose name was asked for."""

import asyncio
from datetime import UTC
from email.utils import format_datetime

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from sqlmodel import Session

from app.aun import cards, tokens
from app.aun.cards import Card, CardInvalid, CardTooLarge, Ownership, Signing, Upload
from app.aun.endpoints import hosts
from app.aun.errors import BadParams, BadToken, NotAdmitted
from app.aun.pki import issuers
from app.kernel import db
from app.kernel.errors import NotFound

MARKDOWN = "text/markdown; charset=utf-8"

router = APIRouter(include_in_schema=False)


@router.api_route("/agent.md", methods=["GET", "HEAD"])
async def read(request: Request) -> Response:
    """The card, or 404; who owns a group is said with either."""
    tenant_id, aid = _whose(request)
    found = await db.read(cards.look, tenant_id, aid)
    card = found.card
    if found.is_to_write:
        card = await db.transaction(cards.written, tenant_id, aid)
    headers = _ownership(found.owner)
    if card is None:
        return Response(status_code=404, headers=headers)
    headers |= {"ETag": card.etag, "Last-Modified": _http_date(card)}
    if request.headers.get("if-none-match") == card.etag:
        return Response(status_code=304, headers=headers)
    return Response(card.text, headers=headers, media_type=MARKDOWN)


@router.put("/agent.md")
async def write(request: Request) -> JSONResponse:
    """Keep a card: of the AID of the token, or of a group it owns."""
    tenant_id, aid = _whose(request)
    by = await db.read(_bearer, tenant_id, request.headers.getlist("authorization"))
    raw = await request.body()
    if len(raw) > cards.LONGEST:
        raise CardTooLarge
    upload = Upload(tenant_id, aid, _text(raw), _condition(request))
    found: Signing = await db.read(cards.signing, upload, by)
    await asyncio.to_thread(cards.check, upload, found)
    card = await db.transaction(cards.put, upload)
    told = {"aid": aid, "etag": card.etag, "last_modified": _http_date(card)}
    return JSONResponse(told, headers={"ETag": card.etag})


def _whose(request: Request) -> tuple[str, str]:
    aid = hosts.name(request)
    tenant_id = issuers.tenant_of(aid)
    if tenant_id is None:
        raise NotFound
    return tenant_id, aid


def _bearer(session: Session, tenant_id: str, presented: list[str]) -> str:
    scheme, _, token = presented[0].partition(" ") if len(presented) == 1 else ("", "", "")
    if scheme.lower() != "bearer":
        raise BadToken("an AUN access token is needed")
    of_tenant, aid = tokens.verify(session, token)
    if of_tenant != tenant_id:
        raise NotAdmitted("this card is not yours to write")
    return aid


def _text(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        raise CardInvalid("not UTF-8") from fault
    if "\x00" in text:  # PostgreSQL keeps none
        raise CardInvalid("it holds a NUL")
    return text


def _condition(request: Request) -> str | None:
    """The mark of the card it builds on, None where there must be none."""
    none, match = request.headers.get("if-none-match"), request.headers.get("if-match")
    if (none is None) == (match is None) or none not in {None, "*"}:
        raise BadParams("exactly one of If-None-Match: * and If-Match: <etag> is needed")
    return match


def _ownership(owner: Ownership | None) -> dict[str, str]:
    if owner is None:
        return {}
    return {
        "X-AUN-Entity-Owner-Aid": owner.owner_aid,
        "X-AUN-Entity-Cert-Fingerprint": owner.fingerprint,
        "X-AUN-Ownership-Status": "not_applicable",
        "X-AUN-Entity-Verification-Status": "current" if owner.is_current else "stale",
    }


def _http_date(card: Card) -> str:
    return format_datetime(card.at.astimezone(UTC), usegmt=True)
