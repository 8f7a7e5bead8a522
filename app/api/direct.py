"""Routes of the hot path: described for FastAPI, answered without it.

Solving parameters and dependencies anew costs more than the rest of such a request. The endpoint is
a signature with its words, for OpenAPI; the function that answers reads the request itself.
"""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic import TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response

from app.api.strict import Strict
from app.kernel.errors import FieldError, Invalid


class Direct(Strict):
    """Hands the request to the function that its endpoint, which describes it, is answered by."""

    def answering(self) -> Callable[[Request], Awaitable[Response]]:
        """The function that `answered_by` named; of other endpoints, FastAPI's."""
        return getattr(self.endpoint, "answered_by", None) or super().answering()


def answered_by(
    handler: Callable[[Request], Awaitable[Response]],
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let `handler` answer for the function below, which only describes."""

    def mark(described: Callable[..., Any]) -> Callable[..., Any]:
        described.answered_by = handler  # type: ignore[attr-defined]
        return described

    return mark


class Header:
    """An optional header of a type; anything else is refused as FastAPI refuses it."""

    def __init__(self, name: str, of: Any) -> None:
        self._name, self._adapter = name, TypeAdapter[Any](of)

    def read(self, request: Request) -> Any:
        """Its value, None where it is not there.

        Raises:
            Invalid: it is not of its type.
        """
        sent = request.headers.get(self._name)
        if sent is None:
            return None
        try:
            return self._adapter.validate_python(sent)
        except ValidationError as fault:
            raise Invalid(
                *(FieldError(self._name, str(each["msg"])) for each in fault.errors())
            ) from fault
