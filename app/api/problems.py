"""Refusals of programs' doors as RFC 9457 problems, in the one place where that is done."""

from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from app.commands.refused import Refused
from app.identity import bearer
from app.identity.doors import Door
from app.identity.errors import SignInRequired
from app.identity.tokens import BearerRefused, InvalidToken
from app.kernel import i18n, problems
from app.kernel.errors import (
    AppError,
    BadRequest,
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotFound,
)


def install(app: FastAPI) -> None:
    """Answer refusals with problems; doors with other words are installed after this."""
    app.add_exception_handler(AppError, _of_app)
    app.add_exception_handler(HTTPException, _of_routing)
    app.add_exception_handler(RequestValidationError, _of_shape)


def answer(request: Request, error: AppError) -> Response:
    """`error` as a problem, in the language the caller asks for."""
    tag = i18n.best_match(request.headers.get("accept-language", "")) or i18n.DEFAULT
    with i18n.speaking(tag):
        status, headers, body = _render(error)
    response = Response(body, status, headers)
    _challenge(request, error, response)
    return response


def _render(error: AppError) -> tuple[int, dict[str, str], bytes]:
    if not isinstance(error, Refused):
        return problems.render(error)
    more: dict[str, Any] = {"stage": error.stage, "call_id": error.call_id, "cmd_code": error.code}
    if error.errors:
        more["errors"] = [_field(each) for each in error.errors]
    return problems.render(error, detail=error.words(i18n.language()), **more)


def _field(error: FieldError) -> dict[str, Any]:
    told = {"pointer": f"/{error.pointer}", "message": problems.words(error.says, error.facts)}
    expected = error.facts.get("expected")
    return told if expected is None else {**told, "expected": str(expected)}


def _challenge(request: Request, error: AppError, response: Response) -> None:
    if isinstance(error, BearerRefused):
        response.headers.update(error.headers or bearer.challenge(error, _door_of(request)))
    elif isinstance(error, SignInRequired):
        nobody = bearer.challenge(InvalidToken(), _door_of(request), presented=False)
        response.headers.update(nobody)


def _door_of(request: Request) -> Door:
    first = request.url.path.strip("/").partition("/")[0]
    return Door(first) if first in set(Door) else Door.V1


def _of_app(request: Request, error: Exception) -> Response:
    return answer(request, error if isinstance(error, AppError) else BadRequest())


def _of_routing(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    known: dict[int, type[AppError]] = {404: NotFound, 405: MethodNotAllowed}
    response = answer(request, known.get(status, BadRequest)())
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response


def _of_shape(request: Request, error: Exception) -> Response:
    found = error.errors() if isinstance(error, RequestValidationError) else []
    return answer(
        request,
        Invalid(
            *(
                FieldError("/".join(str(part) for part in one["loc"][1:]), str(one["msg"]))
                for one in found
            )
        ),
    )
