"""Rules and sums that several commands of expenses share, as an auditor reads them."""

from app.commands.definition import RollUp, Rule, Text

OWN = Rule(
    expr="record.owner_id == user.id",
    message=Text(en="Only the owner of the report does this.", zh="只有报销单本人可以进行此操作。"),
)
NOT_OWN = Rule(
    expr="record.owner_id != user.id",
    message=Text(en="Nobody decides their own report.", zh="不能审批自己的报销单。"),
)
OPEN_TO_CHANGE = Rule(
    expr="record.state in ['draft', 'rejected']",
    message=Text(
        en="Only a draft or a rejected report can be changed.",
        zh="只有草稿或被退回的报销单可以修改。",
    ),
)
HAS_A_LINE = Rule(
    expr="size(related.lines) > 0",
    message=Text(en="A report needs a line.", zh="报销单至少要有一条明细。"),
)
HAS_RECEIPTS = Rule(
    expr="related.lines.all(line, line.amount_minor <= 20000 || line.receipt_id != '')",
    message=Text(en="Lines above 200.00 need a receipt.", zh="金额超过 200.00 的明细要附发票。"),
)
SAME_TOTAL = Rule(
    expr="record.total_minor == before.total_minor",
    message=Text(en="This step changes no amount.", zh="此步骤不会改变金额。"),
)
WITHIN_BUDGET = Rule(
    expr=(
        "related.budget.all(budget, budget.limit_minor == null || "
        "budget.approved_minor + budget.paid_minor <= budget.limit_minor)"
    ),
    message=Text(
        en="The month's budget does not cover this report.", zh="当月预算不足以支付该报销单。"
    ),
)

#: A report's total and number of lines.
TOTALS = (
    RollUp(into="expense.report.total_minor", via="report_id", sum_of="expense.line.amount_minor"),
    RollUp(into="expense.report.line_count", via="report_id", count_of="expense.line"),
)

#: What of a budget waits for a decision, is promised, and is gone.
BUDGET_SUMS = tuple(
    RollUp(
        into=f"expense.budget.{state}_minor",
        via="budget_id",
        sum_of="expense.report.total_minor",
        where={"state": (state,)},
    )
    for state in ("submitted", "approved", "paid")
)
