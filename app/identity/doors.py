"""The doors a token can be made for: one audience each, and the scopes it may ask for."""

from enum import StrEnum

from app.identity.principal import Channel, Scope
from app.kernel import settings


class Door(StrEnum):
    """A protected resource; its value is its path, and its audience is `{origin}/<value>`."""

    V1 = "v1"
    MCP = "mcp"
    A2A = "a2a"
    AUN = "aun"

    @property
    def resource(self) -> str:
        """The one audience of tokens for this door (SEC-17)."""
        return f"{settings.current().origin}/{self.value}"

    @property
    def metadata_url(self) -> str:
        """Where its RFC 9728 document lies."""
        return f"{settings.current().origin}/.well-known/oauth-protected-resource/{self.value}"

    @property
    def channel(self) -> Channel:
        """The way in that an entry of the trail names."""
        return CHANNELS[self]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """Every scope it may ask for, in the order of SEC-8."""
        return SCOPES[self]


DEFAULT = Door.MCP  # for a request that names no resource
CHANNELS = {
    Door.V1: Channel.HTTP,
    Door.MCP: Channel.MCP,
    Door.A2A: Channel.A2A,
    Door.AUN: Channel.AUN,
}
CALLS = (Scope.CATALOG_READ, Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE)
SCOPES = {
    Door.V1: (*CALLS, Scope.EVENTS_READ, Scope.AUDIT_READ),
    Door.MCP: CALLS,
    Door.A2A: CALLS,
    Door.AUN: (Scope.AUN_MESSAGE,),
}


def of(resource: str) -> Door | None:
    """The door of an audience, or None where we have no such resource."""
    return next((door for door in Door if door.resource == resource), None)
