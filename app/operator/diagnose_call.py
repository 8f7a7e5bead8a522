"""Tell, on standard error alone, why an agent's call fell over: what nobody else is told (RUN-41).

ID is the id of a tool call, or of the call it made of a command. Exit status 1 where nothing is
kept of it.
"""

import argparse
import sys
from collections.abc import Iterator

from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session, select

from app.kernel import clock, db
from app.operator.refusing import Refused, chosen_settings
from app.runs.run_models import ToolCall, ToolCallDiagnostic


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which call."""
    parser.add_argument("id", metavar="ID", help="of the call, as the page of its run shows it")


def run(chosen: argparse.Namespace) -> int:
    """Print what is kept; nothing of it goes to standard output."""
    given = chosen_settings()
    db.open(given.database)
    try:
        call, kept = db.read_now(_find, chosen.id.partition(".")[0])
    except SQLAlchemyError as fault:
        raise Refused(f"The database cannot be read: {type(fault).__name__}.") from None
    finally:
        db.close()
    sys.stderr.writelines(f"{line}\n" for line in _lines(call, kept))
    return int(kept is None)


def _find(session: Session, call_id: str) -> tuple[ToolCall, ToolCallDiagnostic | None]:
    call = session.exec(select(ToolCall).where(ToolCall.id == call_id)).first()
    if call is None:
        raise Refused(f"There is no call {call_id}.")
    return call, session.get(ToolCallDiagnostic, (call.tenant_id, call.id))


def _lines(call: ToolCall, kept: ToolCallDiagnostic | None) -> Iterator[str]:
    told = call.reason or call.public_error or "nothing"
    yield f"call   {call.id}: {call.tool}, {call.state} (told: {told})"
    yield f"run    {call.run_id}, turn {call.turn}, tenant {call.tenant_id}"
    if kept is None:
        yield "Nothing is kept of it: it did not fall over."
        return
    yield f"at     {clock.rfc3339(kept.at)}\n"
    yield kept.diagnostic.rstrip()
