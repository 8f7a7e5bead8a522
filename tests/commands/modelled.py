"""The real side of the model: calls through the pipeline, that may break; what is stored then."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from sqlalchemy import select as sql_select
from sqlmodel import Session, col, func, select

from app.audit import chain
from app.audit.models import AuditEntry
from app.commands import approval_closing, deciding, pipeline, record_check
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.models import CommandOutcome
from app.commands.outbox_models import OutboxEvent
from app.commands.refused import Refused
from app.identity import features, roles
from app.identity.models import EntitlementStatus
from app.kernel import db
from app.kernel.db import Work
from app.kernel.errors import AppError
from app.packs.expenses.models import Budget, Line, Payment, Report
from tests.commands.model import COMMIT, DISCARD, LIMIT, PEOPLE, WITHOUT_TARGET, End, Try
from tests.packs.expenses.desk import CARD, Desk
from tests.people import World

FRESH = Browser(is_fresh=True)
ENDED = ("done", "replayed", "refused")
GIVEN = {
    **{(login, "member", org): None for login, org in (("alice", "shanghai"), ("bob", "sales"))},
    ("mia", "member", "shanghai"): None,
    ("mia", "manager", "shanghai"): None,
    **{
        (login, role, "root"): None
        for login in ("fiona", "frank")
        for role in ("member", "finance")
    },
}
Held = Mapping[tuple[str, str, str], datetime | None]


class Lost(Exception):
    """The process died: nobody is told anything."""


class Bench:
    """One database with people in it, for many runs; each has a currency to itself."""

    def __init__(self, world: World, runner: asyncio.Runner) -> None:
        self.desk, self._runner = Desk(world), runner
        self.seen: Counter[str] = Counter()
        self.currency = "AAA"
        self._admin = world.acme_admin
        self._roles: dict[tuple[str, str, str], datetime | None] = dict(GIVEN)
        self._logins = {self.acme[login].id: login for login in PEOPLE}
        self._orgs = {
            org.id: name for name, org in (*self.acme.orgs.items(), ("root", self.acme.root))
        }
        self._read_to, self._hash = db.read_now(_head, self.acme.id)

    @property
    def acme(self) -> Any:
        """The tenant."""
        return self.desk.acme

    def begin(self) -> dict[tuple[str, str, str], datetime | None]:
        """A run of its own: a new currency, and everybody's first roles; which those are."""
        self.currency = _after(self.currency)
        for held in set(self._roles) - set(GIVEN):
            self.take(*held)
        for held in GIVEN:
            if self._roles.get(held, "none") is not None:
                self.give(*held, None)
        self.entitle(is_entitled=True)
        return dict(GIVEN)

    # what happens around calls

    def give(self, login: str, role: str, org: str, ends_at: datetime | None) -> None:
        """Let somebody hold a role."""
        db.transact_now(self._assign, login, role, org, ends_at)
        self._roles[login, role, org] = ends_at

    def take(self, login: str, role: str, org: str) -> None:
        """Take a role away."""
        db.transact_now(self._unassign, login, role, org)
        self._roles.pop((login, role, org))

    def entitle(self, *, is_entitled: bool) -> None:
        """Let the tenant have payments, or no longer."""
        status = EntitlementStatus.ACTIVE if is_entitled else EntitlementStatus.EXPIRED
        db.transact_now(
            lambda work: features.entitle(
                work, None, self.acme.id, "expense.payments", status=status
            )
        )

    def expire(self) -> None:
        """What a job does every few seconds."""
        while db.transact_now(approval_closing.expire_due):
            pass

    def decide(self, login: str, approval_id: str, verdict: Any) -> str:
        """Somebody's click in the dialog: the state it ends in, or why it does not count."""
        person, row = self.desk.person(login), db.read_now(_approval, self.acme.id, approval_id)
        decision = Decision(
            verdict=verdict,
            digest=row.digest,
            nonce=deciding.nonce_for(row, person.session_id or ""),
            typed=deciding.to_type(row),
        )
        try:
            made = self._runner.run(deciding.attempt(person, approval_id, decision, FRESH))
        except AppError as refused:
            return refused.reason
        return str(made.state)

    def withdraw(self, login: str, approval_id: str) -> str:
        """Somebody takes a request back: its state then, or why not."""
        try:
            row = db.transact_now(approval_closing.withdraw, self.desk.person(login), approval_id)
        except AppError as refused:
            return refused.reason
        return str(row.state)

    # calls

    def make(self, asked: Try) -> tuple[End, dict[str, Any], str]:
        """Make a call: how it ended, what it told, its id."""
        call = Call(
            code=asked.code,
            input=self._wire(asked),
            principal=self.desk.person(asked.user),
            idempotency_key=asked.key and f"{self.currency}-{asked.key}",
            expected_version=asked.expected,
            approval_id=asked.approval,
        )
        with _breaking(asked.fault):
            try:
                done = self._runner.run(pipeline.execute(call))
            except Refused as refused:
                end = End("refused", refused.stage, refused.reason)
                return end, dict(refused.facts), call.call_id
            except Lost:
                return End("lost"), {}, call.call_id
        org = self._orgs.get(str(call.input.get("orgId")))
        return End(done.outcome), {**done.result, "org": org}, call.call_id

    def _wire(self, asked: Try) -> dict[str, Any]:
        sent = dict(asked.sent)
        if asked.code in {LIMIT, "expense.report.create"}:
            sent["currency"] = self.currency
        if asked.code == LIMIT:
            org = sent.pop("org")
            sent["orgId"] = (self.acme.root if org == "root" else self.acme.orgs[org]).id
        if asked.code == "expense.report.create":
            sent["payeeAccount"] = CARD
        if asked.code not in WITHOUT_TARGET:
            sent["targetRecordId"] = asked.target
            sent["operationType"] = "DELETE" if asked.code == DISCARD else "UPDATE"
        return sent

    # what is stored

    def traces(self, call_id: str) -> tuple[list[tuple[Any, ...]], int, bool]:
        """Of one call: its entries, its kept outcomes, whether others will hear of it."""
        return db.read_now(_traces, self.acme.id, call_id)

    def reports(self) -> dict[str, tuple[Any, ...]]:
        """Every report of the run: owner, state, version, sums, month, budget, whether paid."""
        found = db.read_now(_reports, self.acme.id, self.currency)
        return {
            id: (self._logins[owner], self._orgs[org], *rest, self._orgs.get(budget))
            for id, owner, org, *rest, budget in found
        }

    def budgets(self) -> dict[tuple[str, str], tuple[Any, ...]]:
        """Every budget of the run: limit, submitted, approved, paid."""
        found = db.read_now(_budgets, self.acme.id, self.currency)
        return {(self._orgs[org], period): tuple(rest) for org, period, *rest in found}

    def approvals(self, ids: list[str]) -> dict[str, tuple[Any, ...]]:
        """These approvals: state, who decided, the stage that failed."""
        found = db.read_now(_approvals, self.acme.id, ids)
        return {id: (state, self._logins.get(by), stage) for id, state, by, stage in found}

    def faults(self) -> list[str]:
        """What does not fit together in the trail, or between it and the rows."""
        fresh = db.read_now(_entries_after, self.acme.id, self._read_to)
        found = []
        for entry in fresh:
            is_next = (entry.seq, entry.prev_hash) == (self._read_to + 1, self._hash)
            if not is_next or not chain.is_unchanged(entry):
                found.append(f"entry {entry.seq} does not follow from {self._read_to}")
            self._read_to, self._hash = entry.seq, entry.hash
        found += [problem.text for problem in db.read_now(_unfit, self.acme.id)]
        twice = db.read_now(_executed_twice, self.acme.id)
        return found + [f"approval {id} was used twice" for id in twice]

    def _assign(
        self, work: Work, login: str, code: str, org: str, ends_at: datetime | None
    ) -> None:
        role, at = self._role(work, code), self._org(org)
        roles.assign(work, None, self.acme[login], role, at, ends_at=ends_at)

    def _unassign(self, work: Work, login: str, code: str, org: str) -> None:
        roles.unassign(work, self._admin, self.acme[login], self._role(work, code), self._org(org))

    def _role(self, work: Work, code: str) -> Any:
        role = roles.by_code(work.session, self.acme.id, code)
        assert role is not None
        return role

    def _org(self, name: str) -> Any:
        return self.acme.root if name == "root" else self.acme.orgs[name]


@contextmanager
def _breaking(place: str | None) -> Iterator[None]:
    """Let the code break before a stage, or the process die before the commit."""
    if place is None:
        yield
    elif place == COMMIT:
        flush = Work.flush

        def flushed(work: Work) -> None:
            flush(work)
            raise Lost

        with _set(Work, "flush", flushed):
            yield
    else:
        stages = pipeline.MAY_IT_RUN + pipeline.CHANGE_IT
        stage = next(each for each in stages if pipeline.name_of(each) == place)

        def broken(_ctx: Any) -> None:
            raise RuntimeError(f"broken before {place}")

        with _set(stage, "run", broken):
            yield


@contextmanager
def _set(owner: Any, name: str, value: Callable[..., Any]) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _after(currency: str) -> str:
    number = sum((ord(letter) - 65) * 26**place for place, letter in enumerate(currency)) + 1
    return "".join(chr(65 + number // 26**place % 26) for place in range(3))


def _head(session: Session, tenant_id: str) -> tuple[int, str]:
    query = select(AuditEntry.seq, AuditEntry.hash).where(AuditEntry.tenant_id == tenant_id)
    seq, hash_ = session.exec(query.order_by(col(AuditEntry.seq).desc())).first() or (0, "")
    return seq, hash_


def _entries_after(session: Session, tenant_id: str, seq: int) -> list[AuditEntry]:
    query = select(AuditEntry).where(AuditEntry.tenant_id == tenant_id, AuditEntry.seq > seq)
    return list(session.exec(query.order_by(col(AuditEntry.seq))))


def _unfit(session: Session, tenant_id: str) -> list[Any]:
    return list(record_check.check(session, tenant_id))


def _executed_twice(session: Session, tenant_id: str) -> list[Any]:
    query = (
        select(AuditEntry.approval_id)
        .where(
            AuditEntry.tenant_id == tenant_id,
            AuditEntry.outcome == "done",
            col(AuditEntry.approval_id).is_not(None),
        )
        .group_by(col(AuditEntry.approval_id))
        .having(func.count() > 1)
    )
    return list(session.exec(query))


def _approval(session: Session, tenant_id: str, approval_id: str) -> Approval:
    return session.get_one(Approval, (tenant_id, approval_id))


def _traces(
    session: Session, tenant_id: str, call_id: str
) -> tuple[list[tuple[Any, ...]], int, bool]:
    entries = session.exec(
        select(AuditEntry.outcome, AuditEntry.stage, AuditEntry.reason).where(
            AuditEntry.tenant_id == tenant_id,
            AuditEntry.call_id == call_id,
            col(AuditEntry.outcome).in_(ENDED),
        )
    ).all()
    kept = session.exec(
        select(func.count()).where(
            CommandOutcome.tenant_id == tenant_id, CommandOutcome.call_id == call_id
        )
    ).one()
    told = session.exec(
        select(func.count()).where(
            OutboxEvent.tenant_id == tenant_id, OutboxEvent.call_id == call_id
        )
    ).one()
    return [tuple(entry) for entry in entries], kept, told > 0


def _reports(session: Session, tenant_id: str, currency: str) -> list[Any]:
    lines = select(func.count()).where(Line.report_id == Report.id).scalar_subquery()
    paid = select(func.count()).where(Payment.report_id == Report.id).scalar_subquery()
    month = select(Budget.org_id).where(Budget.id == Report.budget_id).scalar_subquery()
    query = sql_select(
        col(Report.id),
        col(Report.owner_id),
        col(Report.org_id),
        col(Report.state),
        col(Report.version),
        col(Report.total_minor),
        col(Report.line_count),
        col(Report.period),
        lines,
        paid,
        month,
    ).where(col(Report.tenant_id) == tenant_id, col(Report.currency) == currency)
    return list(session.execute(query))


def _budgets(session: Session, tenant_id: str, currency: str) -> list[Any]:
    query = sql_select(
        col(Budget.org_id),
        col(Budget.period),
        col(Budget.limit_minor),
        col(Budget.submitted_minor),
        col(Budget.approved_minor),
        col(Budget.paid_minor),
    ).where(col(Budget.tenant_id) == tenant_id, col(Budget.currency) == currency)
    return list(session.execute(query))


def _approvals(session: Session, tenant_id: str, ids: list[str]) -> list[Any]:
    query = select(Approval.id, Approval.state, Approval.decided_by, Approval.failed_stage).where(
        Approval.tenant_id == tenant_id, col(Approval.id).in_(ids)
    )
    return list(session.exec(query))
