"""A refusal as a page or a fragment, in the reader's language: the one place where pages do that.

A request of htmx gets `_refusal.html` aimed at `#alerts`, every other one a whole page. What is
not a page's request goes on to whoever handled it before.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from app.console.view import render
from app.identity.errors import SignInRequired
from app.kernel.errors import (
    AppError,
    BadRequest,
    Busy,
    FieldError,
    Invalid,
    MethodNotAllowed,
    NotFound,
    TooMany,
)
from app.kernel.i18n import N_

log = logging.getLogger(__name__)

IsPage = Callable[[Request], bool]
Lead = Callable[[Request, AppError], Awaitable[Response | None]]
Handler = Callable[[Request, Exception], Response | Awaitable[Response]]

TITLES = {
    400: N_("This request cannot be served"),
    401: N_("Sign in first"),
    403: N_("This is not allowed"),
    404: N_("Not found"),
    405: N_("This is not allowed"),
    409: N_("It has changed meanwhile"),
    413: N_("This is too large"),
    422: N_("Some fields need another look"),
    429: N_("Too many tries"),
    503: N_("The server is busy"),
}
OTHERWISE = N_("This cannot be done")
FAILED = N_("Something went wrong here")


class TooLarge(AppError):
    """The body is larger than we take."""

    reason = "too_large"
    status = 413
    says = N_("What was sent is larger than this server takes.")


class Failed(AppError):
    """A fault of ours."""

    reason = "internal_error"
    status = 500
    says = N_(
        "The fault is ours, and it has been written down. "
        "Check whether your change arrived before you repeat it."
    )


_leads: dict[type[AppError], Lead] = {}


def lead(kind: type[AppError], to: Lead) -> None:
    """Let a page answer refusals of `kind` (at import): a redirect, or None to have it said.

    So the sign-in page takes `SignInRequired` and the step-up page `StepUpNeeded`.
    """
    _leads[kind] = to


def install(app: FastAPI, is_page: IsPage) -> None:
    """Answer refusals of pages in words; call it after the handlers of the other doors."""
    for kind, answer in (
        (AppError, _refused),
        (HTTPException, _of_routing),
        (RequestValidationError, _malformed),
        (Exception, _failed),
    ):
        app.add_exception_handler(
            kind, _where(is_page, answer, otherwise=app.exception_handlers.get(kind))
        )


def respond(request: Request, refused: AppError) -> Response:
    """The answer a person reads: a whole page, or a fragment where htmx asked."""
    context = {
        "refused": refused,
        "title": TITLES.get(refused.status, FAILED if refused.status >= 500 else OTHERWISE),
        "errors": refused.errors if isinstance(refused, Invalid) else (),
        "request_id": getattr(request.state, "request_id", None),
    }
    response = render(
        request,
        "_refusal.html" if is_htmx(request) else "_error.html",
        status_code=refused.status,
        **context,
    )
    response.headers["Cache-Control"] = "no-store"
    if is_htmx(request):
        response.headers.update({"HX-Retarget": "#alerts", "HX-Reswap": "innerHTML"})
    if isinstance(refused, TooMany):
        response.headers["Retry-After"] = str(refused.retry_after_s)
    elif isinstance(refused, Busy):
        response.headers["Retry-After"] = "1"
    return response


def is_htmx(request: Request) -> bool:
    """Whether a fragment is expected; a hint, never a proof."""
    return "hx-request" in request.headers


def _is_visit(request: Request) -> bool:
    """Whether the answer becomes the page; script that asks for something wants the status."""
    mode = request.headers.get("sec-fetch-mode", "navigate")
    is_stream = "text/event-stream" in request.headers.get("accept", "")
    is_asked_for = is_htmx(request) or is_stream or mode != "navigate"
    return request.method == "GET" and not is_asked_for


def _where(is_page: IsPage, answer: Handler, otherwise: Any) -> Any:
    async def handle(request: Request, error: Exception) -> Response:
        if is_page(request):
            made = answer(request, error)
        elif otherwise is not None:
            made = otherwise(request, error)
        else:
            raise error
        return made if isinstance(made, Response) else await made

    return handle


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AppError)  # noqa: S101 - registered for it alone
    if (to := _leads.get(type(error))) and (answer := await to(request, error)):
        return answer
    if isinstance(error, SignInRequired) and _is_visit(request):
        return RedirectResponse("/sign-in", status_code=303)
    return respond(request, error)


def _of_routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101 - registered for it alone
    kinds: dict[int, type[AppError]] = {404: NotFound, 405: MethodNotAllowed, 413: TooLarge}
    response = respond(request, kinds.get(error.status_code, BadRequest)())
    response.status_code = error.status_code
    response.headers.update(error.headers or {})
    return response


def _malformed(request: Request, error: Exception) -> Response:
    """A parameter of the path or the query that is not what it should be."""
    assert isinstance(error, RequestValidationError)  # noqa: S101 - registered for it alone
    if any(problem["loc"][0] == "path" for problem in error.errors()):
        return respond(request, NotFound())
    names = {str(problem["loc"][-1]) for problem in error.errors()}
    errors = [FieldError(name, N_("This value does not do."), {}) for name in sorted(names)]
    return respond(request, Invalid(*errors))


def _failed(request: Request, error: Exception) -> Response:
    log.error("page_failed", extra={"path": request.url.path, "error": type(error).__name__})
    return respond(request, Failed())
