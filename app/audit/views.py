"""Views of the trail: those that ship (CMD-21), and those a person saved."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, func, select

from app.audit.models import SavedView
from app.identity.principal import Principal
from app.kernel import clock, ids
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

PAGE = "audit"
MOST = 50  # of one person


@dataclass(frozen=True, slots=True)
class Shipped:
    """A view everybody has; `of_person` says that it asks about one person."""

    code: str
    label: str
    query: dict[str, Any]
    of_person: bool = False


SHIPPED = (
    Shipped("stakes", N_("Agents' L3 and L4 calls"), {"by": "agent", "risk": ["L3", "L4"]}),
    Shipped("irreversible", N_("Irreversible calls"), {"irreversible": "yes"}),
    Shipped("others", N_("Approved by others"), {"consent": "other"}),
    Shipped(
        "unasked",
        N_("Done by agents without asking"),
        {"by": "agent", "consent": "none", "outcome": ["done", "dispatched"]},
        of_person=True,
    ),
    Shipped("refusals", N_("Refusals by stage"), {"outcome": ["refused"]}),
)


def of_person(session: Session, person: Principal) -> Sequence[SavedView]:
    """The views a person saved, by name."""
    query = select(SavedView).where(*_own(person)).order_by(SavedView.name, SavedView.id)
    return session.exec(query).all()


def one(session: Session, person: Principal, id: str) -> SavedView:
    """One of them.

    Raises:
        NotFound: there is none of theirs with this id.
    """
    found = session.exec(select(SavedView).where(*_own(person), SavedView.id == id)).first()
    if found is None:
        raise NotFound
    return found


def add(work: Work, person: Principal, name: str, query: str) -> SavedView:
    """Keep the filters of an address under a name.

    Raises:
        Invalid: the name is taken, or there are too many.
    """
    many = select(func.count()).select_from(SavedView).where(*_own(person))
    if work.session.exec(many).one() >= MOST:
        says = N_("You have %(most)s saved views. Delete one first.")
        raise Invalid(FieldError("name", says, {"most": MOST}))
    _check_is_free(work.session, person, name)
    view = SavedView(
        tenant_id=person.tenant_id,
        id=ids.ulid(),
        user_id=person.user_id,
        page=PAGE,
        name=name,
        query=query,
        created_at=clock.now(),
    )
    work.session.add(view)
    return view


def rename(work: Work, person: Principal, id: str, name: str) -> None:
    """Give a view another name.

    Raises:
        NotFound: it is not theirs.
        Invalid: the name is taken.
    """
    view = one(work.session, person, id)
    if view.name != name:
        _check_is_free(work.session, person, name)
        view.name = name
        work.session.add(view)


def remove(work: Work, person: Principal, id: str) -> None:
    """Forget a view.

    Raises:
        NotFound: it is not theirs.
    """
    work.session.delete(one(work.session, person, id))


def _check_is_free(session: Session, person: Principal, name: str) -> None:
    query = select(SavedView.id).where(*_own(person), col(SavedView.name) == name)
    if session.exec(query).first() is not None:
        raise Invalid(FieldError("name", N_("You have a view of this name already.")))


def _own(person: Principal) -> tuple[Any, ...]:
    return (
        SavedView.tenant_id == person.tenant_id,
        SavedView.user_id == person.user_id,
        SavedView.page == PAGE,
    )
