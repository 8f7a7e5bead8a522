"""How refusals look in the API's description: one shape, the reasons listed (CMD-7, CMD-8)."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.kernel.problems import MEDIA_TYPE

Advice = Literal[
    "fix_arguments",
    "wait_and_reread",
    "do_not_retry",
    "escalate_to_other_user",
    "reread_state",
    "report_to_user",
    "ask_user",
    "retry_later",
]


class ProblemError(BaseModel):
    """What is wrong with one field."""

    model_config = ConfigDict(extra="allow")

    pointer: str = Field(examples=["/amountMinor"])
    message: str = Field(description="For people, in the language of the request.")
    expected: str | None = None


class Problem(BaseModel):
    """RFC 9457; the details of a reason (`currentState`, `approvalId` …) are members besides."""

    model_config = ConfigDict(extra="allow", alias_generator=to_camel, populate_by_name=True)

    type: str = Field(examples=["/problems/illegal_state"])
    title: str
    status: int
    detail: str = Field(description="For people, in the language of the request.")
    reason: str = Field(examples=["illegal_state"])
    stage: str | None = Field(None, examples=["state_check"])
    advice: Advice | None = None
    call_id: str | None = None
    errors: list[ProblemError] | None = None


_SAID = {
    400: "The request cannot be read.",
    401: "No credential that counts.",
    403: "Not allowed: `permission_denied`, `sod_conflict`, `feature_not_entitled` …",
    404: "Not there, or not the caller's to see.",
    409: "As it stands it cannot be done: `illegal_state`, `version_conflict`, `in_flight` …",
    413: "Too large.",
    422: "The input does not do, or a rule does not hold.",
    428: "A person has to assent first: `approval_required`, with `approvalUrl`.",
    429: "Too often; see Retry-After.",
    500: "A fault of ours; nothing was changed.",
    503: "Busy; nothing was changed.",
}
_SAID |= {408: "The body was not whole in time.", 431: "The head of the request is too large."}
_ALWAYS = (400, 401, 403, 404, 408, 413, 422, 429, 431, 500, 503)  # wherever a program asks
_HEADERS = {
    401: ("WWW-Authenticate", "string", "Which tokens this door takes, and who gives them."),
    429: ("Retry-After", "integer", "Seconds until another try makes sense."),
    503: ("Retry-After", "integer", "Seconds until another try makes sense."),
}
_EXAMPLES: dict[int, dict[str, Any]] = {
    404: {
        "type": "/problems/not_found",
        "title": "Not Found",
        "status": 404,
        "detail": "There is nothing here, or it is not yours to see.",
        "reason": "not_found",
        "advice": "do_not_retry",
    },
    409: {
        "type": "/problems/illegal_state",
        "title": "Conflict",
        "status": 409,
        "detail": "It stands at submitted; this is possible from draft, rejected.",
        "reason": "illegal_state",
        "advice": "reread_state",
        "stage": "state_check",
        "callId": "01JDXP5Y8GZ0000000000000AE",
        "currentState": "submitted",
        "allowedFrom": ["draft", "rejected"],
    },
    422: {
        "type": "/problems/invalid_input",
        "title": "Unprocessable Entity",
        "status": 422,
        "detail": "Some fields need another look.",
        "reason": "invalid_input",
        "advice": "fix_arguments",
        "stage": "schema_validate",
        "callId": "01JDXP5Y8GZ0000000000000AE",
        "errors": [{"pointer": "/period", "message": "2026-13 does not do."}],
    },
    428: {
        "type": "/problems/approval_required",
        "title": "Precondition Required",
        "status": 428,
        "detail": "A person has to assent to exactly this call before it runs.",
        "reason": "approval_required",
        "advice": "ask_user",
        "stage": "approval_check",
        "callId": "01JDXP5Y8GZ0000000000000AE",
        "approvalId": "01JDXP5Y8GZ0000000000000AF",
        "approvalUrl": "https://assent.example/approvals/01JDXP5Y8GZ0000000000000AF",
        "expiresAt": "2026-10-14T09:40:00.000000Z",
    },
}


def problem_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may refuse with these statuses."""
    return {status: _response(status) for status in statuses}


def _response(status: int) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": {"$ref": "#/components/schemas/Problem"}}
    if status in _EXAMPLES:
        content["example"] = _EXAMPLES[status]
    made: dict[str, Any] = {"description": _SAID[status], "content": {MEDIA_TYPE: content}}
    if status in _HEADERS:
        name, kind, says = _HEADERS[status]
        made["headers"] = {name: {"description": says, "schema": {"type": kind}}}
    return made


PROBLEMS = problem_responses(*_ALWAYS)  # of every route for programs
OF_CALLS = problem_responses(*_ALWAYS, 409, 428)  # of one that runs commands
