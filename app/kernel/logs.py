"""Structured logs on standard error; what is not on the list is not written (SEC-53).

A line is an event in fixed words and fields of known names. Everything of the standard library's
logging (uvicorn, alembic) goes the same way. Exceptions leave their type and their frames, not
their message: databases, remote servers and parsers quote what they were given.
"""

import logging
import re
import sys
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

import orjson
import structlog
from pydantic import SecretBytes, SecretStr

HIDDEN = "••••"
TEXT_LIMIT = 500  # characters of one value
FRAMES = 30  # of one traceback, the innermost

# What happened; a request, its route by template and never its path or query; numbers; whose (an id
# says nothing to who has not the database); this installation.
NAMES = """
    event level timestamp logger exception reason rule fault outcome stage kind state action name
    request_id method route status duration_ms directive blocked
    count size limit attempt waited_ms retry_after_s version seq port pid
    tenant_id user_id agent_id session_id client_id run_id call_id message_id delegation_id
    approval_id org_id role_id key_id job_id row_id units tool
    url database folder revision hidden
"""
FIELDS = frozenset(NAMES.split())
EVENT_ONLY_LOGGERS = ("uvicorn.access",)  # we write that line ourselves, without paths
QUIET_LOGGERS = ("httpx2", "httpcore2", "asyncio", "sqlalchemy", "urllib3")  # they name URLs, SQL

_SECRETS = re.compile(
    r"(?P<query>(?<=[\w/])\?[^\s\"'<>]+)"
    r"|\b[0-9A-HJKMNP-TV-Z]{26}\.[\w-]{43}"  # a secret of `ids.secret`
    r"|\beyJ[\w-]+\.[\w-]+\.[\w-]*"  # a signed token
    r"|(?i:\b(?:bearer|basic)\s+[\w.~+/=-]{6,})"
    r"|(?<=://)[^\s/@]+(?=@)"  # credentials in a URL
)
_ROOT = str(Path(__file__).parents[2]) + "/"

EventDict = MutableMapping[str, Any]


def configure(
    *, as_json: bool, level: str = "info", stream: TextIO | None = None, fault_texts: bool = False
) -> None:
    """Send every log line of the process to `stream`, standard error unless given.

    Args:
        as_json: one JSON object a line; otherwise for a person's eyes.
        level: the least level that is written.
        stream: where to.
        fault_texts: write messages of exceptions too; for a developer's own machine only.
    """
    out = stream or sys.stderr
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _Exceptions(fault_texts),
        redact,
    ]
    render = _json if as_json else _console(out)
    structlog.configure(
        processors=[*shared, render],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, render],
        )
    )
    _take_over(handler, level)


def redact(_logger: Any, _method: str, line: EventDict) -> EventDict:
    """Keep known fields and harmless values; name the fields that were left out."""
    kept = {
        name: clean(value)
        for name, value in line.items()
        if name in FIELDS or name in _PROCESSOR_FIELDS
    }
    if missing := sorted(str(name) for name in line.keys() - kept.keys()):
        kept["hidden"] = missing
    return kept


def clean(value: Any) -> Any:
    """`value` as it may be written: plain, short, without what looks like a secret."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return _scrubbed(value)
        case SecretStr() | SecretBytes() | bytes() | Mapping():
            return HIDDEN
        case list() | tuple() | set() | frozenset():
            return [clean(item) for item in list(value)[:20]]
        case logging.LogRecord():
            return value
        case _:
            return _scrubbed(str(value))


# uvicorn's own logging configuration must not undo ours: `uvicorn.Config(..., log_config=None)`.
def _take_over(handler: logging.Handler, level: str) -> None:
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for name in ("uvicorn", "uvicorn.error", "alembic", *EVENT_ONLY_LOGGERS, *QUIET_LOGGERS):
        logger = logging.getLogger(name)
        logger.handlers.clear()
        logger.propagate = name not in EVENT_ONLY_LOGGERS
    for name in QUIET_LOGGERS:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)


class _Exceptions:
    """Turns `exc_info` into the names and places of an exception and its causes."""

    def __init__(self, texts: bool) -> None:
        self._texts = texts

    def __call__(self, _logger: Any, _method: str, line: EventDict) -> EventDict:
        given = line.pop("exc_info", None)
        line.pop("stack_info", None)
        if given:
            fault = _exception_of(given)
            if fault is not None:
                line["exception"] = _Trace(self._told(fault))
        return line

    def _told(self, fault: BaseException) -> str:
        parts: list[str] = []
        seen: set[int] = set()
        current: BaseException | None = fault
        while current is not None and id(current) not in seen and len(parts) < 5:
            seen.add(id(current))
            head = type(current).__qualname__ + (f": {current}" if self._texts else "")
            parts.append("\n".join([head, *_frames(current.__traceback__)]))
            hidden = current.__suppress_context__
            current = current.__cause__ or (None if hidden else current.__context__)
        return "\ncaused by ".join(parts)


class _Trace(str):
    """A traceback made here: it passes `clean` uncut."""

    __slots__ = ()


_PROCESSOR_FIELDS = frozenset({"_record", "_from_structlog"})  # structlog's own, removed at the end


def _scrubbed(text: str) -> str:
    if isinstance(text, _Trace):
        return text
    cut = text if len(text) <= TEXT_LIMIT else text[:TEXT_LIMIT] + "…"
    return _SECRETS.sub(lambda found: "?…" if found["query"] else HIDDEN, cut)


def _exception_of(given: Any) -> BaseException | None:
    match given:
        case BaseException():
            return given
        case (_, BaseException() as fault, _):
            return fault
        case _:
            return sys.exc_info()[1]


def _frames(trace: TracebackType | None) -> list[str]:
    frames: list[str] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        name = code.co_filename.removeprefix(_ROOT)
        frames.append(f"  {name}:{trace.tb_lineno} in {code.co_name}")
        trace = trace.tb_next
    return frames[-FRAMES:]


def _json(_logger: Any, _method: str, line: EventDict) -> str:
    return orjson.dumps(dict(line), default=str).decode()


def _console(out: TextIO) -> structlog.typing.Processor:
    return structlog.dev.ConsoleRenderer(
        colors=out.isatty(), exception_formatter=structlog.dev.plain_traceback
    )
