"""The table of model profiles that administrators add (RUN-101); `default` is the operator's."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from sqlmodel import Field, SQLModel

from app.kernel.tables import one_of


class Wire(StrEnum):
    """The languages in which a provider can be asked."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


class ModelProfile(SQLModel, table=True):
    """How a model is reached and what it costs.

    Attributes:
        key_sealed: sealed under the master key for this very profile; never shown again.
        price_input, price_output: of a million tokens, in `currency`.
    """

    __tablename__: ClassVar[str] = "model_profile"
    __table_args__ = (one_of("kind", Wire),)

    tenant_id: str = Field(primary_key=True, foreign_key="tenant.id", max_length=26)
    name: str = Field(primary_key=True, max_length=64)
    kind: str = Field(max_length=10)
    model: str = Field(max_length=200)
    base_url: str = Field(default="", max_length=500)
    key_sealed: bytes | None = None
    context_tokens: int = 128_000
    output_tokens: int = 4_096
    requires_finish: bool = True
    usage: str = Field(default="sum", max_length=4)
    call_ids: str = Field(default="run", max_length=8)
    max_tokens_field: str = Field(default="new", max_length=3)
    thinking: str = Field(default="off", max_length=6)
    price_input: float | None = None
    price_output: float | None = None
    currency: str = Field(default="USD", max_length=3)
    created_at: datetime
    updated_at: datetime
