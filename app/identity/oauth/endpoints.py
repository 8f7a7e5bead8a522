"""The endpoints of clients: tokens, devices, registration, and the documents anyone may read.

They read no cookie. A form is `application/x-www-form-urlencoded`, at most 64 KiB, and a query
string is refused: what is secret does not belong into a log of addresses.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response
from starlette.requests import Request

from app.identity import signing_keys
from app.identity.doors import Door
from app.identity.oauth import cimd, device, metadata, possession, registration, server
from app.identity.oauth.adapter import NO_STORE, Answer, PlainRequest, claimed_client
from app.kernel import db, rates, settings
from app.kernel.db import Work
from app.kernel.errors import Busy, NotFound, TooMany

FORM = "application/x-www-form-urlencoded"
LARGEST = 64 * 1024
FIELDS_AT_MOST = 50
DEVICES = "device"
ANY_ORIGIN = {"Access-Control-Allow-Origin": "*"}
DOCUMENT_AGE = "public, max-age=3600"

router = APIRouter(include_in_schema=False)


class _Refused(Exception):
    """The request is none we read; the answer says why."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.body.get("error"))
        self.answer = answer


@router.get("/.well-known/oauth-authorization-server")
async def server_metadata() -> Response:
    """What this authorization server is and does (RFC 8414)."""
    return _document(metadata.of_server())


@router.get("/.well-known/oauth-protected-resource/{door}")
async def door_metadata(door: str) -> Response:
    """What a door is, and who makes tokens for it (RFC 9728)."""
    if door not in set(Door):
        raise NotFound
    return _document(metadata.of_door(Door(door)))


@router.get("/oauth/jwks")
async def jwks() -> Response:
    """The public keys: those that sign, will sign, and still verify."""
    await signing_keys.freshen()
    return _document({"keys": signing_keys.published()})


@router.options("/.well-known/oauth-authorization-server")
@router.options("/.well-known/oauth-protected-resource/{_door}")
@router.options("/oauth/jwks")
async def preflight_documents(_door: str = "") -> Response:
    """Any page may read the documents, without credentials."""
    allowed = {"Access-Control-Allow-Methods": "GET", "Access-Control-Allow-Headers": "*"}
    return Response(status_code=204, headers=ANY_ORIGIN | allowed)


@router.post("/oauth/token")
async def token(request: Request) -> Response:
    """Tokens for a code, a refresh token, a device code or a token of another agent."""
    return _allowing_origins(request, await _answer(request, server.token, known_only=True))


@router.options("/oauth/token")
async def preflight_token(request: Request) -> Response:
    """Pages of the origins the operator lists may ask for tokens, without credentials."""
    response = _allowing_origins(request, Response(status_code=204))
    if "access-control-allow-origin" in response.headers:
        response.headers["Access-Control-Allow-Methods"] = "POST"
        response.headers["Access-Control-Allow-Headers"] = "Authorization, Content-Type"
    return response


@router.post("/oauth/revoke")
async def revoke(request: Request) -> Response:
    """End a token of one's own, and its family."""
    return await _answer(request, possession.revoke, known_only=True)


@router.post("/oauth/introspect")
async def introspect(request: Request) -> Response:
    """What a token of one's own says, and whether it is live."""
    return await _answer(request, possession.introspect, known_only=True)


@router.post("/oauth/device_authorization")
async def device_authorization(request: Request) -> Response:
    """A code for a device, and one for the person who lets it in."""
    return await _answer(request, device.begin, rate=DEVICES)


@router.post("/oauth/register")
async def register(request: Request) -> Response:
    """Register a client, where the operator lets clients do so themselves."""
    if not settings.current().oauth_registration:
        raise NotFound
    try:
        rates.of_process().hit("register", _address(request))
        body = await _body(request, registration.LARGEST, "application/json")
    except TooMany as refused:
        return _too_many(refused)
    except _Refused as refused:
        return _response(refused.answer)
    wanted = registration.read(body)
    if isinstance(wanted, Answer):
        return _response(wanted)
    return _response(await db.transaction(registration.register, wanted))


async def _answer(
    request: Request,
    unit: Callable[[Work, PlainRequest], Answer],
    *,
    rate: str = "token",
    known_only: bool = False,
) -> Response:
    """Read the form once, run `unit` in one transaction, and answer."""
    try:
        plain = await _plain(request)
        _count(rate, plain, _address(request))
        await cimd.ensure(str(plain.payload.client_id or ""), known_only=known_only)
        return _response(await db.transaction(unit, plain))
    except _Refused as refused:
        return _response(refused.answer)
    except cimd.DocumentUnusable:
        return _response(_refusal("invalid_client", 401))
    except TooMany as refused:
        return _too_many(refused)
    except Busy:
        return _response(_refusal("temporarily_unavailable", 503))


def _count(rate: str, plain: PlainRequest, address: str) -> None:
    """One more of a client at its address; of devices, of an address, whatever client they name."""
    who = (address,) if rate == DEVICES else (claimed_client(plain), address)
    rates.of_process().hit(rate, *who)


async def _plain(request: Request) -> PlainRequest:
    if request.url.query:
        raise _Refused(_refusal("invalid_request", 400, "The query string must be empty."))
    headers = request.headers.getlist("authorization")
    if len(headers) > 1:
        raise _Refused(_refusal("invalid_request", 400, "There are two Authorization headers."))
    body = await _body(request, LARGEST, FORM)
    try:
        items = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=False,
            encoding="utf-8",
            errors="strict",
            max_num_fields=FIELDS_AT_MOST,
        )
    except ValueError as malformed:
        raise _Refused(_refusal("invalid_request", 400, "The form is malformed.")) from malformed
    if any("\x00" in name + value for name, value in items):
        raise _Refused(_refusal("invalid_request", 400, "The form is malformed."))
    authorization = headers[0] if headers else None
    return PlainRequest("POST", request.url.path, items, authorization=authorization)


async def _body(request: Request, largest: int, media_type: str) -> bytes:
    sent = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if sent != media_type:
        raise _Refused(_refusal("invalid_request", 415, f"Send {media_type}."))
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > largest:
            raise _Refused(_refusal("invalid_request", 413, "This is too large."))
    return body


def _document(content: dict[str, Any]) -> Response:
    return JSONResponse(content, headers={**ANY_ORIGIN, "Cache-Control": DOCUMENT_AGE})


def _response(answer: Answer) -> Response:
    response = JSONResponse(answer.body, answer.status)
    for name, value in answer.headers:
        response.headers[name] = value
    return response


def _refusal(error: str, status: int, description: str = "") -> Answer:
    body = {"error": error} | ({"error_description": description} if description else {})
    return Answer(status, body, list(NO_STORE))


def _too_many(refused: TooMany) -> Response:
    response = _response(_refusal("slow_down", 429))
    response.headers["Retry-After"] = str(refused.retry_after_s)
    return response


def _allowing_origins(request: Request, response: Response) -> Response:
    origin = request.headers.get("origin", "")
    response.headers["Vary"] = "Origin"
    if origin and origin in settings.current().cors_origins:
        response.headers["Access-Control-Allow-Origin"] = origin
    return response


def _address(request: Request) -> str:
    return request.client.host if request.client else ""
