"""Expenses: reports from the draft to the payment, and the budgets they are paid from."""

from collections.abc import Mapping

from app.commands.definition import Text
from app.commands.pack import Pack
from app.identity.models import DataScope
from app.identity.permissions import Declared
from app.packs.expenses.models import Budget, Line, Payment, Receipt, Report

SELF, BELOW, ALL = DataScope.SELF, DataScope.ORG_AND_BELOW, DataScope.ALL


def _declared(code: str, en: str, zh: str) -> Declared:
    return Declared(code, "expenses", en, zh)


PERMISSIONS = (
    _declared("expense.report.read", "See expense reports", "查看报销单"),
    _declared("expense.report.manage", "Write expense reports", "填写报销单"),
    _declared("expense.report.submit", "Submit and recall expense reports", "提交和撤回报销单"),
    _declared("expense.report.approve", "Decide expense reports", "审批报销单"),
    _declared("expense.report.remind", "Remind approvers", "催办审批人"),
    _declared("expense.payment.execute", "Send payments", "发起付款"),
    _declared("expense.budget.manage", "Set budgets", "设定预算"),
)
PAYMENTS = _declared("expense.payments", "Expense payments", "报销付款")

_OWN: Mapping[str, DataScope] = {
    "expense.report.read": SELF,
    "expense.report.manage": SELF,
    "expense.report.submit": SELF,
    "expense.report.remind": SELF,
}
ROLES: Mapping[str, Mapping[str, DataScope]] = {
    "member": _OWN,
    "employee": _OWN,
    "manager": {"expense.report.read": BELOW, "expense.report.approve": BELOW},
    "finance": {
        "expense.report.read": ALL,
        "expense.payment.execute": ALL,
        "expense.budget.manage": ALL,
    },
    "auditor": {"expense.report.read": ALL},
    # decides where nobody manages the organisation, or only the owner of the report
    "administrator": {"expense.report.read": ALL, "expense.report.approve": ALL},
}

SAMPLES = {
    "expense.report.submit": Text(en="Submit my October travel report", zh="提交我十月的出差报销"),
    "expense.report.approve": Text(
        en="Which reports wait for me?", zh="哪些已提交的报销单等我审批？"
    ),
    "expense.report.list": Text(
        en="Which expense reports are still drafts?", zh="我的哪些报销单还是草稿？"
    ),
}

PACK = Pack(
    code="expenses",
    name=Text(en="Expenses", zh="报销"),
    permissions=PERMISSIONS,
    features=(PAYMENTS,),
    record_types=(Report, Line, Receipt, Payment, Budget),
    samples=SAMPLES,
    roles=ROLES,
)
