"""`/v1/commands`: exactly the commands that the caller may run, each with its schema (CMD-22)."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field

from app.api.problem_docs import PROBLEMS
from app.api.strict import Strict
from app.api.wire import Wire
from app.commands import catalogue, why
from app.identity import bearer
from app.identity.deps import Caller, Person
from app.identity.doors import Door
from app.identity.principal import Scope
from app.kernel import db, i18n, ids, problems
from app.kernel.errors import NotFound

router = APIRouter(prefix="/v1/commands", tags=["commands"], route_class=Strict)


class ApproverRule(Wire):
    """Who decides, where the requester may not: holders of a permission."""

    permission: str


class Command(Wire):
    """One command, as every door describes it."""

    cmd_code: str = Field(examples=["expense.report.submit"])
    display_name: str
    description: str
    agent_hint: str = Field(description="When a person would press this button.")
    risk_level: str = Field(examples=["L2"])
    idempotent: bool
    reversible: bool
    undo_command: str | None
    input_schema: dict[str, Any]
    example_input: dict[str, Any]
    required_feature: str | None
    output_schema: dict[str, Any] | None
    record: str | None
    operation: str
    version: int
    tags: list[str]
    needs_approval: bool
    approvers: ApproverRule | None
    people_only: bool


class Commands(Wire):
    """One page of the caller's catalogue, by code; `next` and `previous` are values of `cursor`."""

    items: list[Command]
    total: int
    next: str | None
    previous: str | None


class Step(Wire):
    """One layer between a person and a command, and whether it lets them through."""

    layer: str
    passed: bool
    says: str


class Reasons(Wire):
    """Every layer, in order."""

    cmd_code: str
    user_id: str
    visible: bool
    steps: list[Step]


@router.get("", responses=PROBLEMS)
async def commands(
    request: Request,
    caller: Caller,
    q: Annotated[str, Query(max_length=200)] = "",
    risk: Annotated[str, Query(pattern="^(L[0-4])?$")] = "",
    record: Annotated[str, Query(max_length=100)] = "",
    cursor: Annotated[str, Query(max_length=400)] = "",
) -> Commands:
    """What the caller may run now; nothing else is listed anywhere."""
    bearer.require(caller, Scope.CATALOG_READ, Door.V1)
    found = await db.read(catalogue.of, caller)
    page = catalogue.page(found.searched(q, risk=risk, record=record), cursor or None)
    language = _language(request)
    return Commands(
        items=[Command.model_validate(each.data(language)) for each in page.entries],
        total=page.total,
        next=page.next,
        previous=page.previous,
    )


@router.get("/{cmdCode}", responses=PROBLEMS)
async def command(
    request: Request, caller: Caller, cmd_code: Annotated[str, Path(alias="cmdCode")]
) -> Command:
    """One command of the caller's catalogue."""
    bearer.require(caller, Scope.CATALOG_READ, Door.V1)
    found = await db.read(catalogue.of, caller)
    descriptor = found.find(cmd_code)
    if descriptor is None:
        raise NotFound
    return Command.model_validate(descriptor.data(_language(request)))


@router.get("/{cmdCode}/why", responses=PROBLEMS)
async def hidden(
    request: Request,
    person: Person,
    cmd_code: Annotated[str, Path(alias="cmdCode")],
    user_id: Annotated[str, Query(alias="userId")],
) -> Reasons:
    """Which layers keep a command from a person; for administrators, in a browser session."""
    if not ids.is_ulid(user_id):
        raise NotFound
    found = await db.read(why.why, person, user_id, cmd_code)
    with i18n.speaking(_language(request)):
        steps = [
            Step(layer=step.layer, passed=step.ok, says=problems.words(step.says, step.facts))
            for step in found.steps
        ]
    return Reasons(cmd_code=cmd_code, user_id=user_id, visible=found.is_visible, steps=steps)


def _language(request: Request) -> str:
    return i18n.best_match(request.headers.get("accept-language", "")) or i18n.DEFAULT
