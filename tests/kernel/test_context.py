"""One request: its id, its line, its numbers, its span."""

import io
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import structlog
from fastapi import APIRouter, FastAPI, WebSocket
from opentelemetry import trace

from app.kernel import ids, logs, metrics, tracing
from app.kernel.asgi.context import RequestContext
from app.kernel.asgi.faults import Faults
from tests.edge_server import ask, get, header_of, serving, status_of


def application() -> FastAPI:
    web = FastAPI(openapi_url=None)
    router = APIRouter(prefix="/users")

    @router.get("/{user_id}")
    async def one(user_id: str) -> dict[str, str]:
        structlog.get_logger().info("looked_up", user_id=user_id)
        return {}

    @web.get("/fault")
    async def fault() -> None:
        raise RuntimeError

    @web.websocket("/aun/ws")
    async def socket(socket: WebSocket) -> None:
        await socket.close()

    web.include_router(router, prefix="/v1")
    return web


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    written = io.StringIO()
    logs.configure(as_json=True, stream=written)
    yield written
    root.handlers[:], root.level = before
    logging.captureWarnings(False)
    structlog.reset_defaults()


def lines_of(log: io.StringIO, event: str) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    return [line for line in lines if line["event"] == event]


def value_of(name: str, **labels: str) -> float:
    return metrics.registry.get_sample_value(name, labels) or 0


def test_a_request_has_an_id_of_ours_in_every_line_and_in_its_answer(log: io.StringIO) -> None:
    with serving(RequestContext(application())) as port:
        answer = get(port, "/v1/users/ada?token=hunter2", x_request_id="forged\u0020id")

    request_id = header_of(answer, "x-request-id")
    assert ids.is_ulid(request_id)
    (inside,) = lines_of(log, "looked_up")
    (line,) = lines_of(log, "request")
    assert inside["request_id"] == line["request_id"] == request_id
    assert line["duration_ms"] >= 0
    assert (line["method"], line["route"], line["status"]) == ("GET", "/v1/users/{user_id}", 200)


@pytest.mark.requirement("SEC-53", "SEC-T26")
def test_neither_path_nor_query_is_in_the_log(log: io.StringIO) -> None:
    with serving(RequestContext(application())) as port:
        get(port, "/v1/users/ada?token=hunter2")
        get(port, "/setup/hunter2/reset?x=hunter2")

    assert "hunter2" not in log.getvalue()
    assert [line["route"] for line in lines_of(log, "request")] == ["/v1/users/{user_id}", "-"]


@pytest.mark.requirement("SEC-88", "SEC-T26")
def test_requests_are_counted_by_template_and_status_class() -> None:
    route = {"method": "GET", "route": "/v1/users/{user_id}"}
    before = value_of("assent_http_requests_total", **route, status="2xx")
    faults = value_of("assent_http_requests_total", method="GET", route="/fault", status="5xx")

    with serving(RequestContext(Faults(application()))) as port:
        for name in ("ada", "bob"):
            get(port, f"/v1/users/{name}")
        get(port, "/fault")
        odd = ask(port, b"PROPFIND / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")

    assert status_of(odd) == 404
    assert value_of("assent_http_requests_total", **route, status="2xx") == before + 2
    assert value_of("assent_http_requests_total", method="GET", route="/fault", status="5xx") == (
        faults + 1
    )
    assert value_of("assent_http_answer_seconds_count", **route) >= 2
    assert value_of("assent_http_requests_in_flight") == 0
    text = metrics.render().decode()
    assert "ada" not in text
    assert "PROPFIND" not in text
    assert 'method="OTHER",route="-",status="4xx"' in text


@pytest.mark.requirement("SEC-88")
@pytest.mark.parametrize("label", ["tenant_id", "user", "agent", "record_id", "path"])
def test_a_label_that_could_name_somebody_cannot_be_made(label: str) -> None:
    with pytest.raises(ValueError, match="not labels we use"):
        metrics.counter("never", "Never made.", ["method", label])


def test_a_websocket_has_a_line_too(log: io.StringIO) -> None:
    head = (
        b"GET /aun/ws HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    with serving(RequestContext(application())) as port:
        assert status_of(ask(port, head)) == 403

    (line,) = lines_of(log, "request")
    assert (line["method"], line["route"], line["status"]) == ("WEBSOCKET", "/aun/ws", 403)


class Recorder(trace.TracerProvider, trace.Tracer):
    """Keeps the spans of one test."""

    def __init__(self) -> None:
        self.spans: list[Recorded] = []

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self

    def start_span(self, name: str, *_: Any, **__: Any) -> trace.Span:
        self.spans.append(Recorded(name))
        return self.spans[-1]

    @contextmanager
    def start_as_current_span(self, name: str, *_: Any, **__: Any) -> Iterator[trace.Span]:  # type: ignore[override]
        yield self.start_span(name)


class Recorded(trace.NonRecordingSpan):
    """One of them."""

    def __init__(self, name: str) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self.name = name
        self.attributes: dict[str, Any] = {}

    def update_name(self, name: str) -> None:
        self.name = name

    def set_attribute(self, key: str, value: Any) -> None:
        self.attributes[key] = value


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    made = Recorder()
    assert tracing.attach(made)
    yield made
    tracing.detach()


@pytest.mark.requirement("SEC-53")
def test_a_span_names_the_route_and_never_the_path(recorder: Recorder) -> None:
    with serving(RequestContext(application())) as port:
        get(port, "/v1/users/ada?token=hunter2")

    (span,) = recorder.spans
    assert span.name == "GET /v1/users/{user_id}"
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/v1/users/{user_id}",
        "http.response.status_code": 200,
    }


def test_a_span_notes_the_kind_of_a_fault_and_lets_it_go_on(recorder: Recorder) -> None:
    with pytest.raises(RuntimeError), tracing.span("unit", db_system="sqlite"):
        raise RuntimeError("hunter2")

    (span,) = recorder.spans
    assert span.attributes == {"db.system": "sqlite", "error.type": "RuntimeError"}


def test_without_a_listener_a_span_is_nothing() -> None:
    tracing.detach()

    assert tracing.span("unit") is tracing.span("another")
    with tracing.span("unit") as span:
        assert span is None
    assert not tracing.attach(trace.NoOpTracerProvider())
