"""What a budget says about itself: how much of it is still free."""

from app.packs.expenses.answers import BudgetRow
from app.packs.expenses.models import Budget


def left_minor(budget: Budget) -> int | None:
    """What may still be approved; None without a limit, below nought where it was cut since."""
    if budget.limit_minor is None:
        return None
    return budget.limit_minor - budget.approved_minor - budget.paid_minor


def budget_row(budget: Budget) -> BudgetRow:
    """A budget as commands answer with it."""
    return BudgetRow.of(budget, left_minor=left_minor(budget))
