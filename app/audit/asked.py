"""What an address asks of the trail, the same words at every door: pages, `/v1`, exports, views."""

from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlencode

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from sqlmodel import Session, col, or_, select

from app.audit.queries import Filters
from app.identity.models import Agent, AgentRelease, User
from app.identity.principal import Channel
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

Risk = Literal["L0", "L1", "L2", "L3", "L4"]
Outcome = Literal[
    "done", "replayed", "refused", "dispatched", "failed", "unknown",
    "approved", "denied", "expired", "superseded", "cancelled",
]  # fmt: skip
LONGEST_NUMBER = 9  # digits; the column holds no larger one
OTHERWISE = N_("This value does not do.")


def _storable(text: str) -> str:
    if "\0" in text:
        raise ValueError("a text contains a NUL character")
    return text.strip()


def _said(values: Any) -> Any:
    return [value for value in values if value] if isinstance(values, list) else values


Text = Annotated[str, Field(max_length=500), AfterValidator(_storable)]
Several = BeforeValidator(_said)


class Asked(BaseModel):
    """The parameters of a list or an export of entries; an empty one narrows nothing."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)

    since: Text = Field(default="", alias="from", description="Date or time, inclusive.")
    until: Text = Field(default="", alias="to", description="A date is inclusive, a time is not.")
    user: Text = Field(default="", description="Login or id of the person, or the agents' person.")
    agent: Text = Field(default="", description="Code or id of the agent that acted.")
    release: Text = Field(default="", description="Number (with `agent`) or id of its release.")
    model: Text = ""
    model_version: Text = Field(default="", alias="modelVersion")
    command: Text = Field(default="", description="A code, or the beginning of codes: `expense.`")
    tag: Text = Field(default="", description="A tag of commands, such as `money`.")
    risk: Annotated[list[Risk], Several] = []
    irreversible: Literal["", "yes"] = ""
    outcome: Annotated[list[Outcome], Several] = []
    stage: Text = ""
    reason: Text = ""
    approver: Text = Field(default="", description="Login or id of the person who approved.")
    target: Text = Field(default="", description="Id of the record.")
    conversation: Text = ""
    message: Text = Field(default="", description="Reference of the message it came from.")
    run: Text = ""
    channel: Channel | Literal[""] = ""
    by: Literal["", "agent", "person"] = Field(default="", description="Who acted.")
    consent: Literal["", "other", "own", "none"] = Field(
        default="", description="Who approved: another person, the same one, or nobody."
    )
    after: str = Field(default="", max_length=2_000, description="A place in the list.")

    def said(self, **changed: Any) -> dict[str, Any]:
        """What narrows the list, by the names of the address; `changed` replaces some of it."""
        given = self.model_dump(by_alias=True, exclude={"after"}) | changed
        return {name: value for name, value in given.items() if value}

    def query(self, **changed: Any) -> str:
        """The same as the query of an address."""
        return urlencode(self.said(**changed), doseq=True)

    @classmethod
    def of_query(cls, query: str) -> "Asked":
        """What the query of an address asks.

        Raises:
            pydantic.ValidationError: it cannot be asked.
        """
        given: dict[str, Any] = {}
        for name, value in parse_qsl(query, max_num_fields=100):
            if name in {"risk", "outcome"}:
                given.setdefault(name, []).append(value)
            else:
                given[name] = value
        return cls.model_validate(given)


def filters(
    session: Session,
    tenant_id: str,
    asked: Asked,
    zone: tzinfo,
    tagged: tuple[str, ...] | None = None,
) -> Filters:
    """`asked` as the trail is filtered; names become ids, dates are days in `zone`.

    `tagged` are the commands that have the tag. A name that nobody has is kept: it finds nothing.

    Raises:
        Invalid: a date or a time cannot be read.
    """
    agent_id = _agent(session, tenant_id, asked.agent)
    return Filters(
        since=_moment("from", asked.since, zone),
        until=_moment("to", asked.until, zone, is_end=True),
        user_id=_user(session, tenant_id, asked.user),
        agent_id=agent_id,
        agent_release=_release(session, tenant_id, agent_id, asked.release),
        model=asked.model or None,
        model_version=asked.model_version or None,
        command=asked.command or None,
        commands=tagged,
        risks=tuple(asked.risk),
        irreversible=asked.irreversible == "yes",
        outcomes=tuple(asked.outcome),
        stage=asked.stage or None,
        reason=asked.reason or None,
        approved_by=_user(session, tenant_id, asked.approver),
        target_id=asked.target or None,
        conversation_id=asked.conversation or None,
        prompt_ref=asked.message or None,
        run_id=asked.run or None,
        channel=asked.channel or None,
        by=asked.by or None,
        consent=asked.consent or None,
    )


def number(text: str) -> int:
    """The number of an entry, from an address.

    Raises:
        NotFound: it is none.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        raise NotFound
    return int(text)


def _moment(name: str, text: str, zone: tzinfo, *, is_end: bool = False) -> datetime | None:
    if not text:
        return None
    try:
        if len(text) == len("2026-11-30"):
            day = date.fromisoformat(text) + timedelta(days=int(is_end))
            return datetime(day.year, day.month, day.day, tzinfo=zone).astimezone(UTC)
        typed = datetime.fromisoformat(text)
        return (typed if typed.tzinfo else typed.replace(tzinfo=zone)).astimezone(UTC)
    except (ValueError, OverflowError) as fault:
        raise Invalid(FieldError(name, OTHERWISE)) from fault


def _user(session: Session, tenant_id: str, text: str) -> str | None:
    query = select(User.id).where(
        User.tenant_id == tenant_id, or_(col(User.id) == text, col(User.login) == text)
    )
    return (session.exec(query).first() or text) if text else None


def _agent(session: Session, tenant_id: str, text: str) -> str | None:
    query = select(Agent.id).where(
        Agent.tenant_id == tenant_id, or_(col(Agent.id) == text, col(Agent.code) == text)
    )
    return (session.exec(query).first() or text) if text else None


def _release(session: Session, tenant_id: str, agent_id: str | None, text: str) -> str | None:
    if not (agent_id and text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        return text or None
    query = select(AgentRelease.id).where(
        AgentRelease.tenant_id == tenant_id,
        AgentRelease.agent_id == agent_id,
        AgentRelease.number == int(text),
    )
    return session.exec(query).first() or text
