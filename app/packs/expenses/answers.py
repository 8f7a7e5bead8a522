"""What the commands of expenses answer with; the names on the wire are camelCase."""

from datetime import datetime
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from app.commands.governed import GovernedRecord


class Answer(BaseModel):
    """Base of the answers: columns of a row, and what belongs to them."""

    model_config = ConfigDict(
        frozen=True, populate_by_name=True, alias_generator=to_camel, from_attributes=True
    )

    @classmethod
    def of(cls, row: GovernedRecord, **more: Any) -> Self:
        """The answer about one row; `more` is what no column of it says."""
        columns = {name: getattr(row, name) for name in cls.model_fields if hasattr(row, name)}
        return cls(**{**columns, **more})

    def data(self) -> dict[str, Any]:
        """As JSON, by the names of the wire."""
        return self.model_dump(mode="json", by_alias=True)


class ReportRow(Answer):
    """A report as it stands in a list."""

    id: str
    number: str = Field(description="What people call the report: EXP-2041.")
    title: str
    state: str
    period: str = Field(description="The month whose budget it is paid from.")
    currency: str
    total_minor: int = Field(description="In minor units of the currency: 12050 is 120.50.")
    line_count: int
    owner_id: str
    owner_name: str
    org_id: str
    version: int = Field(description="To be sent as expectedVersion.")
    submitted_at: datetime | None
    updated_at: datetime


class Reports(Answer):
    """One page of reports, the newest first."""

    reports: list[ReportRow]
    next_cursor: str | None = Field(description="Ask again with it for the page that follows.")


class LineRow(Answer):
    """One expense of a report."""

    id: str
    spent_on: str
    category: str
    description: str
    amount_minor: int
    receipt_id: str = Field(description="Empty where there is no receipt.")


class ReceiptRow(Answer):
    """What proves a line."""

    id: str
    number: str
    issuer: str


class PaymentRow(Answer):
    """Money on its way."""

    id: str
    reference: str
    amount_minor: int
    currency: str
    payee_name: str
    payee_account: str
    sent_at: datetime


class BudgetRow(Answer):
    """What a month allows, and what of it is spoken for."""

    id: str
    org_id: str
    period: str
    currency: str
    limit_minor: int | None = Field(description="Null while nobody limits the month.")
    submitted_minor: int = Field(description="Waits for a decision.")
    approved_minor: int = Field(description="Promised, not paid yet.")
    paid_minor: int
    left_minor: int | None = Field(description="What may still be approved; null without a limit.")


class ReportDetails(ReportRow):
    """A report with everything that belongs to it."""

    payee_name: str
    payee_account: str
    note: str
    reason: str = Field(description="Why it was rejected or voided.")
    approver_id: str | None
    approver_name: str
    decided_by: str | None
    decided_at: datetime | None
    lines: list[LineRow]
    receipts: list[ReceiptRow]
    payment: PaymentRow | None
    budget: BudgetRow | None


class Created(Answer):
    """A new report."""

    report_id: str
    number: str


class AddedLine(Answer):
    """A new line; its id takes it away again."""

    line_id: str
    total_minor: int


class RemovedLine(Answer):
    """What stood in the line, so that it can be added again."""

    spent_on: str
    category: str
    description: str
    amount_minor: int
    receipt_number: str
    receipt_issuer: str


class Submitted(Answer):
    """Who has the report now."""

    approver_id: str
    approver_name: str


class Reminded(Answer):
    """Who was reminded."""

    approver_id: str
    approver_name: str
    approver_email: str


class Paid(Answer):
    """The payment that was made."""

    payment_id: str
    reference: str
    payee_account: str


class BudgetSet(BudgetRow):
    """The budget as it is now; the limit before takes it back."""

    previous_limit_minor: int | None
