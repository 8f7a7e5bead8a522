"""/tool-calls/{id}/resolution: a person looked, and says whether it happened (UI-13).

There is no way to send it again from here, or from anywhere near.
"""

from fastapi import APIRouter, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict

from app.commands.resolution import Finding
from app.console import flash, forms
from app.console.params import Id
from app.identity.deps import Person
from app.kernel import db
from app.kernel.errors import Invalid
from app.kernel.i18n import N_
from app.runs import resolving

router = APIRouter(prefix="/tool-calls")
RECORDED = flash.notice(N_("What you found is on record."))


class Answer(BaseModel):
    """What a person found at the other side."""

    model_config = ConfigDict(extra="forbid")

    finding: Finding


@router.post("/{tool_call_id}/resolution")
async def resolve(request: Request, person: Person, tool_call_id: Id) -> Response:
    """Put on record what the person found; the agent's next run is told."""
    form = await forms.read(request, Answer)
    if form.data is None:
        raise Invalid(*form.errors)
    call = await db.transaction(resolving.resolve, person, tool_call_id, form.data.finding)
    return flash.see_other(f"/runs/{call.run_id}", RECORDED)
