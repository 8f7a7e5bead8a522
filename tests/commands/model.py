"""A small model of expenses and assent: what a call has to come to, in plain Python.

It knows the rules as they are written for people and nothing of how the pipeline carries them out:
no database, no expressions, no stages but their names and order. `tests/commands/test_model.py`
holds the product against it.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

STAGES = (
    *("load", "authorize", "schema_validate", "idempotency_check", "entitlement_check"),
    *("sod_check", "state_check", "assert", "pre_invariant", "cross_field_validation"),
    *("approval_check", "field_map", "computed_fields", "change_tracking", "handler"),
    *("side_effect", "roll_up", "post_action", "effect", "post_invariant"),
)
COMMIT = "commit"  # a place to die: all is written, nothing is committed
PATHS = {
    "root": ("root",),
    "shanghai": ("root", "shanghai"),
    "sales": ("root", "shanghai", "sales"),
}
HOMES = {"alice": "shanghai", "bob": "sales", "mia": "shanghai", "fiona": "root", "frank": "root"}
PEOPLE = tuple(HOMES)
SELF, BELOW, ALL = "self", "org_and_below", "all"
ROLES = {
    "member": {"manage": SELF, "submit": SELF},
    "manager": {"approve": BELOW},
    "finance": {"pay": ALL, "budget": ALL},
}
LARGE = 500_000  # a report from here on needs a note
UNPROVEN = 20_000  # a line above it needs a receipt


@dataclass(frozen=True)
class Kind:
    """What the table of commands says of one."""

    permission: str
    begins: tuple[str, ...] = ()
    ends: str = ""
    asks: timedelta | None = None  # how long a person has to assent, where one has to
    others: bool = False  # somebody else assents
    tells: bool = True  # others hear of it


TEN_MINUTES, A_DAY = timedelta(minutes=10), timedelta(hours=24)
KINDS = {
    "expense.report.create": Kind("manage"),
    "expense.report.update": Kind("manage"),
    "expense.report.discard": Kind("manage", asks=TEN_MINUTES),
    "expense.line.add": Kind("manage", tells=False),
    "expense.line.remove": Kind("manage", tells=False),
    "expense.report.submit": Kind("submit", ("draft", "rejected"), "submitted"),
    "expense.report.recall": Kind("submit", ("submitted",), "draft", asks=TEN_MINUTES),
    "expense.report.approve": Kind("approve", ("submitted",), "approved"),
    "expense.report.reject": Kind("approve", ("submitted",), "rejected"),
    "expense.report.reopen": Kind("approve", ("approved", "rejected"), "submitted"),
    "expense.report.void": Kind("approve", ("approved",), "voided", asks=TEN_MINUTES),
    "expense.payment.send": Kind("pay", ("approved",), "paid", asks=A_DAY, others=True),
    "expense.budget.set": Kind("budget"),
}
CREATE, DISCARD, PAY = "expense.report.create", "expense.report.discard", "expense.payment.send"
ADD, REMOVE, LIMIT = "expense.line.add", "expense.line.remove", "expense.budget.set"
SUBMIT, APPROVE = "expense.report.submit", "expense.report.approve"
UPDATE = "expense.report.update"
OF_OWNERS = {DISCARD, ADD, REMOVE, SUBMIT, UPDATE, "expense.report.recall"}
KEPT_APART = {SUBMIT: APPROVE, APPROVE: SUBMIT, PAY: APPROVE}
WITH_LINES = {SUBMIT, APPROVE, "expense.report.reopen"}
WITHOUT_TARGET = {CREATE, LIMIT}


@dataclass(frozen=True)
class Try:
    """One call.

    Attributes:
        sent: the input without the fields of the target.
        fault: a stage before which the code breaks, or `COMMIT`.
    """

    user: str
    code: str
    target: str | None = None
    sent: dict[str, Any] = field(default_factory=dict)
    key: str | None = None
    expected: int | None = None
    approval: str | None = None
    fault: str | None = None

    @property
    def said(self) -> str:
        """Its input by which calls are the same or not."""
        return json.dumps([self.target, self.sent], sort_keys=True)


@dataclass(frozen=True)
class End:
    """How a call ends: done, replayed, refused, or lost with the process.

    Attributes:
        assented: it came past an approval, which it used up.
    """

    outcome: str
    stage: str | None = None
    reason: str | None = None
    assented: bool = field(default=False, compare=False)


DONE, REPLAYED, LOST = End("done"), End("replayed"), End("lost")


@dataclass
class Line:
    """One expense."""

    amount: int
    is_proven: bool


@dataclass
class Report:
    """A report, as far as rules look at it."""

    owner: str
    period: str
    state: str = "draft"
    version: int = 1
    lines: dict[str, Line] = field(default_factory=dict)
    budget: tuple[str, str] | None = None

    @property
    def org(self) -> str:
        return HOMES[self.owner]

    @property
    def total(self) -> int:
        return sum(line.amount for line in self.lines.values())


@dataclass
class Assent:
    """What a person was asked."""

    asked: Try
    version: int
    expires_at: datetime
    state: str = "open"
    decided_by: str | None = None
    verdict: str = ""
    failed_stage: str | None = None


@dataclass
class Model:
    """Everything that decides how a call ends."""

    now: datetime
    entitled_from: datetime
    reports: dict[str, Report] = field(default_factory=dict)
    gone: list[str] = field(default_factory=list)
    limits: dict[tuple[str, str], int | None] = field(default_factory=dict)
    assents: dict[str, Assent] = field(default_factory=dict)
    roles: dict[tuple[str, str, str], datetime | None] = field(default_factory=dict)
    keys: dict[tuple[str, str, str], tuple[str, datetime]] = field(default_factory=dict)
    did: set[tuple[str, str, str]] = field(default_factory=set)
    is_entitled: bool = True

    # what a call comes to

    def end_of(self, asked: Try) -> End:
        """How this call has to end now."""
        end = self._walk(asked)
        if end.reason == "approval_required":
            unheard = replace(asked, approval=None)
            end = self._walk(unheard, rehearsing=True, otherwise=end)
        return LOST if asked.fault == COMMIT else end

    def _walk(self, asked: Try, *, rehearsing: bool = False, otherwise: End = DONE) -> End:
        assented = False
        for stage in STAGES:
            if rehearsing and stage == "approval_check":
                continue
            if asked.fault == stage:
                return End("refused", stage, f"{stage}_failed", assented)
            guard = _GUARDS.get(stage)
            reason = guard(self, asked) if guard else None
            if reason == "replayed":
                return (
                    End("refused", "effect", "effect_failed")
                    if asked.fault == "effect"
                    else REPLAYED
                )
            if reason:
                return End("refused", stage, reason, assented)
            if stage == "approval_check":
                assented = KINDS[asked.code].asks is not None
        return End(otherwise.outcome, otherwise.stage, otherwise.reason, assented)

    def _authorize(self, asked: Try) -> str | None:
        permission = KINDS[asked.code].permission
        if asked.code == CREATE:
            is_reached = self.reaches(asked.user, permission, asked.user, HOMES[asked.user])
        elif asked.code == LIMIT:
            is_reached = self.holds(asked.user, permission)
        else:
            report = self.reports.get(asked.target or "")
            is_reached = report is not None and self.reaches(
                asked.user, permission, report.owner, report.org
            )
            if not is_reached and self.holds(asked.user, permission):
                return "record_not_found"
        return None if is_reached else "permission_denied"

    def _schema(self, asked: Try) -> str | None:
        return "invalid_input" if "nonsense" in asked.sent else None

    def _idempotency(self, asked: Try) -> str | None:
        kept = self.keys.get((asked.user, asked.code, asked.key or ""))
        if kept is None or kept[1] <= self.now:
            return None
        return "replayed" if kept[0] == _digest(asked) else "key_reused"

    def _entitlement(self, asked: Try) -> str | None:
        has_it = self.is_entitled and self.entitled_from <= self.now
        return None if has_it or asked.code != PAY else "feature_not_entitled"

    def _duties(self, asked: Try) -> str | None:
        other = KEPT_APART.get(asked.code)
        did_it = other is not None and (asked.user, other, asked.target or "") in self.did
        return "sod_conflict" if did_it else None

    def _state(self, asked: Try) -> str | None:
        kind, report = KINDS[asked.code], self.reports.get(asked.target or "")
        if report is None:
            return None
        if kind.begins and report.state not in kind.begins:
            return "illegal_state"
        if asked.expected is not None and asked.expected != report.version:
            return "version_conflict"
        return None

    def _conditions(self, asked: Try) -> str | None:
        report = self.reports.get(asked.target or "")
        if report is None:
            return None
        lines = report.lines.values()
        holds = (report.owner == asked.user) is (asked.code in OF_OWNERS)
        if asked.code in {ADD, REMOVE, UPDATE}:
            holds = holds and report.state in {"draft", "rejected"}
        if asked.code == DISCARD:
            holds = holds and report.state == "draft"
        if asked.code in WITH_LINES:
            proven = all(line.is_proven or line.amount <= UNPROVEN for line in lines)
            holds = holds and len(lines) > 0 and proven
        return None if holds else "assertion_failed"

    def _fields(self, asked: Try) -> str | None:
        report = self.reports.get(asked.target or "")
        if asked.code == SUBMIT and report and report.total >= LARGE and not asked.sent.get("note"):
            return "cross_field_failed"
        if asked.sent.get("receiptIssuer") and not asked.sent.get("receiptNumber"):
            return "cross_field_failed"
        return None

    def _assent(self, asked: Try) -> str | None:
        if KINDS[asked.code].asks is None:
            return None
        given = self.assents.get(asked.approval or "")
        about = given.asked if given else None
        if (
            given is None
            or about is None
            or (about.user, about.code, about.target) != (asked.user, asked.code, asked.target)
        ):
            return "approval_required"
        over = {
            "consumed": "approval_consumed",
            "failed": "approval_consumed",
            "denied": "approval_denied",
            "cancelled": "approval_stale",
            "expired": "approval_expired",
        }
        if given.state in over:
            return over[given.state]
        if given.expires_at <= self.now:
            return "approval_expired"
        if about.said != asked.said or given.version != self.version_of(asked.target):
            return "approval_stale"
        return "approval_required" if given.state == "open" else None

    def _handler(self, asked: Try) -> str | None:
        report = self.reports.get(asked.target or "")
        if asked.code == REMOVE and report and asked.sent["lineId"] not in report.lines:
            return "record_not_found"
        given = self.assents.get(asked.approval or "")
        if asked.code == PAY and report and given and given.decided_by == report.owner:
            return "own_payment"
        return None

    def _invariants(self, asked: Try) -> str | None:
        report = self.reports.get(asked.target or "")
        if asked.code != APPROVE or report is None:
            return None
        budget = report.budget or self.budget_of(report.org, report.period)
        limit = self.limits.get(budget) if budget else None
        if budget is None or limit is None:
            return None
        promised = self.sum_of(budget, "approved") + self.sum_of(budget, "paid") + report.total
        return "invariant_failed" if promised > limit else None

    # what comes of it

    def follow(self, asked: Try, end: End, told: dict[str, Any]) -> None:
        """Change as the call did; `told` are ids that it made."""
        if end.outcome == "lost":
            return
        if end.assented and end.outcome == "done":
            self.assents[asked.approval or ""].state = "consumed"
        elif end.assented and end.outcome == "refused" and end.stage != "approval_check":
            self._fail(asked.approval or "", end.stage)
        if end.reason == "approval_required":
            self._ask(asked, str(told["approvalId"]))
        if end.outcome == "done":
            self._do(asked, told)
            if asked.key:
                kept = (_digest(asked), self.now + A_DAY)
                self.keys[asked.user, asked.code, asked.key] = kept

    def _fail(self, approval: str, stage: str | None) -> None:
        given = self.assents[approval]
        if given.state == "approved":
            given.state, given.failed_stage = "failed", stage

    def _ask(self, asked: Try, approval: str) -> None:
        version, lives = self.version_of(asked.target), KINDS[asked.code].asks
        assert lives is not None, "nobody has to be asked about it"
        for id, known in self.assents.items():
            same = (known.asked.user, known.asked.code, known.asked.said, known.version)
            if known.state == "open" and same == (asked.user, asked.code, asked.said, version):
                if known.expires_at > self.now:
                    assert approval == id, "the same question is the same approval"
                    return
                known.state = "expired"
        assert approval not in self.assents, "another question is another approval"
        self.assents[approval] = Assent(asked, version, self.now + lives)

    def _do(self, asked: Try, told: dict[str, Any]) -> None:
        self.did.add((asked.user, asked.code, asked.target or ""))
        if asked.code == CREATE:
            self.reports[told["reportId"]] = Report(asked.user, asked.sent["period"])
            return
        if asked.code == LIMIT:
            self.limits[told["org"], asked.sent["period"]] = asked.sent["limitMinor"]
            return
        report = self.reports[asked.target or ""]
        report.version += 1
        report.state = KINDS[asked.code].ends or report.state
        if asked.code == ADD:
            is_proven = bool(asked.sent.get("receiptNumber"))
            report.lines[told["lineId"]] = Line(asked.sent["amountMinor"], is_proven)
        elif asked.code == REMOVE:
            del report.lines[asked.sent["lineId"]]
        elif asked.code == DISCARD:
            del self.reports[asked.target or ""]
            self.gone.append(asked.target or "")
        elif asked.code == UPDATE:
            report.period = asked.sent.get("period", report.period)
        elif asked.code == SUBMIT or (asked.code == APPROVE and report.budget is None):
            report.budget = self.budget_of(report.org, report.period)
        elif asked.code == PAY:
            given = self.assents[asked.approval or ""]
            assert len({asked.user, given.decided_by, report.owner}) == 3, "three pairs of eyes"

    # who may what

    def holds(self, user: str, permission: str) -> bool:
        """Whether somebody holds a permission at all."""
        return any(True for _ in self._grants(user, permission))

    def reaches(self, user: str, permission: str, owner: str, org: str) -> bool:
        """Whether somebody's permission reaches what is this owner's, in this organisation."""
        return any(
            scope == ALL
            or (scope == SELF and owner == user)
            or (scope == BELOW and at in PATHS[org])
            for scope, at in self._grants(user, permission)
        )

    def _grants(self, user: str, permission: str) -> Iterator[tuple[str, str]]:
        for (holder, role, org), ends_at in self.roles.items():
            is_live = ends_at is None or ends_at > self.now
            if holder == user and is_live and permission in ROLES[role]:
                yield ROLES[role][permission], org

    # what people say about approvals

    def decision(self, user: str, approval: str, verdict: str) -> str:
        """What comes of a click: the state it ends in, or why it does not count."""
        given = self.assents[approval]
        if not self._may_decide(user, given):
            may_see = user in {given.asked.user, given.decided_by}
            return "not_an_approver" if may_see else "not_found"
        if given.state != "open" or given.expires_at <= self.now:
            is_same = given.decided_by == user and given.verdict == verdict
            return given.state if is_same else "approval_closed"
        if verdict == "approve" and given.version != self.version_of(given.asked.target):
            return "approval_stale"
        return "approved" if verdict == "approve" else "denied"

    def decide(self, user: str, approval: str, verdict: str) -> None:
        """Change as the click did."""
        if self.decision(user, approval, verdict) not in {"approved", "denied"}:
            return
        given = self.assents[approval]
        if given.state == "open":
            given.state = "approved" if verdict == "approve" else "denied"
            given.decided_by, given.verdict = user, verdict

    def withdrawal(self, user: str, approval: str) -> str:
        """What comes of taking a request back."""
        given = self.assents[approval]
        if given.asked.user != user:
            return "not_found"
        return "cancelled" if given.state in {"open", "approved"} else "approval_closed"

    def expire(self) -> None:
        """Close what nobody decided or used in time."""
        for given in self.assents.values():
            if given.state in {"open", "approved"} and given.expires_at <= self.now:
                given.state = "expired"

    def _may_decide(self, user: str, given: Assent) -> bool:
        asked, kind = given.asked, KINDS[given.asked.code]
        if not kind.others:
            return asked.user == user
        report = self.reports.get(asked.target or "")
        if asked.user == user or report is None:
            return False
        did_the_other = (user, KEPT_APART.get(asked.code, ""), asked.target or "") in self.did
        return self.reaches(user, kind.permission, report.owner, report.org) and not did_the_other

    # sums

    def version_of(self, target: str | None) -> int:
        """The version of a report; 0 where there is none."""
        report = self.reports.get(target or "")
        return report.version if report else 0

    def budget_of(self, org: str, period: str) -> tuple[str, str] | None:
        """The limited budget of a month: of the organisation, else the nearest above it."""
        for at in reversed(PATHS[org]):
            if self.limits.get((at, period)) is not None:
                return (at, period)
        return None

    def sum_of(self, budget: tuple[str, str], state: str) -> int:
        """What of a budget is in a state."""
        return sum(
            report.total
            for report in self.reports.values()
            if report.budget == budget and report.state == state
        )


def _digest(asked: Try) -> str:
    return f"{asked.said} {asked.expected}"


_GUARDS: dict[str, Callable[[Model, Try], str | None]] = {
    "authorize": Model._authorize,
    "schema_validate": Model._schema,
    "idempotency_check": Model._idempotency,
    "entitlement_check": Model._entitlement,
    "sod_check": Model._duties,
    "state_check": Model._state,
    "assert": Model._conditions,
    "cross_field_validation": Model._fields,
    "approval_check": Model._assent,
    "handler": Model._handler,
    "post_invariant": Model._invariants,
}
