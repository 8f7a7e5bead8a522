"""`/v1/commands/{cmdCode}/calls`, `/v1/calls/{callId}`: running a command; what became of it.

Every call passes the pipeline; this door reads JSON strictly, counts, and puts outcomes into words.
"""

from dataclasses import replace
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import Annotated, Any, Literal, cast

from fastapi import APIRouter, Header, Path, Request
from fastapi.responses import JSONResponse, Response
from pydantic import Field, ValidationError

from app.api import direct
from app.api.direct import Direct, answered_by
from app.api.problem_docs import OF_CALLS, PROBLEMS
from app.api.wire import Wire
from app.commands import approvals, looking_up, pacing, pipeline
from app.commands.call import Call
from app.commands.outcome import Done
from app.commands.pacing import Pace
from app.identity import bearer, tokens
from app.identity.deps import Caller, person_or_claims
from app.identity.doors import Door
from app.identity.principal import Principal, Scope
from app.identity.tokens import Claims
from app.kernel import db, ids, json
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

router = APIRouter(prefix="/v1", tags=["calls"], route_class=Direct)

Ulid = Annotated[str, Field(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]
Ending = Literal["done", "replayed", "refused", "dispatched", "failed", "unknown"]
KEY = r"^[\x21-\x7e]{1,255}$"
_KEY = direct.Header("idempotency-key", Annotated[str, Field(pattern=KEY)])
NEEDS_INPUT = N_("Send the input, or name an approval of this call.")


class CallRequest(Wire):
    """One call; with `approvalId` the input may be left out, it is that of the approval."""

    input: dict[str, Any] | None = Field(None, examples=[{"title": "October, Shanghai"}])
    expected_version: int | None = Field(
        None, ge=1, le=2**31 - 1, description="Refuse the call if the record has another version."
    )
    preview: bool = Field(False, description="Show what it would change, and change nothing.")
    approval_id: Ulid | None = Field(None, description="A person's assent to exactly this call.")


class RecordFacts(Wire):
    """The target record afterwards."""

    id: str
    type: str
    version: int
    state: str


class UndoFacts(Wire):
    """The command that takes the call back, with its input."""

    cmd_code: str
    input: dict[str, Any]


class CallDone(Wire):
    """The call was done, or its repeat got the first answer."""

    call_id: str
    cmd_code: str
    version: int
    outcome: Literal["done", "replayed", "dispatched"]
    result: dict[str, Any]
    record: RecordFacts | None
    audit_seq: int
    undo: UndoFacts | None
    timings: dict[str, float] = Field(description="Milliseconds of each stage.")


class Shown(Wire):
    """What a call would change, before and after, and what it would send outside."""

    cmd_code: str
    version: int
    outcome: Literal["preview"]
    changes: list[dict[str, Any]]
    outside: list[dict[str, Any]]
    result: dict[str, Any]
    complete: bool = Field(description="False: a part could not be rehearsed.")
    digest: str
    timings: dict[str, float]


class CallState(Wire):
    """A call as it stands, for the caller who made it."""

    call_id: str
    cmd_code: str
    version: int | None
    outcome: Ending
    stage: str | None
    reason: str | None
    at: datetime
    audit_seq: int
    approval_id: str | None
    result: dict[str, Any] | None = Field(description="Kept for 24 hours.")
    record: RecordFacts | None
    undo: UndoFacts | None


_EXAMPLES = {
    "do": {
        "summary": "Do it, if the report still has the version that was seen.",
        "value": {
            "input": {
                "targetRecordId": "01JDXP5Y8GZ0000000000000AB",
                "operationType": "UPDATE",
                "note": "October, Shanghai",
            },
            "expectedVersion": 3,
        },
    },
    "preview": {
        "summary": "Show what it would change, and change nothing.",
        "value": {"input": {"title": "October, Shanghai", "period": "2026-10"}, "preview": True},
    },
    "approved": {
        "summary": "Do what a person assented to.",
        "value": {"approvalId": "01JDXP5Y8GZ0000000000000AF"},
    },
}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"$ref": "#/components/schemas/CallRequest"},
                "examples": _EXAMPLES,
            }
        },
    }
}
_DISPATCHED: dict[str, Any] = {
    "model": CallDone,
    "description": "Dispatched: the effect is outside and still to come.",
    "headers": {
        "Location": {
            "description": "Where what became of it will stand.",
            "schema": {"type": "string"},
        }
    },
}


async def _answer(request: Request) -> Response:
    code, key = request.path_params["cmdCode"], _KEY.read(request)
    who = await person_or_claims(request)
    asked = _read(await request.body())
    if isinstance(who, Principal):
        return await _answer_to(who, code, asked, key)
    async with pacing.paced(who.tid, who.dlg, code) as pace:
        is_later = asked.input is None or asked.preview
        if is_later or pace.is_full:  # an end of rights is said first
            caller = await db.look(tokens.principal_now, who)
            pace.count()
        if is_later:
            bearer.require(caller, _scope(caller), Door.V1)
            return await _answer_to(caller, code, asked, key)
        # whether the agent stands is asked in the transaction of its call: not before, and once
        made = partial(_call_of, who, code, asked, key, ids.ulid(), pace)
        return _said(await pipeline.execute_as(made))


@router.post(
    "/commands/{cmdCode}/calls",
    response_model=CallDone | Shown,
    openapi_extra=_BODY,
    responses={202: _DISPATCHED, **OF_CALLS},
)
@answered_by(_answer)
async def call(
    cmd_code: Annotated[str, Path(alias="cmdCode")],
    idempotency_key: Annotated[str | None, Header(pattern=KEY)] = None,
) -> None:
    """Run a command through the twenty stages, or rehearse it.

    Repeat a call whose answer you did not get with the same `Idempotency-Key`: it is done once.
    """


@router.get("/calls/{callId}", responses=PROBLEMS)
async def became(caller: Caller, call_id: Annotated[str, Path(alias="callId")]) -> CallState:
    """What became of a call of yours."""
    bearer.require(caller, Scope.COMMANDS_READ, Door.V1)
    found = await db.read(looking_up.of, caller, call_id)
    answer = found.answer or {}
    return CallState(
        call_id=found.call_id,
        cmd_code=found.code,
        version=found.version,
        outcome=cast(Ending, found.outcome),
        stage=found.stage,
        reason=found.reason,
        at=found.at,
        audit_seq=found.audit_seq,
        approval_id=found.approval_id,
        result=answer.get("result"),
        record=answer.get("record"),
        undo=answer.get("undo"),
    )


def _scope(caller: Principal) -> Scope:
    # which of the two a command takes is its own matter; one of them is needed for any
    read_only = not caller.has_scope(Scope.COMMANDS_INVOKE)
    return Scope.COMMANDS_READ if read_only else Scope.COMMANDS_INVOKE


def _read(body: bytes) -> CallRequest:
    sent = json.loads(body)
    try:
        return CallRequest.model_validate(sent, strict=True)
    except ValidationError as fault:
        raise Invalid(
            *(
                FieldError("/".join(map(str, each["loc"])), str(each["msg"]))
                for each in fault.errors(include_url=False, include_input=False)
            )
        ) from fault


async def _answer_to(caller: Principal, code: str, asked: CallRequest, key: str | None) -> Response:
    made = await _call(caller, code, asked, key)
    if asked.preview:
        shown = await pipeline.preview(made)
        return JSONResponse(shown.data())
    return _said(await pipeline.execute(made))


def _said(done: Done) -> Response:
    if done.outcome != "dispatched":
        return Response(json.dumps(done.data()), media_type="application/json")
    location = {"Location": f"/v1/calls/{done.call_id}"}
    return JSONResponse(done.data(), HTTPStatus.ACCEPTED, location)


def _call_of(
    claims: Claims,
    code: str,
    asked: CallRequest,
    key: str | None,
    call_id: str,
    pace: Pace,
    work: Work,
) -> Call:
    """The call of an agent, as it stands in this transaction."""
    caller = tokens.principal_now(work.connection, claims)
    pace.count()
    bearer.require(caller, _scope(caller), Door.V1)
    return _made(caller, code, asked, key, call_id)


def _made(caller: Principal, code: str, asked: CallRequest, key: str | None, call_id: str) -> Call:
    return Call(
        code=code,
        input=asked.input or {},
        principal=caller,
        call_id=call_id,
        idempotency_key=key,
        expected_version=asked.expected_version,
        approval_id=asked.approval_id,
        preview=asked.preview,
    )


async def _call(caller: Principal, code: str, asked: CallRequest, key: str | None) -> Call:
    if asked.input is not None:
        return _made(caller, code, asked, key, ids.ulid())
    if asked.approval_id is None:
        raise Invalid(FieldError("input", NEEDS_INPUT))
    approved = await db.read(approvals.call_of, caller, asked.approval_id)
    if approved.code != code:
        raise NotFound
    return replace(approved, idempotency_key=key or approved.idempotency_key)
