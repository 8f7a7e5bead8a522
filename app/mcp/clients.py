"""What the client on the other side can do, and what it sent besides the arguments."""

from enum import Enum, auto
from typing import Annotated, Any

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import Field, TypeAdapter, ValidationError

from app.mcp.message import APPROVAL_META, KEY_META

Context = ServerRequestContext[Any, Any]

_SHAPES: dict[str, TypeAdapter[str]] = {
    KEY_META: TypeAdapter(Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,255}$")]),
    APPROVAL_META: TypeAdapter(Annotated[str, Field(pattern=r"^[0-9A-HJKMNP-TV-Z]{26}$")]),
}


class Way(Enum):
    """How a client can be brought to open a page (SEC-63)."""

    RESULT = auto()  # the answer asks for it, and the same call comes again
    ERROR = auto()  # an error asks for it, and the client calls anew
    TEXT = auto()  # the answer says where it is


def way_of(ctx: Context) -> Way:
    """The best that this client has."""
    capabilities = ctx.session.client_capabilities
    asks = capabilities.elicitation if capabilities is not None else None
    if asks is None or asks.url is None:
        return Way.TEXT
    return Way.RESULT if is_stateless(ctx) else Way.ERROR


def shows_forms(ctx: Context) -> bool:
    """Whether it can ask its user a question; before there were two kinds, every one could."""
    capabilities = ctx.session.client_capabilities
    asks = capabilities.elicitation if capabilities is not None else None
    return asks is not None and (asks.form is not None or asks.url is None)


def is_stateless(ctx: Context) -> bool:
    """Whether each request stands for itself (2026-07-28)."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def session_of(ctx: Context) -> str:
    """The id of the client's session; empty where there are none."""
    if ctx.request is None or is_stateless(ctx):
        return ""
    found: str = ctx.request.headers.get("mcp-session-id", "")
    return found


def meta_of(ctx: Context, name: str) -> str | None:
    """One of our members of `_meta`, if it was sent.

    Raises:
        MCPError: it is not what it should be.
    """
    meta = (ctx.params or {}).get("_meta")
    sent = meta.get(name) if isinstance(meta, dict) else None
    if sent is None:
        return None
    try:
        return _SHAPES[name].validate_python(sent, strict=True)
    except ValidationError:
        told = {"reason": "invalid_input", "pointer": f"/_meta/{name.replace('/', '~1')}"}
        raise MCPError(INVALID_PARAMS, "Invalid request parameters", told) from None
