"""The tables of expenses: reports with their lines and receipts, payments, budgets.

Money is in whole minor units (cents, fen) of an ISO 4217 currency; dates are ISO 8601 texts, and a
budget's month is `2026-10`.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from sqlalchemy import BigInteger, CheckConstraint, Index, UniqueConstraint
from sqlmodel import Field

from app.commands.governed import GovernedRecord, Related
from app.kernel.i18n import N_
from app.kernel.tables import one_of


class ReportState(StrEnum):
    """Where a report stands."""

    DRAFT = "draft"
    SUBMITTED = "submitted"
    APPROVED = "approved"
    REJECTED = "rejected"
    PAID = "paid"
    VOIDED = "voided"


class Report(GovernedRecord, table=True):
    """What one person spent for one purpose, to be paid back from the budget of one month.

    `budget_id` is the budget that applied when the report was submitted, None where nobody set one.
    `payee_account` is what the money goes to; who approves a payment sees it in full.
    """

    __tablename__: ClassVar[str] = "expense_report"
    __table_args__ = (
        UniqueConstraint("tenant_id", "number"),
        Index(None, "tenant_id", "owner_id", "state"),
        Index(None, "tenant_id", "org_id", "state"),
        Index(None, "tenant_id", "budget_id", "state"),
        one_of("state", ReportState),
        CheckConstraint("total_minor >= 0", name="total_minor"),
    )

    RECORD = "expense.report"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "Expense report", "zh-CN": "报销单"}
    LABEL = "number"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "draft": ("submitted",),
        "submitted": ("draft", "approved", "rejected"),
        "approved": ("paid", "submitted", "voided"),
        "rejected": ("submitted",),
        "paid": (),
        "voided": (),
    }
    RELATED: ClassVar[Mapping[str, Related]] = {
        "lines": Related("expense.line", by="report_id"),
        "receipts": Related("expense.receipt", by="report_id"),
        "payments": Related("expense.payment", by="report_id"),
        "budget": Related("expense.budget", of="budget_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "number": N_("Number"),
        "title": N_("Title"),
        "period": N_("Month"),
        "currency": N_("Currency"),
        "total_minor": N_("Total"),
        "line_count": N_("Number of lines"),
        "payee_name": N_("Payee"),
        "payee_account": N_("Payee's account"),
        "note": N_("Note to the approver"),
        "budget_id": N_("Budget"),
        "approver_id": N_("Approver"),
        "submitted_by": N_("Submitted by"),
        "submitted_at": N_("Submitted at"),
        "decided_by": N_("Decided by"),
        "decided_at": N_("Decided at"),
        "reason": N_("Reason"),
        "reminded_at": N_("Reminded at"),
    }

    number: str = Field(max_length=30)
    title: str = Field(max_length=200)
    period: str = Field(max_length=7)
    currency: str = Field(max_length=3)
    total_minor: int = Field(default=0, sa_type=BigInteger)
    line_count: int = 0
    payee_name: str = Field(default="", max_length=200)
    payee_account: str = Field(default="", max_length=42)
    note: str = Field(default="", max_length=500)
    budget_id: str | None = Field(default=None, max_length=26)
    approver_id: str | None = Field(default=None, max_length=26)
    submitted_by: str | None = Field(default=None, max_length=26)
    submitted_at: datetime | None = None
    decided_by: str | None = Field(default=None, max_length=26)
    decided_at: datetime | None = None
    reason: str = Field(default="", max_length=500)
    reminded_at: datetime | None = None


class Line(GovernedRecord, table=True):
    """One expense of a report, in the report's currency."""

    __tablename__: ClassVar[str] = "expense_line"
    __table_args__ = (
        Index(None, "tenant_id", "report_id"),
        CheckConstraint("amount_minor > 0", name="amount_minor"),
    )

    RECORD = "expense.line"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "Expense line", "zh-CN": "报销明细"}
    LABEL = "description"
    FIELDS: ClassVar[Mapping[str, str]] = {
        "report_id": N_("Expense report"),
        "spent_on": N_("Spent on"),
        "category": N_("Category"),
        "description": N_("Description"),
        "amount_minor": N_("Amount"),
        "receipt_id": N_("Receipt"),
    }

    report_id: str = Field(max_length=26)
    spent_on: str = Field(max_length=10)
    category: str = Field(max_length=20)
    description: str = Field(max_length=200)
    amount_minor: int = Field(sa_type=BigInteger)
    receipt_id: str = Field(default="", max_length=26)


class Receipt(GovernedRecord, table=True):
    """The invoice (fapiao) or till receipt that proves a line."""

    __tablename__: ClassVar[str] = "expense_receipt"
    __table_args__ = (Index(None, "tenant_id", "report_id"),)

    RECORD = "expense.receipt"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "Receipt", "zh-CN": "发票"}
    LABEL = "number"
    FIELDS: ClassVar[Mapping[str, str]] = {
        "report_id": N_("Expense report"),
        "number": N_("Receipt number"),
        "issuer": N_("Issued by"),
    }

    report_id: str = Field(max_length=26)
    number: str = Field(max_length=60)
    issuer: str = Field(default="", max_length=200)


class Payment(GovernedRecord, table=True):
    """Money on its way to a payee: one for each report, and never a second."""

    __tablename__: ClassVar[str] = "expense_payment"
    __table_args__ = (
        UniqueConstraint("tenant_id", "report_id"),
        CheckConstraint("amount_minor > 0", name="amount_minor"),
    )

    RECORD = "expense.payment"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "Payment", "zh-CN": "付款"}
    LABEL = "reference"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {"sent": ()}
    FIELDS: ClassVar[Mapping[str, str]] = {
        "report_id": N_("Expense report"),
        "reference": N_("Payment reference"),
        "amount_minor": N_("Amount"),
        "currency": N_("Currency"),
        "payee_name": N_("Payee"),
        "payee_account": N_("Payee's account"),
        "sent_at": N_("Sent at"),
    }

    report_id: str = Field(max_length=26)
    reference: str = Field(max_length=60)
    amount_minor: int = Field(sa_type=BigInteger)
    currency: str = Field(max_length=3)
    payee_name: str = Field(max_length=200)
    payee_account: str = Field(max_length=42)
    sent_at: datetime


class Budget(GovernedRecord, table=True):
    """What an organisation, and those below without their own, may spend in a month.

    The three sums are kept by roll-ups. `limit_minor` is None while nobody limits the month.
    """

    __tablename__: ClassVar[str] = "expense_budget"
    __table_args__ = (
        UniqueConstraint("tenant_id", "org_id", "period", "currency"),
        CheckConstraint("limit_minor IS NULL OR limit_minor >= 0", name="limit_minor"),
    )

    RECORD = "expense.budget"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "Budget", "zh-CN": "预算"}
    LABEL = "period"
    FIELDS: ClassVar[Mapping[str, str]] = {
        "period": N_("Month"),
        "currency": N_("Currency"),
        "limit_minor": N_("Budget limit"),
        "submitted_minor": N_("Amount submitted"),
        "approved_minor": N_("Amount approved"),
        "paid_minor": N_("Amount paid"),
    }

    period: str = Field(max_length=7)
    currency: str = Field(max_length=3)
    limit_minor: int | None = Field(default=None, sa_type=BigInteger)
    submitted_minor: int = Field(default=0, sa_type=BigInteger)
    approved_minor: int = Field(default=0, sa_type=BigInteger)
    paid_minor: int = Field(default=0, sa_type=BigInteger)
