"""What `--demo` shows of expenses: forty reports of the last four months, in every state.

One more is a draft of Alice's last October, for whoever asks an agent to submit it.

They came about as others will: each by its own calls, through every stage, in the order of time.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.commands import demo_calls
from app.identity import demo, features
from app.identity.demo import Workspace
from app.identity.models import EntitlementStatus, User, UserStatus
from app.kernel import clock
from app.kernel.db import Work

DRAFT, SUBMITTED, APPROVED, REJECTED, VOIDED, PAID = "DSARVP"
#: What became of each report, the oldest first; three days lie between two of them.
FATES = "PPPVPPPRPPPPVPPPARPAAASRASASDSSRSADSDDSD"
APART = timedelta(days=3)
PAYERS = ("fiona", "frank")
LIMITS = {"shanghai": 4_000_000, "beijing": 1_500_000, "": 2_000_000}  # minor units a month

#: title, and its lines: category, description, minor units.
TRIPS = (
    (
        "苏州客户拜访 Customer visit, Suzhou",
        (("travel", "高铁 Train", 9_850), ("meals", "午餐 Lunch", 26_800)),
    ),
    (
        "杭州行业展会 Trade fair, Hangzhou",
        (("lodging", "酒店两晚 Hotel, two nights", 118_000), ("transport", "打车 Taxi", 6_420)),
    ),
    ("团队聚餐 Team dinner", (("meals", "晚餐 Dinner for nine", 143_500),)),
    (
        "办公用品 Office supplies",
        (("office", "打印纸 Paper", 12_990), ("office", "键盘 Keyboard", 19_900)),
    ),
    (
        "北京培训 Training, Beijing",
        (
            ("travel", "机票 Flight", 164_000),
            ("lodging", "酒店三晚 Hotel, three nights", 201_000),
            ("other", "培训费 Course fee", 150_000),
        ),
    ),
)
OCTOBER = (
    "十月上海出差 October travel, Shanghai",
    (
        ("travel", "高铁往返 Train, both ways", 111_000),
        ("lodging", "酒店两晚 Hotel, two nights", 108_000),
        ("transport", "打车 Taxi", 8_600),
    ),
)
SELLERS = ("上海锦程酒店 Jincheng Hotel", "铁路 12306", "晨光文具 M&G", "滴滴出行 DiDi")


@dataclass(order=True, slots=True)
class _Moment:
    """Something that happens at a time; what it needs to know is in its report."""

    at: datetime
    place: int
    happen: Callable[[datetime], None] = field(compare=False)


@dataclass(slots=True)
class _Report:
    """One report of the demo on its way."""

    owner: User
    number: int
    fate: str
    began: datetime
    id: str = ""
    approver: User | None = None
    trip: tuple[str, tuple[tuple[str, str, int], ...]] | None = None
    spent: datetime | None = None

    @property
    def title(self) -> str:
        return self._trip[0]

    @property
    def _trip(self) -> tuple[str, tuple[tuple[str, str, int], ...]]:
        return self.trip or TRIPS[self.number % len(TRIPS)]

    @property
    def period(self) -> str:
        """The month it is for."""
        return (self.spent or self.began).strftime("%Y-%m")

    @property
    def target(self) -> dict[str, Any]:
        return {"targetRecordId": self.id, "operationType": "UPDATE"}

    def lines(self) -> Iterator[dict[str, Any]]:
        """Its expenses, each a little different from those of the last such trip."""
        day = (self.spent or self.began - timedelta(days=2)).date().isoformat()
        for place, (category, description, minor) in enumerate(self._trip[1]):
            amount = minor + 310 * (self.number % 7)
            line = {
                "spentOn": day,
                "category": category,
                "description": description,
                "amountMinor": amount,
            }
            if amount > 20_000:  # what the rule asks for
                line["receiptNumber"] = f"0440319{self.number:03}{place:02}"
                line["receiptIssuer"] = SELLERS[(self.number + place) % len(SELLERS)]
            yield line


@demo.step
def show(work: Work, made: dict[str, Workspace]) -> None:
    """Fill the first workspace."""
    acme, now = made["acme"], clock.now()
    began = now - APART * (len(FATES) + 1)
    with clock.telling(began):
        features.entitle(
            work,
            None,
            acme.tenant.id,
            "expense.payments",
            status=EntitlementStatus.ACTIVE,
            source=demo.MARK,
        )
    october = _october(acme, now)
    moments = [*_budgets(work, acme, began, october.period)]
    for number, owner in enumerate(_owners(acme)):
        then = began + APART * (number + 1) + timedelta(hours=2)
        moments += _story(work, acme, _Report(owner, number, FATES[number], then))
    moments += _story(work, acme, october)
    for moment in sorted(moments):
        moment.happen(moment.at)


def _october(acme: Workspace, now: datetime) -> _Report:
    """Alice's travel report of the last October, which nobody has submitted yet."""
    year = now.year if (now.month, now.day) > (10, 15) else now.year - 1
    spent = datetime(year, 10, 15, 9, tzinfo=now.tzinfo)
    began = now - timedelta(days=1, hours=3)
    report = _Report(acme.people["alice"], len(FATES), DRAFT, began)
    report.trip, report.spent = OCTOBER, spent
    return report


def _owners(acme: Workspace) -> list[User]:
    colleagues = [
        user
        for login, user in sorted(acme.people.items())
        if login[-2:].isdigit() and user.status == UserStatus.ACTIVE
    ]
    named = ("alice", "bob", "alice", "fiona", "alice", "audrey", "alice", "frank")
    owners = []
    for number, fate in enumerate(FATES):
        login = named[number // 2 % len(named)]
        if fate == PAID and login in PAYERS:
            login = "alice"  # nobody pays themselves
        is_named = number % 2 == 0
        owners.append(acme.people[login] if is_named else colleagues[number % len(colleagues)])
    return owners


def _budgets(work: Work, acme: Workspace, first: datetime, also: str) -> Iterator[_Moment]:
    fiona, days = acme.people["fiona"], APART.days * (len(FATES) + 1)
    spanned = {(first + timedelta(days=day)).strftime("%Y-%m") for day in range(days + 1)}
    months = sorted(spanned | {also})
    for place, period in enumerate(months):
        for org, minor in LIMITS.items():
            limit = {"orgId": acme.orgs[org].id, "period": period, "limitMinor": minor}
            yield _Moment(first, place, _calling(work, fiona, "expense.budget.set", limit))


def _calling(
    work: Work, person: User, code: str, sent: dict[str, Any]
) -> Callable[[datetime], None]:
    def happen(at: datetime) -> None:
        demo_calls.run(work, person, code, sent, at=at)

    return happen


def _story(work: Work, acme: Workspace, report: _Report) -> Iterator[_Moment]:
    def moment(happen: Callable[[datetime], None], **later: float) -> _Moment:
        return _Moment(report.began + timedelta(**later), report.number, happen)

    yield moment(lambda at: _draft(work, report, at))
    if report.fate == DRAFT:
        return
    yield moment(lambda at: _submit(work, acme, report, at), hours=1)
    if report.fate == SUBMITTED:
        return
    yield moment(lambda at: _decide(work, report, at), hours=27)
    if report.fate == VOIDED:
        yield moment(lambda at: _void(work, report, at), days=3)
    if report.fate == PAID:
        yield moment(lambda at: _pay(work, acme, report, at), days=4)


def _draft(work: Work, report: _Report, at: datetime) -> None:
    wanted = {
        "title": report.title,
        "period": report.period,
        "payeeAccount": f"6222 0210 0111 {1000 + sum(report.owner.login.encode()) % 9000}",
    }
    done = demo_calls.run(work, report.owner, "expense.report.create", wanted, at=at)
    report.id = str(done.result["reportId"])
    for place, line in enumerate(report.lines(), 1):
        then = at + timedelta(minutes=4 * place)
        demo_calls.run(work, report.owner, "expense.line.add", {**report.target, **line}, at=then)


def _submit(work: Work, acme: Workspace, report: _Report, at: datetime) -> None:
    sent = {**report.target, "note": "请审批，谢谢。Thank you."}
    done = demo_calls.run(work, report.owner, "expense.report.submit", sent, at=at)
    decides = done.result["approverId"]
    report.approver = next(user for user in acme.people.values() if user.id == decides)


def _decide(work: Work, report: _Report, at: datetime) -> None:
    if report.approver is None:
        raise RuntimeError("what was submitted has an approver")
    if report.fate == REJECTED:
        why = {"reason": "发票抬头有误，请更换。The receipt names another company."}
        demo_calls.run(
            *(work, report.approver, "expense.report.reject"), {**report.target, **why}, at=at
        )
    else:
        demo_calls.run(work, report.approver, "expense.report.approve", report.target, at=at)


def _void(work: Work, report: _Report, at: datetime) -> None:
    if report.approver is None:
        raise RuntimeError("what was approved has an approver")
    sent = {**report.target, "reason": "已用公司卡支付。Paid with the company card."}
    demo_calls.run_approved(
        *(work, report.approver, report.approver), "expense.report.void", sent, at=at
    )


def _pay(work: Work, acme: Workspace, report: _Report, at: datetime) -> None:
    turn = report.number % 2
    requester, assents = acme.people[PAYERS[turn]], acme.people[PAYERS[1 - turn]]
    demo_calls.run_approved(work, requester, assents, "expense.payment.send", report.target, at=at)
