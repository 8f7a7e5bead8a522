"""Who works with expenses in the tests, and their calls through the pipeline.

In Acme: `alice` (Shanghai) and `bob` (Sales, below it) spend; `mia` manages Shanghai; `fiona` and
`frank` are finance. All of them came in the way the product lets people in.
"""

from typing import Any

from app.commands import deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Decision
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity import features, roles, users
from app.identity.models import EntitlementStatus, Org, User, UserStatus
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.packs import expenses
from tests.people import Company, Joining, World

PERIOD = "2026-10"
CARD = "6222 0212 3456 7890"
DELETES = {"expense.report.discard"}


class Desk:
    """The people, the months and the calls of expenses."""

    def __init__(self, world: World) -> None:
        self.world, self.acme = world, world.acme
        if "mia" not in self.acme.people:  # else they came with the database
            db.transact_now(_join, self.acme)
        self.globex_gus = world.globex["gus"]
        self._persons: dict[str, Principal] = {}

    def person(self, login: str) -> Principal:
        """Somebody of Acme, in a browser session that stays the same."""
        if login not in self._persons:
            self._persons[login] = self.world.person(self.acme[login])
        return self._persons[login]

    async def run(
        self, who: str | Principal, code: str, report: str | None = None, /, **sent: Any
    ) -> Done:
        """Call a command as somebody, on a report where it takes one."""
        return await pipeline.execute(self.call(who, code, report, **sent))

    async def refused(
        self, who: str | Principal, code: str, report: str | None = None, /, **sent: Any
    ) -> Refused:
        """How a call is refused; that it is not done fails the test."""
        try:
            done = await self.run(who, code, report, **sent)
        except Refused as refused:
            return refused
        raise AssertionError(f"{code} was done: {done}")

    async def agreed(
        self, who: str, decider: str, code: str, report: str | None = None, /, **sent: Any
    ) -> Done:
        """Call a command that a person has to assent to: ask, decide, call again."""
        refused = await self.refused(who, code, report, **sent)
        approval_id = await self.approve(refused, decider)
        return await pipeline.execute(self.call(who, code, report, approval_id=approval_id, **sent))

    async def approve(self, refused: Refused, decider: str) -> str:
        """Let somebody click on what a refused call asks for; the approval's id."""
        assert refused.reason == "approval_required", (refused.stage, refused.reason, refused.facts)
        approval_id = str(refused.facts["approvalId"])
        person = self.person(decider)
        row = await self.approval(refused)
        decision = Decision(
            verdict="approve",
            digest=row.digest,
            nonce=deciding.nonce_for(row, person.session_id or ""),
            typed=deciding.to_type(row),
        )
        await deciding.attempt(person, approval_id, decision, deciding.Browser(is_fresh=True))
        return approval_id

    async def approval(self, refused: Refused) -> Approval:
        """What a refused call waits for."""
        key = (self.acme.id, str(refused.facts["approvalId"]))
        return await db.read(lambda session: session.get_one(Approval, key))

    async def undo(self, who: str, done: Done) -> Done:
        """Call what takes `done` back, with the input that came with it."""
        assert done.undo is not None
        call = Call(code=done.undo.code, input=done.undo.input, principal=self.person(who))
        try:
            return await pipeline.execute(call)
        except Refused as refused:
            approval_id = await self.approve(refused, who)
            return await pipeline.execute(
                Call(
                    code=call.code,
                    input=call.input,
                    principal=call.principal,
                    approval_id=approval_id,
                )
            )

    def call(
        self,
        who: str | Principal,
        code: str,
        report: str | None = None,
        /,
        *,
        approval_id: str | None = None,
        **sent: Any,
    ) -> Call:
        """A call by the names of the wire, the target's fields included."""
        if report is not None:
            sent["targetRecordId"] = report
            if not code.endswith(".get"):
                sent["operationType"] = "DELETE" if code in DELETES else "UPDATE"
        principal = who if isinstance(who, Principal) else self.person(who)
        return Call(code=code, input=sent, principal=principal, approval_id=approval_id)

    async def draft(self, who: str, *amounts_minor: int, receipts: bool = True) -> str:
        """A draft of somebody, with a line for each amount; its id."""
        done = await self.run(
            who, "expense.report.create", title="Trip", period=PERIOD, payeeAccount=CARD
        )
        report_id = str(done.result["reportId"])
        for number, amount in enumerate(amounts_minor):
            proof = {"receiptNumber": f"R-{number}"} if receipts else {}
            await self.add(who, report_id, amount, **proof)
        return report_id

    async def add(self, who: str, report_id: str, amount_minor: int, **sent: Any) -> Done:
        """One more line."""
        line = {
            "spentOn": "2026-10-14",
            "category": "meals",
            "description": "Lunch",
            "amountMinor": amount_minor,
        }
        return await self.run(who, "expense.line.add", report_id, **{**line, **sent})

    async def submitted(self, who: str, *amounts_minor: int) -> str:
        """A submitted report of somebody; its id."""
        report_id = await self.draft(who, *amounts_minor)
        await self.run(who, "expense.report.submit", report_id)
        return report_id

    async def approved(self, who: str, *amounts_minor: int) -> str:
        """A report of somebody that `mia` approved; its id."""
        report_id = await self.submitted(who, *amounts_minor)
        await self.run("mia", "expense.report.approve", report_id)
        return report_id

    async def report(self, report_id: str, who: str = "fiona") -> dict[str, Any]:
        """A report as a reader gets it."""
        done = await self.run(who, "expense.report.get", report_id)
        return dict(done.result)

    async def limit(self, org: str, minor: int | None, period: str = PERIOD) -> Done:
        """Set the budget of an organisation's month."""
        org_id = self.acme.orgs[org].id
        return await self.run(
            "fiona", "expense.budget.set", orgId=org_id, period=period, limitMinor=minor
        )

    async def budget(self, org: str) -> dict[str, Any]:
        """The budget of an organisation's month, as finance sees it."""
        org_id = self.acme.orgs[org].id
        done = await self.run("fiona", "expense.budget.get", orgId=org_id, period=PERIOD)
        return dict(done.result)


def _join(work: Work, acme: Company) -> None:
    for login, role, org in (
        ("mia", "manager", acme.orgs["shanghai"]),
        ("fiona", "finance", acme.root),
        ("frank", "finance", acme.root),
    ):
        acme.people[login] = _person(work, login, role, org)
    features.entitle(work, None, acme.id, "expense.payments", status=EntitlementStatus.ACTIVE)


JOINING = Joining("desk", _join)


def _person(work: Work, login: str, role: str, org: Org) -> User:
    user = users.create(
        work, None, org, login=login, display_name=login.title(), status=UserStatus.ACTIVE
    )
    for code in ("member", role):
        held = roles.by_code(work.session, org.tenant_id, code)
        if held is None:
            grants = {name: scope.value for name, scope in expenses.ROLES[role].items()}
            held = roles.create(
                work, None, tenant_id=org.tenant_id, code=code, name=code.title(), grants=grants
            )
        roles.assign(work, None, user, held, org)
    return user
