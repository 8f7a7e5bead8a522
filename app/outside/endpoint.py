"""Where a server is, for one caller: an address with the caller's own token, or a program."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Program:
    """A server that is started for a run, by the operator's file."""

    command: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str = ""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How one caller reaches a server.

    Attributes:
        link: the version of the caller's own access that the token is of; 0: none is needed.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    program: Program | None = None
    link: int = 0
