"""Calls that a person has to assent to, and the people who decide, for the tests of approvals."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import update
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.commands import deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.call import Call, Origin
from app.commands.deciding import Browser, Decision
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity import agents, delegations
from app.identity.models import Agent, AgentRelease, Delegation, User
from app.identity.principal import Channel, Principal, Scope
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import AppError
from tests.packs.expenses.desk import Desk

REMIND, SEND, DISCARD = "expense.report.remind", "expense.payment.send", "expense.report.discard"
FRESH = Browser(is_fresh=True, user_agent="Firefox")


class Asking:
    """Requests and decisions at the desk of expenses."""

    def __init__(self, desk: Desk) -> None:
        self.desk, self.acme = desk, desk.acme
        self._agents: dict[tuple[str, str], Principal] = {}

    def agent(self, login: str, code: str = "expenses") -> Principal:
        """An agent that may run commands for somebody."""
        if (login, code) not in self._agents:
            user, agent = self.acme[login], self.acme.agents[code]
            scopes = [Scope.COMMANDS_READ, Scope.COMMANDS_INVOKE]
            delegation = db.transact_now(_delegate, user, agent.id, scopes)
            self._agents[login, code] = Principal(
                tenant_id=user.tenant_id,
                user_id=user.id,
                agent_release_id=db.read_now(_release, agent),
                delegation_id=delegation.id,
                session_id=None,
                channel=Channel.HTTP,
                actors=(agent.id,),
                scopes=frozenset(scopes),
                epoch=self.desk.world.user(user).authz_epoch,
            )
        return self._agents[login, code]

    def call(
        self,
        who: str | Principal,
        code: str,
        report: str,
        /,
        *,
        key: str | None = None,
        **more: Any,
    ) -> Call:
        """A call about a report; keyed where an agent makes it."""
        known = {name: more.pop(name) for name in ("approval_id", "origin") if name in more}
        made = self.desk.call(who, code, report, **more)
        return Call(
            code=made.code,
            input=made.input,
            principal=made.principal,
            idempotency_key=key or (None if made.principal.is_person else f"{code}:{report}"),
            approval_id=known.get("approval_id"),
            origin=known.get("origin", Origin()),
        )

    async def ask(self, call: Call) -> Approval:
        """Make a call that waits for a person; what waits."""
        refused = await self.refused(call)
        assert refused.reason == "approval_required", (refused.stage, refused.facts)
        return self.row(str(refused.facts["approvalId"]))

    async def refused(self, call: Call) -> Refused:
        """How a call is refused; that it is done fails the test."""
        try:
            done = await pipeline.execute(call)
        except Refused as refused:
            return refused
        raise AssertionError(f"{call.code} was done: {done}")

    async def decide(
        self, who: str | Principal, row: Approval, verdict: str = "approve", **more: Any
    ) -> Approval:
        """Somebody's click in the dialog as it stands now."""
        person = self.desk.person(who) if isinstance(who, str) else who
        decision = self.decision(person, row, verdict, **more)
        return await deciding.attempt(person, row.id, decision, FRESH)

    def decision(
        self, person: Principal, row: Approval, verdict: str = "approve", **more: Any
    ) -> Decision:
        """What the dialog of this person sends."""
        sent: dict[str, Any] = {
            "digest": row.digest,
            "nonce": deciding.nonce_for(row, person.session_id or ""),
            "typed": deciding.to_type(row),
            **more,
        }
        return Decision(verdict=verdict, **sent)  # type: ignore[arg-type]

    async def run(self, call: Call) -> Done:
        """Make a call."""
        return await pipeline.execute(call)

    def row(self, approval_id: str) -> Approval:
        """An approval as it is now."""
        return db.read_now(_row, self.acme.id, approval_id)

    def count(self) -> int:
        """How many approvals there are."""
        return len(db.read_now(_all))

    def entries(self, approval_id: str) -> Sequence[AuditEntry]:
        """What the trail says about an approval, the oldest first."""
        return db.read_now(_entries, approval_id)

    def forged(self) -> Sequence[AuditEntry]:
        """The attempts to decide that were refused and put on record."""
        return db.read_now(_forged)

    def set(self, approval_id: str, **values: Any) -> None:
        """Change columns, as time or an attacker at the database would."""
        db.transact_now(_set, approval_id, values)


async def fate(attempt: Any) -> str:
    """The reason of a refusal, or the state of what was decided."""
    try:
        row = await attempt
    except AppError as refused:
        return refused.reason
    return str(row.state)


def later(row: Approval, moment: datetime) -> bool:
    """Whether an approval lives until after a moment."""
    return row.expires_at > moment


def _delegate(work: Work, user: User, agent_id: str, scopes: list[Scope]) -> Delegation:
    agent = agents.one(work.session, user.tenant_id, agent_id)
    live = delegations.live(work.session, user.tenant_id, user.id, agent_id)
    if live is not None:
        live.scopes = [str(each) for each in scopes]
        work.session.add(live)
        return live
    return delegations.make_for(work, user, agent, scopes)


def _release(session: Session, agent: Agent) -> str:
    query = select(AgentRelease.id).where(
        AgentRelease.tenant_id == agent.tenant_id, AgentRelease.agent_id == agent.id
    )
    return session.exec(query).one()


def _row(session: Session, tenant_id: str, approval_id: str) -> Approval:
    return session.get_one(Approval, (tenant_id, approval_id))


def _all(session: Session) -> Sequence[str]:
    return session.exec(select(Approval.id)).all()


def _entries(session: Session, approval_id: str) -> Sequence[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.approval_id == approval_id)
    return session.exec(query.order_by(col(AuditEntry.seq))).all()


def _forged(session: Session) -> Sequence[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.command == "identity.approval.forged")
    return session.exec(query.order_by(col(AuditEntry.seq))).all()


def _set(work: Work, approval_id: str, values: dict[str, Any]) -> None:
    work.session.execute(update(Approval).where(col(Approval.id) == approval_id).values(**values))
