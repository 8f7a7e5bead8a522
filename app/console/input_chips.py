"""What became of a message for agents, in words; held back, it says whose word it waits for.

A request for approval is decided by its own person, or by another who holds a permission: of these
one is named where there is one, and else what they hold.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlmodel import Session, col, select

from app.commands.approval_models import Approval, ApprovalState
from app.console import run_words
from app.identity import directory
from app.identity.models import Permission, User, UserStatus
from app.kernel.i18n import gettext, language
from app.runs import reading
from app.runs.reading import Chip
from app.runs.run_models import RunInput
from app.runs.states import Hold


@dataclass(frozen=True, slots=True)
class InputChip:
    """One agent's part in a message, as its sender reads it."""

    chip: Chip
    decides: str = ""

    @property
    def row(self) -> RunInput:
        """The input."""
        return self.chip.row

    @property
    def agent_name(self) -> str:
        """What the agent is called."""
        return self.chip.agent_name

    @property
    def behind(self) -> str | None:
        """The run whose request for a decision it waits behind."""
        return self.chip.behind

    @property
    def rank(self) -> int:
        """How far it has come."""
        return self.chip.rank

    @property
    def is_unfinished(self) -> bool:
        """Whether sending the message again is worth offering."""
        return run_words.is_unfinished(self.chip)

    @property
    def text(self) -> str:
        """What became of it."""
        if self.row.hold == Hold.APPROVAL and self.row.state == "queued":
            return self.decides or gettext("waits for a decision")
        return run_words.of_chip(self.chip)


def of(
    session: Session, tenant_id: str, aid: str, message_ids: Collection[str]
) -> dict[str, tuple[InputChip, ...]]:
    """What became of messages that `aid` sent, by the id of the message's row."""
    found = reading.chips(session, tenant_id, message_ids)
    behind = {chip.behind for chips in found.values() for chip in chips if chip.behind}
    said = _decides(session, tenant_id, aid, behind) if behind else {}
    return {
        message_id: tuple(InputChip(chip, said.get(chip.behind or "", "")) for chip in chips)
        for message_id, chips in found.items()
    }


def _decides(
    session: Session, tenant_id: str, aid: str, run_ids: Collection[str]
) -> Mapping[str, str]:
    """Whose word each run waits for."""
    query = (
        select(Approval)
        .where(
            Approval.tenant_id == tenant_id,
            col(Approval.run_id).in_(sorted(run_ids)),
            Approval.state == ApprovalState.OPEN,
        )
        .order_by(col(Approval.opened_at).desc(), col(Approval.id).desc())
    )
    return {row.run_id or "": _whose(session, aid, row) for row in session.exec(query)}


def _whose(session: Session, aid: str, row: Approval) -> str:
    if row.approver_permission is None:
        owner = session.get(User, (row.tenant_id, row.user_id))
        if owner is not None and owner.aid == aid:
            return gettext("waits for your decision")
        name = owner.display_name if owner else ""
    else:
        name = _only_holder(session, row, row.approver_permission)
    if name:
        return gettext("waits for the decision of %(name)s") % {"name": name}
    permission = session.get(Permission, row.approver_permission or "")
    titles = permission.title if permission else {}
    held = titles.get(language()) or titles.get("en") or row.approver_permission or ""
    said = gettext("waits for the decision of another person with “%(permission)s”")
    return said % {"permission": held} if held else ""


def _only_holder(session: Session, row: Approval, permission: str) -> str:
    """The name of the one person who may decide; nothing where there are more, or none."""
    query = (
        select(User.display_name)
        .where(
            User.tenant_id == row.tenant_id,
            User.status == UserStatus.ACTIVE,
            col(User.id).not_in(row.requesters.split() or [row.user_id]),
            directory.holds_permission(permission),
        )
        .limit(2)
    )
    names = session.exec(query).all()
    return names[0] if len(names) == 1 else ""
