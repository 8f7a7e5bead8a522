"""`POST /aun/rpc`: the same methods without a socket, for integrators (aun.md, 15)."""

import base64
import binascii
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.aun import frames, identities, queries, rpc, tokens
from app.aun.caller import HTTP_DEVICE, Caller, Door, slot_key
from app.aun.errors import AunError, BadParams, BadRequestFrame, NotAdmitted, Throttled
from app.aun.frames import Refusal
from app.aun.models import ID_LENGTH, IdentityKind, IdentityStatus
from app.identity import bearer, deps
from app.identity.doors import Door as TokenDoor
from app.identity.errors import AmbiguousCredentials
from app.identity.principal import Principal, Scope
from app.identity.tokens import InvalidToken
from app.kernel import db, ids, json
from app.kernel.errors import AppError, BadRequest
from app.kernel.i18n import N_

LONGEST_BATCH = 20
JSON = "application/json"

router = APIRouter(tags=["messages"])


class NotJsonType(AppError):
    """The body says it is something else."""

    reason = "unsupported_media_type"
    status = 415
    says = N_("Send JSON.")


_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"description": "Results or errors, one for each request.", "content": {JSON: {}}},
    204: {"description": "Nothing but notifications was sent."},
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "description": "A JSON-RPC 2.0 request, or a list of up to 20.",
                    "required": ["jsonrpc", "method"],
                    "properties": {
                        "jsonrpc": {"const": "2.0"},
                        "id": {"type": ["string", "integer"]},
                        "method": {"type": "string"},
                        "params": {"type": "object"},
                    },
                },
                "examples": {
                    "send": {
                        "summary": "Write to somebody.",
                        "value": {
                            "jsonrpc": "2.0",
                            "id": 1,
                            "method": "message.send",
                            "params": {
                                "to": "eva.example.com",
                                "message_id": "m-1",
                                "payload": {"type": "text", "text": "The report is ready."},
                            },
                        },
                    }
                },
            }
        },
    }
}


@router.post("/aun/rpc", responses=_ANSWERS, openapi_extra=_BODY, response_class=Response)
async def twin(request: Request) -> Response:
    """Run methods of AUN without a socket.

    One request, or up to twenty, run as an AID.
    The credential says which: an AUN access token of an outside AID, an OAuth token of an agent for
    `{base}/aun` with `aun.message`, or a person's session. There are no pushes: poll
    `message.v2.pull`, or read `/v1/events`.
    """
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise NotJsonType
    caller = await _caller(request)
    try:
        value = frames.value_of(await request.body())
    except Refusal as refused:
        return _told(frames.failure(refused.id, refused.error, ids.ulid()))
    if not isinstance(value, list):
        return _single(await _answer(caller, value))
    if not 0 < len(value) <= LONGEST_BATCH:
        too_many = BadRequestFrame("a batch has one to twenty requests")
        return _told(frames.failure(None, too_many, ids.ulid()))
    answers = [told for each in value if (told := await _answer(caller, each)) is not None]
    return _told(b"[" + b",".join(answers) + b"]") if answers else Response(status_code=204)


async def _answer(caller: Caller, value: Any) -> bytes | None:
    try:
        call = frames.request_of(value)
    except Refusal as refused:
        return frames.failure(refused.id, refused.error, ids.ulid())
    return await rpc.answer(caller, call)


def _single(told: bytes | None) -> Response:
    if told is None:
        return Response(status_code=204)
    error = json.loads(told).get("error") if b'"error"' in told[:200] else None
    if error and error["code"] == Throttled.code:
        wait_s = max(1, -(-int(error["data"].get("retry_after_ms", 1_000)) // 1_000))
        return _told(told, 429, {"Retry-After": str(wait_s)})
    return _told(told)


def _told(body: bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type=JSON)


async def _caller(request: Request) -> Caller:
    slot = request.headers.get("aun-slot", "default")
    if len(slot) > ID_LENGTH:
        raise BadRequest
    presented = request.headers.getlist("authorization")
    if not presented:
        person = await deps.person(request)
        return await db.read(identities.caller_of_user, person, Door.HTTP, slot_key(slot))
    if await deps.signed_of(request) is not None:
        raise AmbiguousCredentials
    if _is_ours(presented[0]):
        return await _outside(presented, slot)
    agent = await bearer.agent_of(request, TokenDoor.AUN)
    bearer.require(agent, Scope.AUN_MESSAGE, TokenDoor.AUN)
    return await db.read(_of_agent, agent, slot_key(slot))


def _of_agent(session: Any, agent: Principal, slot: str) -> Caller:
    return identities.caller_of_agent(session, agent, Door.HTTP, slot)


async def _outside(presented: list[str], slot: str) -> Caller:
    if len(presented) != 1:
        raise InvalidToken
    try:
        return await db.read(_of_token, presented[0].partition(" ")[2], slot_key(slot))
    except AunError as refused:
        if isinstance(refused, BadParams):
            raise
        raise InvalidToken from refused


def _of_token(session: Any, token: str, slot: str) -> Caller:
    tenant_id, aid = tokens.verify(session, token)
    found = queries.identity(session, tenant_id, aid)
    is_fine = found is not None and found.kind == IdentityKind.OUTSIDE
    if not is_fine or found is None or found.status == IdentityStatus.BLOCKED:
        raise NotAdmitted("aid is blocked")
    return Caller(tenant_id, aid, IdentityKind.OUTSIDE, HTTP_DEVICE, slot, door=Door.HTTP)


def _is_ours(header: str) -> bool:
    """Whether a bearer says of itself that it is an AUN access token; `verify` decides."""
    head = header.partition(" ")[2].partition(".")[0]
    try:
        said = base64.urlsafe_b64decode(head + "=" * (-len(head) % 4))
        return bool(json.loads(said).get("typ") == tokens.TYPE)
    except (binascii.Error, ValueError, AppError, AttributeError):
        return False
