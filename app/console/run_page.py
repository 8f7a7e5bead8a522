"""Everything the page of a run tells, in the order in which it happened."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlmodel import Session

from app.console import run_view
from app.console.run_view import RunView
from app.identity.principal import Principal
from app.runs import reading, timeline
from app.runs.reading import Sight, Standing
from app.runs.run_models import Run
from app.runs.states import Hold
from app.runs.timeline import Heard, Noted, Timeline, Turn

HEARD, NOTED, STEP = 0.5, 0.7, 0.001  # below the turn that follows


@dataclass(frozen=True, slots=True)
class Item:
    """Something in the list: a turn stands at its number, the rest before the turn it led to."""

    place: float
    turn: Turn | None = None
    heard: Heard | None = None
    noted: Noted | None = None
    opens_round: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """A run as one reader sees it."""

    run: Standing
    sight: Sight
    timeline: Timeline
    view: RunView

    @property
    def items(self) -> list[Item]:
        """What it heard, what it was told, what it did, in order."""
        found = [*self._heard(), *self._noted()]
        found += [Item(turn.number, turn=turn) for turn in self.timeline.turns]
        return sorted(found, key=lambda item: item.place)

    @property
    def has_waiting_message(self) -> bool:
        """Whether a message waits for the decision that the run waits for (UI-69)."""
        return self.run.is_live and any(
            heard.row.hold == Hold.APPROVAL for heard in self.timeline.queued
        )

    def _heard(self) -> Iterator[Item]:
        known = 0
        for place, heard in enumerate(self.timeline.heard):
            number = heard.row.round or known
            opens = number if number > known else None
            known = max(known, number)
            at = heard.before_turn - 1 + HEARD + place * STEP
            yield Item(at, heard=heard, opens_round=opens)

    def _noted(self) -> Iterator[Item]:
        for place, noted in enumerate(self.timeline.noted):
            yield Item(noted.before_turn - 1 + NOTED + place * STEP, noted=noted)


def of(session: Session, reader: Principal, run_id: str) -> RunPage:
    """The page of one run.

    Raises:
        NotFound: there is none, or it is not theirs to see.
    """
    run, sight = reading.one(session, reader, run_id)
    told = timeline.of_run(session, run, sees_thoughts=sight.sees_thoughts)
    view = run_view.of(session, reader, told.turns, is_own=sight.is_own)
    return RunPage(reading.standings(session, run.tenant_id, [run])[0], sight, told, view)


def turn_of(
    session: Session, reader: Principal, run: Run, number: int
) -> tuple[Turn, RunView] | None:
    """One turn with what drawing it needs; None where the reader sees no thoughts of the run."""
    sight = reading.sight(session, reader, run)
    if sight is None or not sight.sees_thoughts:
        return None
    turn = timeline.one_turn(session, run, number, sees_thoughts=True)
    return (turn, run_view.of(session, reader, [turn], is_own=sight.is_own)) if turn else None
