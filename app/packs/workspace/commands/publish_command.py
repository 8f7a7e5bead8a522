"""`workspace.command.publish`: put the draft of a command in force, or an earlier version."""

from typing import Any

from pydantic import Field

from app.commands import publishing
from app.commands.context import Context
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.errors import Rejected
from app.commands.models import CommandVersion
from app.commands.records import UNKNOWN
from app.kernel.errors import FieldError
from app.packs.workspace import acting
from app.packs.workspace.rights import PUBLISH


class PublishCommand(Input):
    """Which command, and what of it."""

    code: str = Field(
        max_length=128,
        pattern=r"^[a-z][a-z0-9_]*(\.[a-z0-9_]+)+$",
        description="The code of the command.",
    )
    version: int | None = Field(
        None, ge=1, le=1_000_000, description="An earlier version; the draft when left out."
    )
    content_hash: str | None = Field(
        None,
        pattern=r"^[0-9a-f]{64}$",
        description="The hash of the content that was looked at; refused if it is another by now.",
    )


def handle(ctx: Context) -> dict[str, Any]:
    """Publish it as the next version; calls under way keep theirs to the end.

    Raises:
        Rejected: there is no such command, or no such version.
        StepUpNeeded, NothingToPublish, NotReady: it may not be, or not now.
    """
    acting.require_fresh(ctx)
    wanted, person, work = ctx.input, ctx.call.principal, ctx.work
    with acting.refusing():
        standing = publishing.one(work.session, person.tenant_id, wanted.code)
        before = standing.newest.version
        row = _chosen(standing, wanted)
        made = publishing.publish(work, person.tenant_id, publishing.definition_of(row), person)
    return {"code": made.code, "version": made.version, "before": before}


def _chosen(standing: publishing.Standing, wanted: PublishCommand) -> CommandVersion:
    if wanted.version is None:
        row = standing.draft
        if row is None:
            raise publishing.NothingToPublish
    else:
        numbered = {each.version: each for each in standing.versions}
        if wanted.version not in numbered:
            raise Rejected("record_not_found", FieldError("version", UNKNOWN))
        row = numbered[wanted.version]
    if wanted.content_hash not in (None, row.content_hash):
        raise publishing.NothingToPublish
    return row


COMMAND = CommandDefinition(
    code="workspace.command.publish",
    display_name=Text(en="Publish command", zh="发布命令"),
    description=Text(
        en="Puts the draft of a command in force for everyone, or one of its earlier versions.",
        zh="使命令的草稿或某个历史版本对所有人生效。",
    ),
    agent_hint=Text(
        en="For people only: use when a draft was checked and everyone shall work by it; "
        "workspace.command.publish with the version before puts that in force again.",
        zh="仅限人工操作：草稿已核对、需要对所有人生效时使用；"
        "用之前的版本再次执行 workspace.command.publish 即可恢复。",
    ),
    risk=Risk.L2,  # every later call of the command
    idempotent=False,
    reversible=True,
    undo="workspace.command.publish",
    undo_input={"code": "input.code", "version": "result.before"},
    operation=Operation.ACTION,
    input=PublishCommand,
    example={"code": "inventory.stock.adjust"},
    permission=PUBLISH,
    people_only=True,
    handler=handle,
    events=("workspace.command.published",),
    tags=("rights",),
)
