"""What `--demo` shows of messages: talks, silence, an agent that began one, and a group."""

from datetime import datetime, timedelta
from typing import Any

from app.aun import conversations, delivery, markdown
from app.aun.caller import CONSOLE_DEVICE, Caller, Door
from app.aun.delivery import Direct
from app.aun.group_models import Group, MentionMode
from app.aun.groups import making, roster, sending
from app.aun.groups.sending import Ready
from app.aun.models import IdentityKind, Message
from app.identity import demo
from app.identity.demo import Workspace
from app.identity.models import Agent, User
from app.kernel import clock, ids
from app.kernel.db import Work

ALICE_AND_BOB = (
    ("alice", "Bob, 苏州那次出差的住宿超标了吗？", None),
    ("bob", "没有，标准是每晚 **600** 元。", 0),
    ("bob", "不过请附上发票：\n\n1. 酒店\n2. 高铁", 0),
    ("alice", "Thanks, done. See you at the review.", None),
)
ASKED = "提交我十月的出差报销"  # nobody has replied, and nothing says that somebody should
OFFERED = (
    "Three items are below their reorder level: `A4 paper`, `Keyboard`, `Label roll`.\n\n"
    "| Item | On hand | Level |\n|---|--:|--:|\n| A4 paper | 12 | 40 |\n| Keyboard | 3 | 10 |\n\n"
    "I can prepare the receipt once the goods arrive."
)
CLOSING = (
    ("fiona", "October closes on Friday. Please send what is open."),
    ("bob", "@报销助手 which reports of my team are still drafts?"),
    ("alice", "Mine is submitted."),
)


@demo.step
def converse(work: Work, made: dict[str, Workspace]) -> None:
    """The conversations of Acme."""
    acme = made["acme"]
    begins_at = clock.now() - timedelta(days=1, hours=2)
    rows: list[str] = []
    for number, (who, text, replied) in enumerate(ALICE_AND_BOB):
        other = "bob" if who == "alice" else "alice"
        payload = _payload(text)
        if replied is not None:
            payload["reply_to"] = {"message_id": _row(work, acme, rows[replied]).message_id}
        at = begins_at + timedelta(minutes=4 * number)
        rows.append(_say(work, acme.people[who], acme.people[other], payload, at))
    for reader in ("alice", "bob"):
        _read(work, acme.people[reader], _row(work, acme, rows[-1]))
    _close(work, acme)
    soon = clock.now() - timedelta(minutes=50)
    _say(work, acme.people["alice"], acme.agents["expenses"], _payload(ASKED), soon)
    later = clock.now() - timedelta(minutes=20)
    _say(work, acme.agents["stock"], acme.people["alice"], _payload(OFFERED), later)


def _close(work: Work, acme: Workspace) -> None:
    """A group in which an agent hears of what mentions it, and of nothing else."""
    owner = acme.people["fiona"]
    caller = _caller(owner)
    group = making.anonymous(
        work,
        caller,
        None,
        name="月末结账 Month-end close",
        visibility="private",
        description="What is open before the books close.",
        details={},
        join_mode=None,
    )
    members = (acme.people["alice"], acme.people["bob"], acme.agents["expenses"])
    for member in members:
        roster.admit(work, caller, group, member.aid or "", "member_added")
    group.mention_mode = MentionMode.MENTION_ONLY
    work.session.add(group)
    work.session.flush()
    begins_at = clock.now() - timedelta(hours=3)
    agent = acme.agents["expenses"]
    row_id = ""
    for number, (who, text) in enumerate(CLOSING):
        payload = _payload(text)
        if agent.name in text:
            payload["mentions"] = [{"aid": agent.aid, "display": agent.name}]
        at = begins_at + timedelta(minutes=7 * number)
        row_id = _tell(work, group, acme.people[who], payload, at)
    _read(work, acme.people["alice"], _row(work, acme, row_id))


def _say(
    work: Work, sender: User | Agent, receiver: User | Agent, payload: dict[str, Any], at: datetime
) -> str:
    stored = delivery.store_direct(
        work,
        Direct(
            tenant_id=sender.tenant_id,
            sender_aid=sender.aid or "",
            sender_device=CONSOLE_DEVICE,
            receiver_aid=receiver.aid or "",
            message_id=f"demo-{ids.ulid().lower()}",
            payload=payload,
            html=markdown.html_of(payload["text"]),
        ),
    )
    _set_back(work, sender.tenant_id, stored.id, at)
    return stored.id


def _tell(work: Work, group: Group, sender: User, payload: dict[str, Any], at: datetime) -> str:
    message_id = f"demo-{ids.ulid().lower()}"
    ready = Ready(payload, html=markdown.html_of(payload["text"]))
    sending.store(work, _caller(sender), group.id, message_id, ready)
    stored = delivery.known(work.connection, sender.tenant_id, sender.aid or "", message_id)
    assert stored is not None  # noqa: S101 - just now
    _set_back(work, sender.tenant_id, stored.id, at)
    return stored.id


def _set_back(work: Work, tenant_id: str, row_id: str, at: datetime) -> None:
    row = work.session.get_one(Message, (tenant_id, row_id))
    row.sent_at, row.sent_ms = at, int(at.timestamp() * 1000)
    work.session.add(row)
    work.session.flush()


def _read(work: Work, reader: User, message: Message) -> None:
    conversations.read(
        work, reader.tenant_id, message.conversation_id, reader.aid or "", message.log_seq
    )


def _row(work: Work, acme: Workspace, row_id: str) -> Message:
    return work.session.get_one(Message, (acme.tenant.id, row_id))


def _caller(user: User) -> Caller:
    return Caller(
        tenant_id=user.tenant_id,
        aid=user.aid or "",
        kind=IdentityKind.USER,
        device_id=CONSOLE_DEVICE,
        door=Door.CONSOLE,
    )


def _payload(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
