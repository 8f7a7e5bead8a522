"""Commands for tests of what is around them: a pack that exists for the length of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

from pydantic import Field

from app.commands import catalogue, published, publishing, registry
from app.commands.definition import CommandDefinition, Input, Operation, Risk, Text
from app.commands.governed import GovernedRecord, Related
from app.commands.pack import Pack
from app.identity import permissions
from app.identity.models import DataScope
from app.identity.permissions import Declared
from app.kernel import db
from app.kernel.db import Work

SEE = Declared("desk.ticket.read", "desk", "See tickets", "查看工单")
WRITE = Declared("desk.ticket.write", "desk", "Write tickets", "编写工单")
DECIDE = Declared("desk.ticket.decide", "desk", "Decide tickets", "审批工单")
EXTRA = Declared("desk.extra", "desk", "Extra", "附加功能")


class Ticket(GovernedRecord):
    """A record type without a table: nothing here writes one."""

    RECORD: ClassVar[str] = "desk.ticket"
    NAMES: ClassVar[dict[str, str]] = {"en": "Ticket", "zh-CN": "工单"}
    STATES: ClassVar[dict[str, tuple[str, ...]]] = {"open": ("closed",), "closed": ("open",)}
    RELATED: ClassVar[dict[str, Related]] = {"notes": Related("desk.ticket", by="owner_id")}

    subject: str = ""
    urgency: int = 0


class Words(Input):
    """What the commands take."""

    subject: str = Field(description="What it is about.", min_length=1, max_length=200)


def command(code: str = "desk.ticket.list", **said: Any) -> CommandDefinition:
    """A definition that is ready as it stands; `said` is said otherwise."""
    verb = code.rpartition(".")[2]
    usual: dict[str, Any] = {
        "code": code,
        "display_name": Text(en=verb.title(), zh=f"工单 {verb}"),
        "description": Text(en=f"Will {verb} tickets.", zh="处理工单。"),
        "agent_hint": Text(en=f"To {verb} tickets of the desk.", zh="需要处理服务台工单时使用。"),
        "risk": Risk.L0,
        "idempotent": True,
        "reversible": True,
        "operation": Operation.READ,
        "input": Words,
        "example": {"subject": "Printer"},
        "permission": SEE.code,
    }
    return CommandDefinition(**{**usual, **said})


def writing(code: str = "desk.ticket.note", **said: Any) -> CommandDefinition:
    """A definition that writes, is ready, and asks for assent as it cannot be taken back."""
    usual = {
        "risk": Risk.L1,
        "idempotent": False,
        "reversible": False,
        "operation": Operation.ACTION,
        "permission": WRITE.code,
    }
    return command(code, **{**usual, **said})


@contextmanager
def declared(*commands: CommandDefinition) -> Iterator[None]:
    """These and no other commands are declared, by the pack `desk`."""
    before = registry._found
    pack = Pack(
        code="desk",
        name=Text(en="Desk", zh="服务台"),
        permissions=(SEE, WRITE, DECIDE),
        features=(EXTRA,),
        record_types=(Ticket,),
    )
    registry._found = registry._Found(
        packs={"desk": pack},
        commands={each.code: each for each in commands},
        pack_of={each.code: "desk" for each in commands},
        record_types={Ticket.RECORD: Ticket},
    )
    published.forget()
    catalogue.forget()
    try:
        yield
    finally:
        registry._found = before
        published.forget()
        catalogue.forget()


@contextmanager
def installed(*commands: CommandDefinition, only: str = "") -> Iterator[None]:
    """The same, written down and published as a start does it: everywhere, or in one tenant."""
    with declared(*commands):
        db.transact_now(_declare)
        if only:
            db.transact_now(publishing.sync, only)
        else:
            publishing.sync_everywhere()
        yield


def reaching(*codes: str, reach: str = DataScope.ALL) -> dict[str, str]:
    """Grants of these permissions, all with one data scope."""
    return dict.fromkeys(codes, str(reach))


def _declare(work: Work) -> None:
    pack = registry.packs()[0]
    permissions.write(work, (*permissions.PLATFORM, *pack.permissions), pack.features)
