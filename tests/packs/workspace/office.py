"""Who governs a workspace in the tests, and their calls through the pipeline.

In Acme: `olga` owns it, `ada` administers it, `alice` and `bob` are members.
"""

from datetime import timedelta
from typing import Any

import pytest
from sqlmodel import select

from app.audit.models import AuditEntry
from app.commands import deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity import roles
from app.identity.models import BrowserSession, Role
from app.identity.principal import Principal
from app.kernel import clock, db
from app.kernel.db import Work
from tests.people import World


class Office:
    """The people, and what they call."""

    def __init__(self, world: World) -> None:
        self.world, self.acme = world, world.acme
        self._persons: dict[str, Principal] = {}

    def person(self, login: str) -> Principal:
        """Somebody, in a browser session that stays the same; `gina` owns the other tenant."""
        if login not in self._persons:
            company = self.world.globex if login == "gina" else self.acme
            self._persons[login] = self.world.person(company[login])
        return self._persons[login]

    def call(self, code: str, by: str | Principal = "ada", /, **sent: Any) -> Call:
        """A call by the names of the wire."""
        approval_id = sent.pop("approval_id", None)
        principal = by if isinstance(by, Principal) else self.person(by)
        return Call(code=code, input=sent, principal=principal, approval_id=approval_id)

    def do(self, code: str, by: str | Principal = "ada", /, **sent: Any) -> Done:
        """Run a command."""
        return db.transact_now(pipeline.perform, self.call(code, by, **sent))

    async def undo(self, done: Done, by: str = "ada") -> Done:
        """Run what takes a call back, assented to where that is asked."""
        assert done.undo is not None
        try:
            return await pipeline.execute(self.call(done.undo.code, by, **done.undo.input))
        except Refused as refusal:
            approval_id = await self.approve(refusal, by)
            again = {**done.undo.input, "approval_id": approval_id}
            return await pipeline.execute(self.call(done.undo.code, by, **again))

    async def refused(self, code: str, by: str | Principal = "ada", /, **sent: Any) -> Refused:
        """How a command is refused; that it is done fails the test."""
        with pytest.raises(Refused) as refusal:
            await pipeline.execute(self.call(code, by, **sent))
        return refusal.value

    async def agreed(self, code: str, by: str = "ada", /, **sent: Any) -> Done:
        """Run a command that the person who asks has to confirm."""
        refusal = await self.refused(code, by, **sent)
        approval_id = await self.approve(refusal, by)
        return await pipeline.execute(self.call(code, by, approval_id=approval_id, **sent))

    async def approve(self, refusal: Refused, decider: str) -> str:
        """Let somebody click on what a refused call asks for; the approval's id."""
        assert refusal.reason == "approval_required", (refusal.stage, refusal.reason)
        approval_id, person = str(refusal.facts["approvalId"]), self.person(decider)
        row = db.read_now(lambda session: session.get_one(Approval, (self.acme.id, approval_id)))
        decision = Decision(
            verdict="approve",
            digest=row.digest,
            nonce=deciding.nonce_for(row, person.session_id or ""),
            typed=deciding.to_type(row),
        )
        await deciding.attempt(person, approval_id, decision, Browser(is_fresh=True))
        return approval_id

    def stale(self, login: str) -> Principal:
        """Somebody whose sign-in is more than five minutes old."""
        person = self.world.person(self.acme[login])
        db.transact_now(_age, person)
        return person

    def role(self, code: str) -> Role:
        """A role of Acme's."""
        found = db.read_now(roles.by_code, self.acme.id, code)
        assert found is not None
        return found

    def trail(self, command: str) -> list[AuditEntry]:
        """The entries of a command."""
        query = select(AuditEntry).where(
            AuditEntry.tenant_id == self.acme.id, AuditEntry.command == command
        )
        return db.read_now(lambda session: list(session.exec(query)))


def _age(work: Work, person: Principal) -> None:
    row = work.session.get_one(BrowserSession, (person.tenant_id, person.session_id))
    row.auth_time = clock.now() - timedelta(minutes=6)
    work.session.add(row)
