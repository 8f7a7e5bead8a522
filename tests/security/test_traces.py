"""What leaves the process as a trace holds no path and no query (SEC-53)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry import trace

from app import main
from app.kernel import tracing
from tests.edge_server import get, serving, status_of

SECRET = "hunter2"


class Listener(trace.TracerProvider, trace.Tracer):
    """Keeps whatever any library tells it."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def get_tracer(self, *_: Any, **__: Any) -> trace.Tracer:
        return self

    def start_span(self, *told: Any, **more: Any) -> trace.Span:
        self.told.append(repr((told, more)))
        return Told(self.told)

    @contextmanager
    def start_as_current_span(self, *told: Any, **more: Any) -> Iterator[trace.Span]:  # type: ignore[override]
        yield self.start_span(*told, **more)


class Told(trace.NonRecordingSpan):
    """One span."""

    def __init__(self, told: list[str]) -> None:
        super().__init__(trace.INVALID_SPAN_CONTEXT)
        self._told = told

    def is_recording(self) -> bool:
        return True

    def update_name(self, name: str) -> None:
        self._told.append(name)

    def set_attribute(self, key: str, value: Any) -> None:
        self._told.append(f"{key}={value}")

    def set_attributes(self, attributes: Any) -> None:
        self._told.append(repr(attributes))


@pytest.mark.requirement("SEC-53", "SEC-T26")
def test_the_spans_of_the_application_hold_templates_only(monkeypatch: pytest.MonkeyPatch) -> None:
    listener = Listener()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", listener)  # may be set once only, officially
    assert tracing.attach()
    try:
        with serving(main.create_app(), lifespan="off") as port:
            answer = get(port, f"/healthz?token={SECRET}", host="localhost:8000")
    finally:
        tracing.detach()

    assert status_of(answer) == 200
    assert "http.route=/healthz" in listener.told
    assert SECRET not in repr(listener.told)
