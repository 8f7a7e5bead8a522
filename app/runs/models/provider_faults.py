"""What the library raises, in our kinds of faults; its texts go to the diagnostic (RUN-102)."""

from collections.abc import Iterator, Sequence

from pydantic_ai import exceptions as given

from app.kernel import http
from app.runs.models import faults
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
FILTERS = frozenset({"content_filter", "content_policy_violation"})
# How servers that send no code word that the input is too long.
TOO_LONG = ("context length", "context size", "context window", "prompt is too long")
STATUSES_OF_LENGTH = frozenset({400, 413, 422, 500})
TIMEOUT, TOO_LARGE, FIRST_OF_SERVER = 408, 413, 500


def read(error: Exception, *, has_begun: bool, too_long: Sequence[str] = ()) -> ModelFault:
    """The fault that `error` is.

    Args:
        error: what the library raised.
        has_begun: the answer had begun to arrive.
        too_long: further texts by which this provider says that the input is too long.
    """
    return faults.fault(
        _kind(error, has_begun, (*TOO_LONG, *too_long)),
        retry_after_s=getattr(error, "retry_after", None),
        diagnostic="\n".join(f"{type(cause).__name__}: {cause}" for cause in _causes(error)),
    )


def _kind(error: Exception, has_begun: bool, too_long: Sequence[str]) -> str:
    if any(isinstance(cause, http.Refused) for cause in _causes(error)):
        return "misconfigured"  # the guard let nothing out: asking again changes nothing
    if isinstance(error, given.ModelAPIError) and error.provider_error_code in FILTERS:
        return "filter"
    kind = next((kind for known, kind in KINDS if isinstance(error, known)), None)
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
    """Of an error without a class of its own: an error chunk, a broken or missing end."""
    if isinstance(error, given.UserError):
        return "misconfigured"
    if isinstance(error, given.ModelAPIError) and error.in_stream:
        return "server"
    return "cut" if has_begun else "server"


def _says(error: given.ModelHTTPError, texts: Sequence[str]) -> bool:
    said = str(error.body).lower()
    return any(text.lower() in said for text in texts)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__
