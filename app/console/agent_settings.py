"""What an administrator sets for a release besides its words: model, limits, manners (RUN-105).

A field that is left blank is not in the draft, and so is what the product has by itself.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from sqlmodel import Session, col, select

from app.identity.models import Agent, AgentKind
from app.kernel.errors import FieldError, Invalid
from app.kernel.i18n import N_
from app.runs.models import offline, profiles
from app.runs.models.protocol import Profile
from app.runs.release import Limits

MICROS = 1_000_000
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]
Money = Annotated[Decimal, Field(gt=0, le=1_000_000, decimal_places=6)]
COUNTS = ("steps", "tokens", "output_tokens", "active_s", "daily_tokens", "concurrent")
COUNTS_ALL = (*COUNTS, "concurrent_per_user")
MONEY = {"cost": "cost_micros", "daily_cost": "daily_cost_micros"}
EVERYBODY = "*"
BY_ITSELF: Mapping[str, Any] = {
    "model": profiles.DEFAULT,
    "closing_text": "remind",
    "participation": "quiet",
    "contacts": [],
    "limits": {},
}


class AgentSettings(BaseModel):
    """The fields, as a form has them."""

    model_config = ConfigDict(extra="forbid")

    model: Annotated[str, Field(max_length=100)] = profiles.DEFAULT
    closing_text: Literal["remind", "publish", "thought"] = "remind"
    participation: Literal["quiet", "open", "model"] = "quiet"
    contacts: Annotated[str, Field(max_length=2_000)] = ""
    steps: Annotated[int, Field(ge=1, le=500)] | None = None
    tokens: Count | None = None
    output_tokens: Annotated[int, Field(ge=16, le=1_000_000)] | None = None
    active_s: Annotated[int, Field(ge=1, le=86_400)] | None = None
    cost: Money | None = None
    daily_tokens: Count | None = None
    daily_cost: Money | None = None
    concurrent: Annotated[int, Field(ge=1, le=100)] | None = None
    concurrent_per_user: Annotated[int, Field(ge=1, le=100)] | None = None

    def laid_on(self, draft: Mapping[str, Any]) -> dict[str, Any]:
        """A draft with these in it; the limits that no form has stay as they were."""
        kept = dict(draft.get("limits") or {})
        for name in (*COUNTS_ALL, *MONEY.values()):
            kept.pop(name, None)
        counts = {name: getattr(self, name) for name in COUNTS_ALL}
        money = {
            column: int(amount * MICROS)
            for name, column in MONEY.items()
            if (amount := getattr(self, name)) is not None
        }
        limits = kept | {name: each for name, each in counts.items() if each is not None} | money
        said = {
            "model": self.model,
            "closing_text": self.closing_text,
            "participation": self.participation,
            "contacts": codes_in(self.contacts),
            "limits": limits,
        }
        chosen = {name: each for name, each in said.items() if each != BY_ITSELF[name]}
        rest = {name: each for name, each in draft.items() if name not in said}
        return rest | chosen


def typed(draft: Mapping[str, Any]) -> dict[str, Any]:
    """What a draft says, as the form's fields."""
    limits = draft.get("limits") or {}
    return {
        "model": draft.get("model", profiles.DEFAULT),
        "closing_text": draft.get("closing_text", "remind"),
        "participation": draft.get("participation", "quiet"),
        "contacts": " ".join(draft.get("contacts") or ()),
        **{name: limits.get(name) for name in COUNTS_ALL},
        **{
            name: Decimal(limits[column]) / MICROS if limits.get(column) else None
            for name, column in MONEY.items()
        },
    }


def by_itself() -> dict[str, int]:
    """What holds where a field is left blank."""
    return {name: value for name, value in Limits().model_dump().items() if value is not None}


def codes_in(text: str) -> list[str]:
    """The codes in a text, each once, in their order."""
    return list(dict.fromkeys(text.replace(",", " ").replace("\uff0c", " ").split()))


def models(session: Session, tenant_id: str) -> list[tuple[str, str]]:
    """The models there are: name of the profile, and what stands behind it."""
    return [(each.name, behind(each)) for each in profiles.all_of(session, tenant_id)]


def behind(profile: Profile) -> str:
    """What answers where a profile is named; the offline planner says what it is (RUN-106)."""
    return offline.NAME if profile.kind == "offline" else profile.model


def check(session: Session, tenant_id: str, chosen: AgentSettings) -> None:
    """Return where model and contacts exist.

    Raises:
        Invalid: which does not.
    """
    errors = []
    if chosen.model not in {name for name, _ in models(session, tenant_id)}:
        errors.append(FieldError("model", N_("There is no such model here.")))
    wanted = {*codes_in(chosen.contacts)} - {EVERYBODY}
    query = select(Agent.code).where(
        Agent.tenant_id == tenant_id,
        Agent.kind == AgentKind.HOSTED,
        col(Agent.code).in_(sorted(wanted)),
    )
    unknown = sorted(wanted - set(session.exec(query).all())) if wanted else []
    if unknown:
        says = N_("There is no agent with the code %(code)s.")
        errors.append(FieldError("contacts", says, {"code": unknown[0]}))
    if errors:
        raise Invalid(*errors)
