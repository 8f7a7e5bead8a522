"""What the library raises, in our kinds of faults; its texts go to the diagnostic (RUN-102)."""

import math
import traceback
from collections.abc import Iterator, Sequence

import httpx2
from pydantic_ai import exceptions as given

from app.kernel import http
from app.runs.models import faults, foreign
from app.runs.models.protocol import ModelFault

# The first that fits: a class stands before those it is derived from.
KINDS: Sequence[tuple[type[Exception], str]] = (
    (given.ContentFilterError, "filter"),
    (given.ModelContextWindowExceededError, "overflow"),
    (given.ModelAuthenticationError, "authentication"),
    (given.ModelNotFoundError, "not_found"),
    (given.ModelQuotaExceededError, "quota"),
    (given.ModelRequestRejectedError, "rejected"),
    (given.ModelRateLimitError, "rate_limited"),
    (given.ModelUnavailableError, "overloaded"),
    (given.ModelServerError, "server"),
    (given.ModelRequestTimeout, "timeout"),
    (given.ModelTimeoutError, "timeout"),
    (given.ModelConnectionError, "connection"),
)
# What comes past the library: of the way out, and of an answer on its way in.
PASSED_BY: Sequence[tuple[type[Exception], str]] = (
    (httpx2.InvalidURL, "misconfigured"),
    (httpx2.UnsupportedProtocol, "misconfigured"),
    (httpx2.TimeoutException, "timeout"),
    (httpx2.TransportError, "connection"),
    (http.Unreachable, "connection"),
)
OF_THE_ANSWER = frozenset({"encoding", "size"})  # rules of the guard that the server broke
FILTERS = frozenset({"content_filter", "content_policy_violation"})
# How servers that send no code word that the input is too long.
TOO_LONG = ("context length", "context size", "context window", "prompt is too long")
STATUSES_OF_LENGTH = frozenset({400, 413, 422, 500})
TIMEOUT, TOO_LARGE, FIRST_OF_SERVER = 408, 413, 500


def read(error: Exception, *, has_begun: bool, too_long: Sequence[str] = ()) -> ModelFault:
    """The fault that `error` is.

    Args:
        error: what the library raised: of its own, or whatever an odd answer made it stumble over.
        has_begun: the answer had begun to arrive.
        too_long: further texts by which this provider says that the input is too long.
    """
    return faults.fault(
        _kind(error, has_begun, (*TOO_LONG, *too_long)),
        retry_after_s=_retry_after_s(error),
        diagnostic=foreign.clean("\n".join(map(_told, _causes(error)))),
    )


def _kind(error: Exception, has_begun: bool, too_long: Sequence[str]) -> str:
    for cause in _causes(error):
        if isinstance(cause, http.Refused) and cause.rule not in OF_THE_ANSWER:
            return "misconfigured"  # the guard let nothing out: asking again changes nothing
    if isinstance(error, given.ModelAPIError) and error.provider_error_code in FILTERS:
        return "filter"
    known = (*KINDS, *PASSED_BY)
    kind = next((kind for each, kind in known if isinstance(error, each)), None)
    if isinstance(error, given.ModelHTTPError):
        if error.status_code in STATUSES_OF_LENGTH and _says(error, too_long):
            return "overflow"
        kind = kind or _of_status(error.status_code)
    if kind == "connection" and has_begun:
        return "cut"
    return kind or _unnamed(error, has_begun)


def _of_status(status: int) -> str:
    if status == TIMEOUT:
        return "timeout"
    if status == TOO_LARGE:
        return "overflow"
    return "server" if status >= FIRST_OF_SERVER else "rejected"


def _unnamed(error: Exception, has_begun: bool) -> str:
    """Of an error without a class of its own: an error chunk, a broken or missing end, nonsense."""
    if isinstance(error, given.UserError):
        return "misconfigured"
    is_an_end = isinstance(error, given.AgentRunError) and not getattr(error, "in_stream", False)
    return "cut" if has_begun and is_an_end else "server"


def _says(error: given.ModelHTTPError, texts: Sequence[str]) -> bool:
    said = str(error.body).lower()
    return any(text.lower() in said for text in texts)


def _retry_after_s(error: Exception) -> float | None:
    asked = getattr(error, "retry_after", None)
    is_a_time = isinstance(asked, int | float) and math.isfinite(asked) and asked >= 0
    return asked if is_a_time else None


def _told(cause: BaseException) -> str:
    frames = traceback.extract_tb(cause.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(cause).__name__}: {cause}{where}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
