"""`read_record`: business records by id or by words, as the principal may see them (RUN-94)."""

from sqlmodel import Session

from app.kernel import db
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_
from app.runs import record_search
from app.runs.outcome import Done
from app.runs.record_search import Looked
from app.runs.session import RunSession
from app.runs.tool import Prepared, Tool

SCHEMA = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type"],
    "properties": {
        "type": {"type": "string", "minLength": 1, "maxLength": 64},
        "id": {"type": "string", "minLength": 1, "maxLength": 26},
        "query": {"type": "string", "maxLength": 200},
        "limit": {"type": "integer", "minimum": 1, "maximum": record_search.MOST},
    },
}


async def run(session: RunSession, prepared: Prepared) -> Done:
    """One record, those that fit some words, or the newest; what is out of reach does not exist.

    Raises:
        Invalid: both id and query are given.
        NotFound: there is nothing, or nothing for this principal.
    """
    given = prepared.given
    if "id" in given and "query" in given:
        raise Invalid(FieldError("query", N_("Give either an id, or words to look for.")))
    looked = Looked(timezone=session.facts.timezone, **given)
    return Done(result=await db.read(_find, session, looked))


def _find(session: Session, run: RunSession, looked: Looked) -> dict[str, object]:
    if run.principal is None or run.principal.delegation_id is None:
        raise NotFound
    return record_search.find(session, run.principal, looked)


TOOL = Tool(
    name="read_record",
    description=(
        "Read business records of a `type` (as commands name it: expense.report): one by `id`, or "
        "those that fit `query` (words of label, number and texts, a state, a month), or the "
        "newest. `may` lists the commands that can begin where the record stands."
    ),
    schema=SCHEMA,
    run=run,
    parallel_safe=True,
)
