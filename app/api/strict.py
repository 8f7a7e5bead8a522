"""Routes of programs take no parameter that they do not know: a filter misspelt narrows nothing."""

from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any

from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.requests import Request
from starlette.responses import Response

from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_

UNKNOWN = N_("There is no such parameter here.")
Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class Strict(APIRoute):
    """Answers a request whose query has names of its own alone."""

    def get_route_handler(self) -> Handler:
        """The function that answers, behind the look at the names."""
        known, answer = frozenset(names(self.dependant)), self.answering()

        async def strictly(request: Request) -> Response:
            if request.scope["query_string"] and _is_somebody(request):
                unknown = dict.fromkeys(each for each in request.query_params if each not in known)
                if unknown:
                    raise Invalid(*(FieldError(name[:100], UNKNOWN) for name in unknown))
            return await answer(request)

        return strictly

    def answering(self) -> Callable[[Request], Awaitable[Response]]:
        """The function behind; FastAPI's, where nothing else is said."""
        return super().get_route_handler()


def _is_somebody(request: Request) -> bool:
    """Whether a credential came along: who brings none is asked for one first (SEC-25)."""
    return "authorization" in request.headers or "cookie" in request.headers


def names(dependant: Dependant) -> Iterator[str]:
    """The names in a query that an endpoint, or what it depends on, reads."""
    for each in dependant.query_params:
        shape = each.field_info.annotation
        if isinstance(shape, type) and issubclass(shape, BaseModel):
            yield from (field.alias or name for name, field in shape.model_fields.items())
        else:
            yield each.alias
    for inner in dependant.dependencies:
        yield from names(inner)
