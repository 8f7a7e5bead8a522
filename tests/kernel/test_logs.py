"""What gets into the log, and what does not."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from pydantic import SecretStr

from app.kernel import ids, logs

SECRET = "correct horse battery"
TOKEN = "eyJhbGciOiJFUzI1NiJ9.eyJzdWIiOiIwMVUifQ.c2lnbmF0dXJl"


class Log:
    """The log of this process while a test runs."""

    def __init__(self) -> None:
        self.stream = io.StringIO()

    @property
    def text(self) -> str:
        return self.stream.getvalue()

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.text.splitlines()]


@pytest.fixture
def log() -> Iterator[Log]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    made = Log()
    logs.configure(as_json=True, stream=made.stream)
    yield made
    root.handlers[:], root.level = before
    logging.captureWarnings(False)
    structlog.reset_defaults()


def test_a_line_says_what_happened_and_when(log: Log) -> None:
    with structlog.contextvars.bound_contextvars(request_id="01R"):
        structlog.get_logger().info("started", count=3, user_id="01U")

    (line,) = log.lines
    assert line.pop("timestamp").endswith("Z")
    assert line == {
        "event": "started", "level": "info", "count": 3, "user_id": "01U", "request_id": "01R"
    }  # fmt: skip


@pytest.mark.requirement("SEC-53", "SEC-T26")
def test_a_field_that_is_not_on_the_list_is_named_and_not_written(log: Log) -> None:
    structlog.get_logger().info(
        "sign_in", password=SECRET, body={"password": SECRET}, user_id="01U"
    )

    (line,) = log.lines
    assert SECRET not in log.text
    assert line["hidden"] == ["body", "password"]
    assert line["user_id"] == "01U"


@pytest.mark.requirement("SEC-53", "SEC-T26")
@pytest.mark.parametrize(
    "value",
    [
        SecretStr(SECRET),
        {"password": SECRET},
        SECRET.encode(),
        [SecretStr(SECRET)],
        f"Bearer {SECRET.replace(' ', '')}",
        f"GET /reset?token={SECRET.replace(' ', '')}",
        f"postgresql://assent:{SECRET.replace(' ', '')}@db/assent",
    ],
    ids=repr,
)
def test_a_secret_in_a_known_field_is_dots(value: object, log: Log) -> None:
    structlog.get_logger().info("event", reason=value)

    assert "correct" not in log.text
    assert "…" in log.text or logs.HIDDEN in log.text


@pytest.mark.requirement("SEC-53", "SEC-T26")
def test_tokens_are_hidden_wherever_they_stand(log: Log) -> None:
    secret = ids.secret(ids.ulid())
    structlog.get_logger().info(f"took {secret}", reason=f"and {TOKEN} too")
    logging.getLogger("uvicorn.error").warning("got %s and %s", secret, TOKEN)

    assert secret not in log.text
    assert TOKEN not in log.text
    assert log.text.count(logs.HIDDEN) == 4


@pytest.mark.requirement("SEC-53")
def test_an_exception_leaves_its_type_and_place_and_not_its_words(log: Log) -> None:
    def breaks() -> None:
        try:
            int(SECRET)
        except ValueError as cause:
            raise RuntimeError(f"cannot store '{SECRET}'") from cause

    try:
        breaks()
    except RuntimeError:
        structlog.get_logger().exception("fault")
        logging.getLogger("app").exception("and of the standard library")

    for line in log.lines:
        assert "RuntimeError" in line["exception"]
        assert "caused by ValueError" in line["exception"]
        assert "tests/kernel/test_logs.py:" in line["exception"]
        assert "in breaks" in line["exception"]
    assert len(log.lines) == 2
    assert SECRET not in log.text
    assert str(Path(__file__).parents[2]) not in log.text, "paths are those of the project"


def test_a_developer_may_see_the_words() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure(as_json=False, stream=stream, fault_texts=True)
    try:
        structlog.get_logger().error("fault", exc_info=ValueError("seven is right out"))
    finally:
        root.handlers[:], root.level = before
        logging.captureWarnings(False)
        structlog.reset_defaults()

    assert "seven is right out" in stream.getvalue()


def test_the_standard_librarys_logs_go_the_same_way(log: Log) -> None:
    with structlog.contextvars.bound_contextvars(request_id="01R"):
        logging.getLogger("uvicorn.error").info("Started server process [%d]", 7)
    logging.getLogger("alembic.runtime.migration").debug("not at this level")

    (line,) = log.lines
    assert line["event"] == "Started server process [7]"
    assert (line["logger"], line["level"], line["request_id"]) == ("uvicorn.error", "info", "01R")


@pytest.mark.requirement("SEC-53")
def test_loggers_that_write_paths_and_urls_are_silent(log: Log) -> None:
    logging.getLogger("uvicorn.access").info('"GET /reset/%s HTTP/1.1" 200', SECRET)
    logging.getLogger("httpx2").info("HTTP Request: POST https://hook.test/%s", SECRET)
    logging.getLogger("sqlalchemy.engine").info("INSERT %s", SECRET)

    assert log.text == ""


def test_what_is_long_is_cut_and_what_is_odd_does_no_harm(log: Log) -> None:
    class Odd:
        def __repr__(self) -> str:
            return "odd" * 1000

    structlog.get_logger().info("event", reason="x" * 10_000, kind=Odd(), count=float("nan"))

    assert len(log.text) < 3 * logs.TEXT_LIMIT
    assert log.lines[0]["count"] is None


def test_standard_error_is_where_it_goes_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.configure(as_json=True)
    try:
        structlog.get_logger().info("hello")
    finally:
        root.handlers[:], root.level = before
        logging.captureWarnings(False)
        structlog.reset_defaults()

    assert "hello" in capsys.readouterr().err
    assert sys.stderr is not None
