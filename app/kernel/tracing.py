"""OpenTelemetry spans that cost nothing until somebody listens.

`attach` is called once at start; without a tracer provider (no SDK, no exporter) a span is an empty
context manager, and the library is not even imported for a request.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

import structlog

if TYPE_CHECKING:
    from opentelemetry.trace import Span, Tracer, TracerProvider

Value = str | bool | int | float

_tracer: "Tracer | None" = None
_NOTHING: AbstractContextManager[None] = nullcontext()


def attach(provider: "TracerProvider | None" = None) -> bool:
    """Take spans to `provider`, or to the one the environment configured; whether there is one."""
    global _tracer
    from opentelemetry import trace  # noqa: PLC0415 - 40 ms that a start without tracing saves

    found = provider or trace.get_tracer_provider()
    listens = not isinstance(found, (trace.ProxyTracerProvider, trace.NoOpTracerProvider))
    _tracer = found.get_tracer("assent") if listens else None
    return listens


def detach() -> None:
    """Back to spans that are nothing."""
    global _tracer
    _tracer = None


def span(name: str, **attributes: Value) -> AbstractContextManager["Span | None"]:
    """A span around a block; the block gets it, or None when nobody listens.

    Attributes are names and counts, never contents: `http_route="/v1/calls/{id}"`; the underscores
    become the dots of the semantic conventions.
    """
    if _tracer is None:
        return _NOTHING
    return _recorded(_tracer, name, attributes)


@contextmanager
def _recorded(tracer: "Tracer", name: str, attributes: dict[str, Any]) -> "Iterator[Span]":
    # Neither message nor stack of an exception goes into the span: they may hold what is private.
    with tracer.start_as_current_span(
        name, record_exception=False, set_status_on_exception=False
    ) as current:
        for key, value in attributes.items():
            current.set_attribute(dotted(key), value)
        try:
            yield current
        except Exception as fault:
            current.set_attribute("error.type", type(fault).__name__)
            raise


def dotted(name: str) -> str:
    """`http_route` as `http.route`."""
    return name.replace("_", ".")


def request_id() -> str | None:
    """The id of the request that is being answered, at most 32 characters; None outside of one."""
    known = structlog.contextvars.get_contextvars().get("request_id")
    return known[:32] if isinstance(known, str) else None
