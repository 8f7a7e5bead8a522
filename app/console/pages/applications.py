"""/connect/applications: an application that has tokens of mine loses them."""

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response
from pydantic import BaseModel, ConfigDict

from app.console import flash, forms
from app.console.params import Id
from app.console.view import render
from app.identity.deps import Person
from app.identity.oauth import families
from app.kernel import db
from app.kernel.i18n import N_

router = APIRouter(prefix="/connect/applications")
ENDED = flash.notice(N_("The application has no access any more. It would have to ask you again."))


class Nothing(BaseModel):
    """A question that is answered by its button."""

    model_config = ConfigDict(extra="forbid")


@router.get("/{family_id}/removal")
async def ask(request: Request, person: Person, family_id: Id) -> HTMLResponse:
    """What ends with it."""
    granted = await db.read(families.own, person, family_id)
    return render(request, "connect/application.html", form=None, granted=granted)


@router.post("/{family_id}/removal")
async def end(request: Request, person: Person, family_id: Id) -> Response:
    """End its access."""
    form = await forms.read(request, Nothing)
    if form.data:
        await db.transaction(families.end_own, person, family_id)
        return flash.see_other("/connect", ENDED)
    granted = await db.read(families.own, person, family_id)
    return render(request, "connect/application.html", status_code=422, form=form, granted=granted)
