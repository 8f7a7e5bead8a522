"""The tables of the warehouse: what there is, where it lies, how it moved, what is on its way.

Quantities are whole units of the item. `on_hand` of an item and of a location are sums of the stock
rows, kept by roll-ups; a move is written once and never changed.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar

from sqlalchemy import BigInteger, Index, UniqueConstraint
from sqlmodel import Field

from app.commands.governed import GovernedRecord, Related
from app.kernel.i18n import N_
from app.kernel.tables import owned

ACTIVE, RETIRED = "active", "retired"
OPEN, CLOSED = "open", "closed"
DRAFT, ORDERED, RECEIVED, CANCELLED = "draft", "ordered", "received", "cancelled"
RECEIPT, ISSUE, TRANSFER, ADJUSTMENT = "receipt", "issue", "transfer", "adjustment"

_ITEM, _LOCATION, _ON_HAND, _QUANTITY = (
    N_("Item"),
    N_("Location"),
    N_("On hand"),
    N_("Quantity"),
)
_NAME, _NOTE = N_("Name"), N_("Note")


class Item(GovernedRecord, table=True):
    """Something that is kept in stock, known by its stock keeping unit."""

    __tablename__: ClassVar[str] = "inventory_item"
    __table_args__ = (UniqueConstraint("tenant_id", "sku"),)

    RECORD: ClassVar[str] = "inventory.item"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "item", "zh-CN": "物料"}
    LABEL: ClassVar[str] = "sku"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {ACTIVE: (RETIRED,), RETIRED: (ACTIVE,)}
    RELATED: ClassVar[Mapping[str, Related]] = {
        "stock": Related("inventory.stock", by="item_id"),
        "orders": Related("inventory.order", by="item_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "sku": N_("Stock keeping unit"),
        "name": _NAME,
        "unit": N_("Unit"),
        "description": N_("Description"),
        "on_hand": _ON_HAND,
    }

    state: str = Field(default=ACTIVE, max_length=40)
    sku: str = Field(max_length=40)
    name: str = Field(max_length=200)
    unit: str = Field(max_length=20)
    description: str = Field(default="", max_length=500)
    on_hand: int = Field(default=0, sa_type=BigInteger)


class Location(GovernedRecord, table=True):
    """A place where stock lies: a hall, an aisle, a shelf."""

    __tablename__: ClassVar[str] = "inventory_location"
    __table_args__ = (UniqueConstraint("tenant_id", "code"),)

    RECORD: ClassVar[str] = "inventory.location"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "location", "zh-CN": "库位"}
    LABEL: ClassVar[str] = "code"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {OPEN: (CLOSED,), CLOSED: (OPEN,)}
    RELATED: ClassVar[Mapping[str, Related]] = {
        "stock": Related("inventory.stock", by="location_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "code": N_("Code"),
        "name": _NAME,
        "on_hand": _ON_HAND,
    }

    state: str = Field(default=OPEN, max_length=40)
    code: str = Field(max_length=40)
    name: str = Field(max_length=200)
    on_hand: int = Field(default=0, sa_type=BigInteger)


class Stock(GovernedRecord, table=True):
    """How much of an item lies at a location, and how much of that is promised to somebody."""

    __tablename__: ClassVar[str] = "inventory_stock"
    __table_args__ = (
        owned("item_id", "inventory_item"),
        owned("location_id", "inventory_location"),
        UniqueConstraint("tenant_id", "item_id", "location_id"),
        Index(None, "tenant_id", "location_id"),
    )

    RECORD: ClassVar[str] = "inventory.stock"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "stock level", "zh-CN": "库存"}
    RELATED: ClassVar[Mapping[str, Related]] = {
        "item": Related("inventory.item", of="item_id"),
        "location": Related("inventory.location", of="location_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "item_id": _ITEM,
        "location_id": _LOCATION,
        "on_hand": _ON_HAND,
        "reserved": N_("Reserved"),
        "min_level": N_("Minimum"),
    }

    item_id: str = Field(max_length=26)
    location_id: str = Field(max_length=26)
    on_hand: int = Field(default=0, sa_type=BigInteger)
    reserved: int = Field(default=0, sa_type=BigInteger)
    min_level: int = Field(default=0, sa_type=BigInteger)


class Move(GovernedRecord, table=True):
    """One booking. `quantity` is signed: what `location_id` gained; a transfer names where to."""

    __tablename__: ClassVar[str] = "inventory_move"
    __table_args__ = (
        owned("item_id", "inventory_item"),
        owned("location_id", "inventory_location"),
        owned("to_location_id", "inventory_location"),
        owned("order_id", "inventory_order"),
        UniqueConstraint("tenant_id", "number"),
        Index(None, "tenant_id", "created_at", "id"),
        Index(None, "tenant_id", "item_id"),
        Index(None, "tenant_id", "location_id"),
        Index(None, "tenant_id", "period"),
    )

    RECORD: ClassVar[str] = "inventory.move"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "stock move", "zh-CN": "库存流水"}
    LABEL: ClassVar[str] = "number"
    RELATED: ClassVar[Mapping[str, Related]] = {
        "stock": Related("inventory.stock", by="item_id", of="item_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "number": N_("Number"),
        "kind": N_("Kind"),
        "item_id": _ITEM,
        "location_id": _LOCATION,
        "to_location_id": N_("To location"),
        "quantity": _QUANTITY,
        "reason": N_("Reason"),
        "note": _NOTE,
        "order_id": N_("Order"),
        "booked_on": N_("Booked on"),
        "period": N_("Period"),
    }

    number: str = Field(max_length=40)
    kind: str = Field(default=RECEIPT, max_length=20)
    item_id: str = Field(max_length=26)
    location_id: str = Field(max_length=26)
    to_location_id: str | None = Field(default=None, max_length=26)
    quantity: int = Field(default=0, sa_type=BigInteger)
    reason: str = Field(default="", max_length=20)
    note: str = Field(default="", max_length=500)
    order_id: str | None = Field(default=None, max_length=26)
    booked_on: str = Field(default="", max_length=10)  # 2026-11-30
    period: str = Field(default="", max_length=7)  # 2026-11


class Order(GovernedRecord, table=True):
    """An order of one item from a supplier; amounts are in minor units of `currency`."""

    __tablename__: ClassVar[str] = "inventory_order"
    __table_args__ = (
        owned("item_id", "inventory_item"),
        owned("location_id", "inventory_location"),
        UniqueConstraint("tenant_id", "number"),
        Index(None, "tenant_id", "state"),
        Index(None, "tenant_id", "item_id"),
    )

    RECORD: ClassVar[str] = "inventory.order"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "purchase order", "zh-CN": "采购单"}
    LABEL: ClassVar[str] = "number"
    STATES: ClassVar[Mapping[str, tuple[str, ...]]] = {
        DRAFT: (ORDERED, CANCELLED),
        ORDERED: (RECEIVED, CANCELLED),
        RECEIVED: (ORDERED,),
        CANCELLED: (),
    }
    RELATED: ClassVar[Mapping[str, Related]] = {
        "item": Related("inventory.item", of="item_id"),
        "location": Related("inventory.location", of="location_id"),
    }
    FIELDS: ClassVar[Mapping[str, str]] = {
        "number": N_("Number"),
        "supplier": N_("Supplier"),
        "item_id": _ITEM,
        "location_id": N_("Deliver to"),
        "quantity": _QUANTITY,
        "unit_price_minor": N_("Price of one"),
        "currency": N_("Currency"),
        "total_minor": N_("Total"),
        "note": _NOTE,
        "ordered_at": N_("Ordered at"),
        "ordered_by": N_("Ordered by"),
        "received_at": N_("Received at"),
        "received_quantity": N_("Received quantity"),
    }

    state: str = Field(default=DRAFT, max_length=40)
    number: str = Field(max_length=40)
    supplier: str = Field(max_length=200)
    item_id: str = Field(max_length=26)
    location_id: str = Field(max_length=26)
    quantity: int = Field(sa_type=BigInteger)
    unit_price_minor: int = Field(sa_type=BigInteger)
    currency: str = Field(max_length=3)
    total_minor: int = Field(default=0, sa_type=BigInteger)
    note: str = Field(default="", max_length=500)
    ordered_at: datetime | None = None
    ordered_by: str | None = Field(default=None, max_length=26)
    received_at: datetime | None = None
    received_quantity: int = Field(default=0, sa_type=BigInteger)


class Period(GovernedRecord, table=True):
    """A month in which nothing is booked any more, with what it held when it was closed."""

    __tablename__: ClassVar[str] = "inventory_period"
    __table_args__ = (UniqueConstraint("tenant_id", "period"),)

    RECORD: ClassVar[str] = "inventory.period"
    NAMES: ClassVar[Mapping[str, str]] = {"en": "closed period", "zh-CN": "已关闭的期间"}
    LABEL: ClassVar[str] = "period"
    FIELDS: ClassVar[Mapping[str, str]] = {
        "period": N_("Period"),
        "closed_at": N_("Closed at"),
        "closed_by": N_("Closed by"),
        "moves": N_("Moves in it"),
        "on_hand": _ON_HAND,
        "note": _NOTE,
    }

    state: str = Field(default=CLOSED, max_length=40)
    period: str = Field(max_length=7)  # 2026-10
    closed_at: datetime | None = None
    closed_by: str | None = Field(default=None, max_length=26)
    moves: int = 0
    on_hand: int = Field(default=0, sa_type=BigInteger)
    note: str = Field(default="", max_length=500)
