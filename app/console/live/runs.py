"""Runs, live: how one stands, its turns with thoughts and calls, what became of a message.

A thought and its calls go to the run's own person, into the conversation, and with auditors to the
run's page; everybody else sees messages only (UI-12). Text on its way comes by deltas (UI-36).
"""

from collections.abc import Iterable

from sqlmodel import Session

from app.aun.models import Message
from app.commands import approval_events, approval_reading
from app.console import input_chips, run_page, transcript
from app.console.live.rendering import (
    Asked,
    Hearer,
    Partial,
    Pass,
    Passes,
    Regions,
    Render,
    Renders,
    each_user,
    html_of,
    notice,
    partial,
)
from app.console.run_view import RunView
from app.kernel import clock
from app.kernel.errors import NotFound
from app.kernel.i18n import gettext as _
from app.kernel.models import LoggedEvent
from app.runs import reading, told
from app.runs.reading import Standing
from app.runs.run_models import Run, ToolCall
from app.runs.timeline import Turn


def _stands(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """The strip while it goes on, and a line where it ended; the head of its page."""
    run = session.get(Run, (event.tenant_id, event.subject))
    sight = reading.sight(session, hearer.person, run) if run else None
    if run is None or sight is None:
        return
    each = reading.standings(session, event.tenant_id, [run])[0]
    if event.user_id is not None:
        yield from strip(each)
    yield _head(each, sight)
    if event.user_id is not None and run.conversation_id and not each.is_live:
        yield from _end(session, each, run.conversation_id)


def strip(each: Standing) -> Iterable[Partial]:
    """The strip of a run above its conversation's composer; gone with the run."""
    run = each.run
    if not each.is_live:
        yield Partial(f"#run-{run.id}-strip", "delete")
    elif run.conversation_id:
        target = f"[data-region='strips:{run.conversation_id}']"
        yield partial(target, "beforeend", "runs/_strip.html", run=each)


def _head(each: Standing, sight: reading.Sight) -> Partial:
    target = f"#run-{each.run.id}-head"
    return partial(target, "outerHTML", "runs/_head.html", run=each, sight=sight)


def _end(session: Session, each: Standing, conversation_id: str) -> Iterable[Partial]:
    run = each.run
    if run.ended_at is None or not transcript.is_worth_a_line(each):
        return
    place = transcript.place(session, run.tenant_id, conversation_id, run.ended_at)
    target = f"[data-region='conversation:{conversation_id}']"
    yield partial(target, "beforeend", "runs/_end.html", run=each, place=place)
    if run.state == "canceled":
        path = f"/conversations/{conversation_id}"
        yield notice(_("The run was stopped."), f"run-{run.id}", path)


def _turned(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    run = session.get(Run, (event.tenant_id, event.subject))
    if run is not None:
        yield from _turn(session, event, hearer, run, event.data["turn"])


def _called(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    call = session.get(ToolCall, (event.tenant_id, event.subject))
    run = session.get(Run, (event.tenant_id, call.run_id)) if call else None
    if call is not None and run is not None:
        yield from _turn(session, event, hearer, run, call.turn)


def _turn(
    session: Session, event: LoggedEvent, hearer: Hearer, run: Run, number: int
) -> Iterable[Partial]:
    """A turn as it is now: in its person's conversation, and on the page of the run."""
    found = run_page.turn_of(session, hearer.person, run, number)
    if found is None:
        return
    turn, view = found
    if event.user_id is not None and run.conversation_id:
        yield _work(session, run, turn, view)
    yield _on_page(run, turn, view)


def _work(session: Session, run: Run, turn: Turn, view: RunView) -> Partial:
    conversation_id = run.conversation_id or ""
    place = transcript.place(session, run.tenant_id, conversation_id, turn.stands_at)
    target = f"[data-region='conversation:{conversation_id}']"
    context = {"turn": turn, "place": place, "view": view, "conversation_id": conversation_id}
    return partial(target, "beforeend", "runs/_work.html", **context)


def _on_page(run: Run, turn: Turn, view: RunView) -> Partial:
    target = f"#run-{run.id}-turns"
    return partial(target, "beforeend", "runs/_turn.html", turn=turn, view=view)


def _used(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    run = session.get(Run, (event.tenant_id, event.subject))
    if run is not None and reading.sight(session, hearer.person, run) is not None:
        yield partial(f"#run-{run.id}-usage", "outerHTML", "runs/_usage.html", run=run)


def _heard(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """What became of a message, at the message, for who sent it."""
    message = session.get(Message, (event.tenant_id, event.subject))
    if message is None or message.sender_aid != hearer.aid:
        return
    chips = input_chips.of(session, event.tenant_id, message.sender_aid, [message.id])
    yield partial(
        f"#message-{message.id}-input",
        "outerHTML",
        "conversations/_input.html",
        row_id=message.id,
        conversation_id=message.conversation_id,
        chips=chips.get(message.id, ()),
    )


def _decided(session: Session, event: LoggedEvent, hearer: Hearer) -> Iterable[Partial]:
    """The card of an approval at the call that waits for it."""
    each = approval_reading.row_for(session, hearer.person, event.subject)
    if each is not None and each.row.run_id:
        target = f"#approval-{each.row.id}-card"
        context = {"each": each, "now": clock.now()}
        yield partial(target, "outerMorph", "approvals/_card.html", **context)


def _began(session: Session, event: told.Began, hearer: Hearer) -> Iterable[Partial]:
    """Room for the text of an attempt, before its first piece."""
    run = session.get(Run, (event.tenant_id, event.run_id))
    found = run_page.turn_of(session, hearer.person, run, event.turn) if run else None
    if run is None or found is None:
        return
    if run.conversation_id:
        yield _work(session, run, *found)
    yield _on_page(run, *found)


def _watcher(event: told.Began) -> str:
    return event.user_id


def _strips(session: Session, asked: Asked) -> str | None:
    person = asked.person
    found = reading.live_in(session, person.tenant_id, person.user_id, asked.key)
    return html_of("runs/_strips.html", strips=found)


def _page(session: Session, asked: Asked) -> str | None:
    try:
        page = run_page.of(session, asked.person, asked.key)
    except NotFound:
        return None
    return html_of("runs/_run.html", page=page)


RENDERS: Renders = {
    told.RUN: [Render(_stands, each_user, is_standing=True, is_apart=True)],
    told.TURN: [Render(_turned, each_user)],
    told.CALL: [Render(_called, each_user, is_standing=True)],
    told.USAGE: [Render(_used, each_user, is_standing=True, is_apart=True)],
    told.INPUT: [Render(_heard, each_user, is_standing=True, is_apart=True)],
    approval_events.CHANGED: [Render(_decided, each_user)],
}
PASSES: Passes = {told.Began: Pass(_began, is_for=_watcher)}
REGIONS: Regions = {"run": _page, "strips": _strips}
