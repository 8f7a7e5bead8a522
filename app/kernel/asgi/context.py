"""One request from its first byte to its last: an id, a log line, the numbers, a span."""

from typing import TYPE_CHECKING

import structlog

from app.kernel import clock, ids, metrics, tracing
from app.kernel.asgi import event_stream
from app.kernel.asgi.event_stream import Left
from app.kernel.asgi.wire import App, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from opentelemetry.trace import Span

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNROUTED = "-"  # no route took it: its path is a stranger's text and in no log
ABORTED = 499  # nothing was answered

log = structlog.get_logger()

requests = metrics.counter(
    "http_requests", "Requests that are over.", ["method", "route", "status"]
)
answer_seconds = metrics.histogram(
    "http_answer_seconds",
    "Time until an answer begins; a stream that lives for hours would drown the rest.",
    ["method", "route"],
)
in_flight = metrics.gauge("http_requests_in_flight", "Requests and streams that are open.")


class RequestContext:
    """Gives each request an id of ours, in every log line and in `X-Request-Id`.

    An id from outside is not taken: it would let a stranger write into the log.
    """

    def __init__(self, app: App) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on inside its context."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, send)
        left: Left | None = None
        with structlog.contextvars.bound_contextvars(request_id=exchange.id):
            try:
                with tracing.span(exchange.method) as span:
                    try:
                        await self._app(scope, receive, exchange.send)
                        left = event_stream.left_of(scope)
                        if left is not None:
                            exchange.settle()
                        if left is not None and span is not None:  # it covers the stream as well
                            stream, left = left, None
                            await stream.pour(scope, receive, send)
                    finally:
                        if span is not None:
                            exchange.describe(span)
            finally:
                if left is None:
                    exchange.close()
        if left is not None:  # it goes on in this task, and in the name of this request
            structlog.contextvars.bind_contextvars(request_id=exchange.id)
            left.over = exchange.end


class _Exchange:
    """What is known of one request while it runs."""

    __slots__ = (
        "_answered_s",
        "_route",
        "_scope",
        "_send",
        "_started_s",
        "_status",
        "id",
        "method",
    )

    def __init__(self, scope: Scope, send: Send) -> None:
        self.id = ids.ulid()
        self.method = _method(scope)
        self._scope: Scope | None = scope
        self._send: Send | None = send
        self._route = UNROUTED
        self._started_s = clock.monotonic_s()
        self._answered_s: float | None = None
        self._status = ABORTED
        scope.setdefault("state", {})["request_id"] = self.id
        in_flight.inc()

    @property
    def route(self) -> str:
        """The template of the route that took it, as `/users/{user_id}`."""
        if self._scope is None:
            return self._route
        included = self._scope.get("fastapi", {}).get("effective_route_context")
        route = included or self._scope.get("route")  # the former knows the prefix it is under
        return getattr(route, "path", None) or UNROUTED

    def settle(self) -> None:
        """Its answer has begun and goes on elsewhere: what was asked is not needed any more."""
        self._route, self._scope, self._send = self.route, None, None

    def end(self) -> None:
        """The stream that it left is over."""
        self.close()
        structlog.contextvars.unbind_contextvars("request_id")

    async def send(self, message: Message) -> None:
        """Note how the answer begins, and put the id on it."""
        match message["type"]:
            case "http.response.start" | "websocket.http.response.start":
                self._begun(message["status"])
                headers = [*message.get("headers", ()), (b"x-request-id", self.id.encode())]
                message = {**message, "headers": headers}
            case "websocket.accept":
                self._begun(101)
            case "websocket.close" if self._answered_s is None:
                self._begun(403)
        if self._send is not None:
            await self._send(message)

    def close(self) -> None:
        """Count it and write its line."""
        in_flight.dec()
        now_s = clock.monotonic_s()
        route = self.route
        requests.labels(self.method, route, f"{self._status // 100}xx").inc()
        if self._answered_s is not None:
            answer_seconds.labels(self.method, route).observe(self._answered_s - self._started_s)
        log.info(
            "request",
            method=self.method,
            route=route,
            status=self._status,
            duration_ms=round((now_s - self._started_s) * 1000, 1),
        )

    def describe(self, span: "Span") -> None:
        """Name the span for the route, which was unknown when it began."""
        route = self.route
        span.update_name(f"{self.method} {route}")
        span.set_attribute("http.request.method", self.method)
        span.set_attribute("http.route", route)
        span.set_attribute("http.response.status_code", self._status)

    def _begun(self, status: int) -> None:
        if self._answered_s is None:
            self._answered_s, self._status = clock.monotonic_s(), status


def _method(scope: Scope) -> str:
    if scope["type"] == "websocket":
        return "WEBSOCKET"
    return scope["method"] if scope["method"] in METHODS else "OTHER"
