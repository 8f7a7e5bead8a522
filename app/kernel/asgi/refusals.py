"""What the layers refuse, and how they say it before there is a page or a door to say it with."""

from html import escape
from http import HTTPStatus

from app.kernel import i18n, problems
from app.kernel.asgi.wire import Scope, Send, answer, value
from app.kernel.errors import AppError
from app.kernel.i18n import N_

PAGE = """<!doctype html>
<html lang="{language}">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title></head>
<body><main><h1>{title}</h1><p>{detail}</p></main></body>
</html>
"""


class BodyTooLarge(AppError):
    """More bytes than this path takes."""

    reason = "body_too_large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    says = N_("This is larger than what is accepted here.")
    advice = "fix_arguments"


class BodyTooSlow(AppError):
    """The body was not whole in time."""

    reason = "body_too_slow"
    status = HTTPStatus.REQUEST_TIMEOUT
    says = N_("The request did not arrive in time. Try again.")
    advice = "retry_later"


class HeadTooLarge(AppError):
    """Address, cookies and headers together are too large."""

    reason = "head_too_large"
    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE
    says = N_("The head of the request is too large.")


class RepeatedHeader(AppError):
    """A header that decides who is asking stands there twice."""

    reason = "repeated_header"
    status = HTTPStatus.BAD_REQUEST
    says = N_("The header %(header)s stands twice in the request.")


class UnknownHost(AppError):
    """The name in `Host` is not one of ours, or not for this path."""

    reason = "unknown_host"
    status = HTTPStatus.MISDIRECTED_REQUEST
    says = N_("This server does not answer under that name.")


class Fault(AppError):
    """Something of ours broke; the log has the request id and the place."""

    reason = "internal_fault"
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    says = N_("Something went wrong on our side. See whether it was done before you try again.")
    advice = "reread_state"


async def refuse(
    scope: Scope, send: Send, error: AppError, headers: dict[str, str] | None = None
) -> None:
    """Answer `error`: a small page to who accepts HTML, a problem to everybody else."""
    with i18n.speaking(i18n.best_match(value(scope, b"accept-language")) or i18n.DEFAULT):
        status, lines, body = problems.render(error)
        if "text/html" in value(scope, b"accept"):
            body = PAGE.format(
                language=i18n.language(),
                title=status,
                detail=escape(problems.words(error.says, error.facts)),
            ).encode()
            lines["content-type"] = "text/html; charset=utf-8"
    if scope["method"] == "HEAD":
        body = b""
    await answer(send, status, lines | (headers or {}), body)
