"""Which records a form offers for a field that names one: what the caller reaches, nothing else.

Those in a state that the command does not take stand apart, with the reason (UI-103). Its
transition says so, and those of its rules that read nothing of a record but its state.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, and_, func, or_
from sqlmodel import Session, SQLModel, col, select

from app.access import scope
from app.commands import expressions, registry
from app.commands.governed import GovernedRecord
from app.commands.stored import StoredDefinition
from app.identity.models import Agent, Org, Role, User
from app.identity.principal import Principal
from app.identity.search import LONGEST, TERMS_AT_MOST

OFFERED = 50
APART = 20
IDENTITY: Mapping[str, tuple[type[SQLModel], str]] = {  # tables of identity: their row's name
    "identity.user": (User, "display_name"),
    "identity.org": (Org, "name"),
    "identity.role": (Role, "name"),
    "identity.agent": (Agent, "name"),
}
SAYS_MORE = ("title", "name")  # columns that say what a number is about


@dataclass(frozen=True, slots=True)
class Choice:
    """One record; `may_be_taken` is False where its state rules it out."""

    id: str
    label: str
    state: str
    version: int
    may_be_taken: bool = True


@dataclass(frozen=True, slots=True)
class Offered:
    """The records of one field; `is_cut` says that there are more than are shown."""

    choices: tuple[Choice, ...] = ()
    is_cut: bool = False
    search: str = ""

    def of(self, id: str) -> Choice | None:
        """The choice with this id."""
        return next((each for each in self.choices if each.id == id), None)


def offered(
    session: Session,
    principal: Principal,
    definition: StoredDefinition,
    record: str,
    *,
    is_target: bool,
    search: str = "",
    chosen: str = "",
) -> Offered:
    """What a field for records of type `record` offers; the record that is chosen is among them."""
    if table := IDENTITY.get(record):
        return _named_rows(session, principal, definition, table, search, chosen)
    model = registry.record_types().get(record)
    if model is None:
        return Offered()
    reached = scope.within(principal, definition.permission, model)
    wanted = and_(reached, *_holds(model, search))
    takes = _taken(definition, model) if is_target else None
    fits = wanted if takes is None else and_(wanted, takes)
    rows = list(session.exec(_newest(model, fits, OFFERED + 1)))
    apart = []
    if takes is not None:
        apart = list(session.exec(_newest(model, and_(wanted, ~takes), APART)))
    choices = [_choice(row) for row in rows[:OFFERED]]
    choices += [_choice(row, may_be_taken=False) for row in apart]
    if chosen and not any(each.id == chosen for each in choices):
        found = session.exec(select(model).where(and_(reached, col(model.id) == chosen))).first()
        fitting = takes is None or _is_taken(session, model, takes, chosen)
        choices = ([_choice(found, may_be_taken=fitting)] if found else []) + choices
    return Offered(tuple(choices), len(rows) > OFFERED, search)


def named(model: type[GovernedRecord], row: GovernedRecord) -> str:
    """What people know a row by, with what it is about: `EXP-2041 Shanghai trip`."""
    more = [getattr(row, column) for column in _said_by(model) if column != model.LABEL]
    return " ".join(str(part) for part in (row.label, *more) if part)


def _named_rows(
    session: Session,
    principal: Principal,
    definition: StoredDefinition,
    table: tuple[type[SQLModel], str],
    search: str,
    chosen: str,
) -> Offered:
    """People, organisations, roles or agents that the command's permission reaches, by name."""
    model: Any = table[0]
    name = getattr(model, table[1])
    reached = scope.within(principal, definition.permission, model)
    terms = _terms(search)
    holds = [func.lower(name).contains(term, autoescape=True) for term in terms]
    query = select(model.id, name).where(reached, *holds).order_by(name, model.id)
    rows = list(session.exec(query.limit(OFFERED + 1)))
    choices = [Choice(id, said, "", 0) for id, said in rows[:OFFERED]]
    if chosen and not any(each.id == chosen for each in choices):
        found = session.exec(select(model.id, name).where(reached, model.id == chosen)).first()
        choices = ([Choice(found[0], found[1], "", 0)] if found else []) + choices
    return Offered(tuple(choices), len(rows) > OFFERED, search)


def _choice(row: GovernedRecord, *, may_be_taken: bool = True) -> Choice:
    return Choice(row.id, named(type(row), row), row.state, row.version, may_be_taken)


def _taken(definition: StoredDefinition, model: type[GovernedRecord]) -> ColumnElement[bool] | None:
    """The records in a state that the command takes; None where it takes every state."""
    change, states = definition.transition, _states_by_rule(definition, model)
    conditions = []
    if change is not None:
        conditions.append(col(getattr(model, change.field)).in_(change.from_))
    if states is not None:
        conditions.append(col(model.state).in_(states))
    return and_(*conditions) if conditions else None


def _states_by_rule(definition: StoredDefinition, model: type[GovernedRecord]) -> list[str] | None:
    rules = (*definition.rules.asserts, *definition.rules.pre_invariants)
    asked = [expressions.compiled(rule.expr) for rule in rules]
    of_state = [each for each in asked if each.reads_only("record", "state")]
    if not of_state:
        return None
    return [state for state in model.STATES if all(_holds_in(each, state) for each in of_state)]


def _holds_in(rule: expressions.Compiled, state: str) -> bool:
    try:
        return rule.value({"record": {"state": state}}) is True
    except Exception:  # noqa: BLE001 - a rule that cannot be asked has failed, as in the pipeline
        return False


def _is_taken(
    session: Session, model: type[GovernedRecord], takes: ColumnElement[bool], id: str
) -> bool:
    return session.exec(select(model.id).where(takes, col(model.id) == id)).first() is not None


def _said_by(model: type[GovernedRecord]) -> list[str]:
    columns = model.model_fields
    return [name for name in dict.fromkeys((model.LABEL, *SAYS_MORE)) if name in columns]


def _holds(model: type[GovernedRecord], search: str) -> list[ColumnElement[bool]]:
    columns = [func.lower(col(getattr(model, name))) for name in _said_by(model)]
    return [
        or_(*(column.contains(term, autoescape=True) for column in columns))
        for term in _terms(search)
    ]


def _terms(search: str) -> list[str]:
    return search[:LONGEST].replace("\0", "").lower().split()[:TERMS_AT_MOST]


def _newest(model: type[GovernedRecord], wanted: Any, limit: int) -> Any:
    newest = (col(model.updated_at).desc(), col(model.id).desc())
    return select(model).where(wanted).order_by(*newest).limit(limit)
