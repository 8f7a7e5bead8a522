"""Approvals, live: the badge, rows of the inbox, leaves of a card, and a word to who may decide."""

from collections.abc import Iterable
from typing import Any

from sqlmodel import Session

from app.commands import approval_events, approval_reading
from app.commands.approval_models import ApprovalState
from app.commands.approval_reading import Listed, Wanted, Which
from app.console import approval_card
from app.console.live.rendering import (
    Asked,
    Badges,
    Hearer,
    Partial,
    Regions,
    Render,
    Renders,
    badge,
    each_user,
    html_of,
    notice,
    partial,
)
from app.console.markup import moment
from app.identity.principal import Principal
from app.kernel import clock
from app.kernel.i18n import gettext as _
from app.kernel.i18n import language
from app.kernel.models import LoggedEvent

LISTS: dict[str, Which] = {"open": "open", "decided": "decided", "requested": "requested"}


def _waiting(session: Session, person: Principal) -> int:
    return approval_reading.count(session, person, Wanted(which="open"))


def _changed(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    each = approval_reading.row_for(session, hearer.person, event.subject)
    if each is None:
        return
    yield badge("approvals", _waiting(session, hearer.person))
    yield from _rows(each, hearer)
    yield from _leaves(session, hearer.person, event.subject)
    is_new = each.row.state == ApprovalState.OPEN and event.data["rev"] == 1
    if is_new and each.may_decide:
        yield _needed(each)


def _rows(each: Listed, hearer: Hearer) -> Iterable[Partial]:
    """The row, in the lists it begins to belong to, or where it stands."""
    context: dict[str, Any] = {"each": each, "now": clock.now(), "language": language()}
    template = "approvals/_row.html"
    begins_in = []
    if each.row.state == ApprovalState.OPEN:
        begins_in = [
            *(["open"] if each.may_decide else []),
            *(["requested"] if f" {hearer.user_id} " in each.row.requesters else []),
        ]
    for state in begins_in:
        list_ = f"[data-region='approvals:{state}']"
        yield partial(list_, "beforeend", template, state=state, **context)
    if not begins_in:
        target = f"#approval-{each.row.id}-row"
        yield partial(target, "outerMorph", template, state="decided", **context)


def _leaves(session: Session, person: Principal, approval_id: str) -> Iterable[Partial]:
    """How it stands, on its page; once it is closed the outcome takes the place of the buttons."""
    card = approval_card.card_for(session, person, approval_id, is_fresh=False)
    dom_id = f"approval-{approval_id}"
    context = {
        "card": card,
        "row": card.row,
        "shown": card.shown,
        "command": card.command,
        "outcome": card.shown.ran.outcome if card.shown.ran else "",
        "dom_id": dom_id,
        "here": f"/approvals/{approval_id}",
        "now": clock.now(),
        "language": language(),
        "form": None,
        "refused": None,
        "too_late": None,
    }
    yield partial(f"#{dom_id}-state", "outerHTML", "approvals/_state_leaf.html", **context)
    yield partial(f"#{dom_id}-decides", "outerHTML", "approvals/_decides_leaf.html", **context)
    if not card.shown.is_open:
        target = f"#{dom_id}-decision"
        yield partial(target, "outerHTML", "approvals/_decision_leaf.html", **context)


def _needed(each: Listed) -> Partial:
    row = each.row
    name = each.display_name.in_(language())
    text = _("Approval needed: %(name)s, %(risk)s, expires %(time)s.") % {
        "name": name,
        "risk": row.risk,
        "time": moment(row.expires_at).striptags(),
    }
    return notice(
        text, f"approval-{row.id}", f"/approvals/{row.id}", desktop=_("An approval is needed.")
    )


def _ends(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """To who may decide, on whatever page they are: a minute is left (UI-82)."""
    each = approval_reading.row_for(session, hearer.person, event.subject)
    if each is None or each.row.state != ApprovalState.OPEN or not each.may_decide:
        return
    row, name = each.row, each.display_name.in_(language())
    about = f"{name} {row.target_label}" if row.target_label else name
    text = _("One minute left to decide: %(name)s.") % {"name": about}
    desktop = _("One minute is left for an approval.")
    yield notice(text, f"approval-{row.id}", f"/approvals/{row.id}", desktop=desktop)


def _list(session: Session, asked: Asked) -> str | None:
    which = LISTS.get(asked.key)
    if which is None:
        return None
    page = approval_reading.listed(session, asked.person, Wanted(which=which), None)
    return html_of(
        "approvals/_rows.html", page=page, state=which, now=clock.now(), language=language()
    )


RENDERS: Renders = {
    approval_events.CHANGED: [Render(_changed, each_user)],
    approval_events.ENDING: [Render(_ends, each_user)],
}
REGIONS: Regions = {"approvals": _list}
BADGES: Badges = {"approvals": _waiting}
