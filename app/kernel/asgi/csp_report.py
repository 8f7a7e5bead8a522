"""`POST /csp-report`: where browsers complain about what our policy stopped (SEC-44)."""

from typing import Any
from urllib.parse import urlsplit

import structlog

from app.kernel import json, problems
from app.kernel.asgi.refusals import BodyTooLarge, refuse
from app.kernel.asgi.wire import App, Receive, Scope, Send, answer
from app.kernel.errors import TooMany
from app.kernel.rates import Rates

PATH = "/csp-report"
REPORT_BYTES = 8 * 1024
KEYWORDS = frozenset({"inline", "eval", "data", "blob", "self", "wasm-eval"})

log = structlog.get_logger()


class CspReports:
    """Takes 8 KiB, so and so often for all browsers together, and only logs.

    What is logged is the directive and the origin that was blocked: paths and samples of a page
    may hold what is private.
    """

    def __init__(self, app: App, rates: Rates) -> None:
        self._app, self._rates = app, rates

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take a report; pass everything else on."""
        is_report = scope["type"] == "http" and scope["path"] == PATH and scope["method"] == "POST"
        if not is_report:
            await self._app(scope, receive, send)
            return
        try:
            self._rates.hit("csp_report")
            body = await _read(receive)
        except TooMany as error:
            headers = {"retry-after": str(problems.retry_after_s(error))}
            await refuse(scope, send, error, headers | {"connection": "close"})
            return
        except BodyTooLarge as error:
            await refuse(scope, send, error, {"connection": "close"})
            return
        _note(body)
        await answer(send, 204)


async def _read(receive: Receive) -> bytes:
    body, more = bytearray(), True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
        if len(body) > REPORT_BYTES:
            raise BodyTooLarge(limit=REPORT_BYTES)
    return bytes(body)


def _note(body: bytes) -> None:
    try:
        told = json.loads(body)
    except json.BadJSON:
        return
    report: Any = told.get("csp-report") if isinstance(told, dict) else None
    if isinstance(report, dict):
        directive = report.get("effective-directive") or report.get("violated-directive")
        log.warning(
            "csp_report",
            directive=str(directive)[:40],
            blocked=_origin(str(report.get("blocked-uri", ""))),
        )


def _origin(uri: str) -> str:
    if uri in KEYWORDS:
        return uri
    try:
        parts = urlsplit(uri)
        return f"{parts.scheme}://{parts.hostname}"[:100] if parts.hostname else "?"
    except ValueError:
        return "?"
