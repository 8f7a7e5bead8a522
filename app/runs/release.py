"""What a release of a hosted agent says: its instructions, its model, its limits (RUN-105)."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.identity import agents


class Limits(BaseModel):
    """How much one run, and an agent in one day, may use; None: as the installation allows."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    steps: Annotated[int, Field(ge=1, le=500)] = 24  # of a root run with all it delegates
    tokens: Annotated[int, Field(ge=1)] = 200_000  # of a run
    cost_micros: int | None = None  # of a run, in the profile's currency
    daily_tokens: int | None = None
    daily_cost_micros: int | None = None
    active_s: Annotated[int, Field(ge=1)] = 900
    output_tokens: Annotated[int, Field(ge=16)] = 4_096
    concurrent: Annotated[int, Field(ge=1, le=100)] = 3  # runs of the agent at once
    concurrent_per_user: Annotated[int, Field(ge=1, le=100)] = 5


class ToolPolicy(BaseModel):
    """Which tools a release takes, by patterns with `*`; it narrows, and grants nothing."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    allow: tuple[str, ...] = ("*",)
    deny: tuple[str, ...] = ()


class Content(BaseModel):
    """The content of a release, with what it leaves open filled in.

    Attributes:
        model: name of the model profile.
        contacts: codes of agents it may write to and delegate to; `*` is all.
    """

    model_config = ConfigDict(extra="ignore", frozen=True)

    name: str = ""
    description: str = ""
    instructions: str = ""
    model: str = "default"
    engine: Literal["native", "harness"] = "native"
    closing_text: Literal["remind", "publish", "thought"] = "remind"
    participation: Literal["quiet", "open", "model"] = "quiet"
    contacts: tuple[str, ...] = ()
    tools: ToolPolicy = ToolPolicy()
    limits: Limits = Limits()

    @classmethod
    def of(cls, content: dict[str, Any]) -> "Content":
        """Read what a release stores, or what a run keeps of it."""
        return cls.model_validate(content)

    @property
    def fingerprint(self) -> str:
        """SHA-256 of it, hex: a run resumes under the same or not at all (RUN-48)."""
        return agents.digest(self.model_dump(mode="json"))
