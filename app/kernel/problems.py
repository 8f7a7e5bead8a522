"""A refusal as data: RFC 9457 problems, in the language of the request.

Doors add what only they know (stage, call id); nothing else about the inside gets out (CMD-8).
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import orjson

from app.kernel import i18n
from app.kernel.errors import AppError, Invalid, TooMany

MEDIA_TYPE = "application/problem+json"
BUSY_RETRY_S = 1  # a 503 of ours is over soon


def words(says: str, facts: Mapping[str, Any]) -> str:
    """The English source text `says` in the language of the request, its facts filled in."""
    text = i18n.gettext(says)
    return text % facts if "%(" in text else text


def problem_of(error: AppError, detail: str = "", **more: Any) -> dict[str, Any]:
    """`error` as the members of a problem; facts and `more` follow the standard ones.

    `detail` stands where the words of the error are not its own but those of a rule.

    Names become camelCase, as everything on the wire; the standard members cannot be replaced.
    """
    status = HTTPStatus(error.status)
    problem: dict[str, Any] = {
        "type": f"/problems/{error.reason}",
        "title": status.phrase,
        "status": status.value,
        "detail": detail or words(error.says, error.facts),
        "reason": error.reason,
    }
    if error.advice:
        problem["advice"] = error.advice
    if isinstance(error, Invalid):
        problem["errors"] = [
            {"pointer": one.pointer, "message": words(one.says, one.facts)} for one in error.errors
        ]
    extra = {_camel(name): value for name, value in {**error.facts, **more}.items()}
    return extra | problem if extra.keys() & problem.keys() else problem | extra


def render(error: AppError, **more: Any) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of the answer that says `error`."""
    headers = {
        "content-type": MEDIA_TYPE,
        "content-language": i18n.language(),
        "cache-control": "no-store",
    }
    if (seconds := retry_after_s(error)) is not None:
        headers["retry-after"] = str(seconds)
    return error.status, headers, orjson.dumps(problem_of(error, **more), default=str)


def retry_after_s(error: AppError) -> int | None:
    """How long to wait before another try makes sense, if that is known."""
    if isinstance(error, TooMany):
        return error.retry_after_s
    return BUSY_RETRY_S if error.status == HTTPStatus.SERVICE_UNAVAILABLE else None


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)
