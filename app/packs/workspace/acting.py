"""What every command of the workspace shares: a fresh sign-in, rows in reach, and plain refusals.

Identity decides; what it says no to is a refusal of the call, at the input field it is about.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeVar

from sqlmodel import SQLModel

from app.access import scope
from app.commands.context import Context
from app.commands.errors import Rejected
from app.commands.records import UNKNOWN
from app.identity.errors import StepUpNeeded
from app.identity.models import BrowserSession
from app.identity.sessions import FRESH
from app.kernel.errors import FieldError, Invalid, NotFound

M = TypeVar("M", bound=SQLModel)
ID = "^[0-9A-HJKMNP-TV-Z]{26}$"


def require_fresh(ctx: Context) -> None:
    """Return if the person proved who they are within the last five minutes (SEC-38).

    What somebody assented to was asked by a fresh session: the rehearsal before the question ran
    this too.

    Raises:
        StepUpNeeded: their sign-in is older.
    """
    if ctx.consent is not None:
        return
    principal = ctx.call.principal
    session = ctx.work.session.get(BrowserSession, (principal.tenant_id, principal.session_id))
    if session is None or ctx.now - session.auth_time > FRESH:
        raise StepUpNeeded


def reached(ctx: Context, permission: str, model: type[M], id: str, field: str) -> M:
    """The row of identity that an input field names, if `permission` reaches it.

    Raises:
        Rejected: `record_not_found`, whether there is none or not for this person.
        PermissionDenied: they hold the permission nowhere.
    """
    try:
        return scope.one(ctx.work.session, ctx.call.principal, permission, model, id)
    except NotFound as unknown:
        raise Rejected("record_not_found", FieldError(field, UNKNOWN)) from unknown


@contextmanager
def refusing(fields: dict[str, str] | None = None) -> Iterator[None]:
    """Let what identity finds wrong with a field stand at the field of the input.

    `fields` maps its names to those of the wire, where they differ. Whatever else it refuses
    (`LastOwner`, `BeyondYourRights`, …) the pipeline passes on as it is.
    """
    try:
        yield
    except Invalid as invalid:
        errors = (
            FieldError((fields or {}).get(each.pointer, each.pointer), each.says, each.facts)
            for each in invalid.errors
        )
        raise Rejected("invalid_input", *errors) from invalid
    except NotFound as gone:
        raise Rejected("record_not_found") from gone
