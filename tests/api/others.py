"""Three identities with things of their own, none of which another one may ever be told of.

`alice` is a person of Acme in a browser, `bob` a user of Acme through an agent's token, `gina` the
owner of Globex in a browser. Every thing of theirs has a word in it that nothing else has.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import pipeline, refusals
from app.commands.call import Call
from app.commands.models import CommandVersion
from app.commands.refused import Refused
from app.identity.models import User
from app.identity.principal import Principal
from app.kernel import db, ids
from app.kernel.db import Work
from tests.commands.agents import program
from tests.people import World

CREATE, DISCARD, REMIND = (
    "expense.report.create",
    "expense.report.discard",
    "expense.report.remind",
)
THEIRS = "theirs.alone.read"  # a command that Globex has, and no other tenant


@dataclass
class Identity:
    """One caller: how they call, the words in what is theirs, its ids by kind."""

    name: str
    user: User
    client: httpx2.AsyncClient
    word: str
    things: dict[str, list[str]] = field(default_factory=dict)

    @property
    def tenant_id(self) -> str:
        """Where they are."""
        return self.user.tenant_id


def three(world: World) -> tuple[Identity, Identity, Identity]:
    """The three, each with reports, calls, approvals and entries."""
    alice, bob, gina = world.acme["alice"], world.acme["bob"], world.globex["gina"]
    world.give(gina, "spender", grants=_SPENDER)
    made = (
        Identity("alice", alice, _json(world.client(alice)), "albatross"),
        Identity("bob's agent", bob, program(world, world.acme, bob), "bumblebee"),
        Identity("gina", gina, _json(world.client(gina)), "guillemot"),
    )
    db.transact_now(_command, world.globex.id)
    for who in made:
        who.things = db.transact_now(_things, world.person(who.user), who.word)
        who.things["seq"] = db.read_now(_entries, who)
        who.things["command"] = [CREATE, DISCARD] + ([THEIRS] if who.name == "gina" else [])
    return made


def strange(who: Identity, everybody: tuple[Identity, ...], kind: str) -> list[str]:
    """Ids of one kind that belong to the others, and are nothing to this one."""
    others = [each for each in everybody if each is not who]
    if kind == "seq":  # another tenant's numbers are one's own as well
        others = [each for each in others if each.tenant_id == who.tenant_id]
    if kind == "command":
        return [THEIRS] if who.name != "gina" else []
    return [id for each in others for id in each.things.get(kind, [])]


def unknown(kind: str) -> str:
    """An id of this kind that nobody has."""
    return {"seq": "99999", "command": "nobodys.own.read"}.get(kind) or ids.ulid()


_SPENDER = {
    "expense.report.read": "self",
    "expense.report.manage": "self",
    "expense.report.submit": "self",
}


def _json(client: httpx2.AsyncClient) -> httpx2.AsyncClient:
    client.headers["Accept"] = "application/json"
    return client


def _things(work: Work, person: Principal, word: str) -> dict[str, list[str]]:
    given = {"title": f"Trip of the {word}", "period": "2026-10", "payeeName": word}
    done = [
        pipeline.perform(work, Call(code=CREATE, input=given, principal=person)) for _ in range(2)
    ]
    reports = [str(each.result["reportId"]) for each in done]
    return {
        "report": reports,
        "call": [each.call_id for each in done],
        "approval": [_asked(work, person, report) for report in reports],
        "user": [person.user_id],
    }


def _asked(work: Work, person: Principal, report: str) -> str:
    given = {"targetRecordId": report, "operationType": "DELETE"}
    trying = refusals.Trying(Call(code=DISCARD, input=given, principal=person))
    savepoint = work.connection.begin_nested()
    try:
        pipeline.perform(work, trying.call, trying)
    except Refused as refused:
        savepoint.rollback()
        told = refusals.record(work, trying, refused, pipeline.rehearse)
        return str(told.facts["approvalId"])
    raise AssertionError("it was done without anybody's assent")


def _entries(session: Session, who: Identity) -> list[str]:
    query = select(AuditEntry.seq).where(
        AuditEntry.tenant_id == who.tenant_id,
        AuditEntry.user_id == who.user.id,
        col(AuditEntry.target_type) == "expense.report",
    )
    return [str(seq) for seq in session.exec(query)]


def _command(work: Work, tenant_id: str) -> None:
    query = select(CommandVersion).where(
        CommandVersion.tenant_id == tenant_id, CommandVersion.code == "expense.report.get"
    )
    row = work.session.exec(query).one()
    told: Mapping[str, Any] = {**row.definition, "code": THEIRS}
    copied = {**row.model_dump(), "id": ids.ulid(), "code": THEIRS, "definition": told}
    work.session.add(CommandVersion(**copied))
