"""Who is acting: a person, or an agent for a person; made at a door, never changed (SEC-29)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Self


class Channel(StrEnum):
    """The way in."""

    CONSOLE = "console"
    HTTP = "http"
    MCP = "mcp"
    A2A = "a2a"
    AUN = "aun"
    RUN = "run"
    PROCESS = "process"


class Scope(StrEnum):
    """What a delegation may allow, and nothing else exists (SEC-8)."""

    CATALOG_READ = "catalog.read"
    COMMANDS_READ = "commands.read"
    COMMANDS_INVOKE = "commands.invoke"
    EVENTS_READ = "events.read"
    AUDIT_READ = "audit.read"
    AUN_MESSAGE = "aun.message"
    OFFLINE_ACCESS = "offline_access"

    @classmethod
    def among(cls, words: Iterable[str]) -> "frozenset[Scope]":
        """Those that `words` name; a word that is none counts for nothing."""
        return frozenset(known for word in words if (known := _SCOPES.get(word)) is not None)


_SCOPES = {each.value: each for each in Scope}


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is acting. A person has no agent and no scopes to stay in; an agent always has both.

    Attributes:
        actors: ids of the agents in the chain, the one that acts first; empty for a person.
        epoch: the user's authorization epoch when the credential was made.
        family_id: the tokens that descend from one grant, of which the credential is one.
    """

    tenant_id: str
    user_id: str
    agent_release_id: str | None
    delegation_id: str | None
    session_id: str | None
    channel: Channel
    actors: tuple[str, ...]
    scopes: frozenset[Scope]
    epoch: int
    family_id: str | None = None

    @classmethod
    def person(
        cls, *, tenant_id: str, user_id: str, session_id: str, epoch: int, channel: Channel
    ) -> Self:
        """The person of a browser session; called in `identity/sessions.py` alone."""
        return cls(tenant_id, user_id, None, None, session_id, channel, (), frozenset(), epoch)

    @property
    def is_person(self) -> bool:
        """Whether a person acts, in a browser session of theirs."""
        return not self.actors

    @property
    def agent_id(self) -> str | None:
        """The agent that acts, if one does."""
        return self.actors[0] if self.actors else None

    def has_scope(self, scope: Scope) -> bool:
        """Whether the credential reaches so far; a person's reaches everything they may do."""
        return self.is_person or scope in self.scopes

    def narrowed(
        self, *, agent_id: str, agent_release_id: str, delegation_id: str, scopes: frozenset[Scope]
    ) -> "Principal":
        """The principal of a sub-agent: the same user, never a wider scope (SEC-28).

        Raises:
            ValueError: the chain would be deeper than three, or there is no agent to narrow.
        """
        if self.is_person or len(self.actors) >= 3:
            raise ValueError("a chain of agents is one to three long")
        return replace(
            self,
            agent_release_id=agent_release_id,
            delegation_id=delegation_id,
            actors=(agent_id, *self.actors),
            scopes=scopes & self.scopes,
        )
