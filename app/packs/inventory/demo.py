"""What `--demo` shows of inventory: a warehouse in Shanghai over the last ten weeks.

It came about as others will: every booking, order and closed month by its own call, in the order of
time. Whoever belongs to the warehouse works in it; `bob` orders; finance closes the months.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from app.commands import demo_calls
from app.commands.outcome import Done
from app.identity import demo, roles
from app.identity.demo import Workspace
from app.identity.models import User, UserStatus
from app.kernel import clock
from app.kernel.db import Work
from app.packs.inventory.models import CANCELLED, DRAFT, ORDERED, RECEIVED
from app.packs.inventory.rights import ROLES

SPAN = timedelta(days=70)
APART = timedelta(hours=13)  # between two calls
COUNTED_ON = 4  # day of a month on which the month before it is closed

LOCATIONS = (
    ("WE-01", "收货区 Goods in"),
    ("A-01-01", "A 区一排一层 Hall A, aisle 1, shelf 1"),
    ("A-01-02", "A 区一排二层 Hall A, aisle 1, shelf 2"),
    ("B-02-01", "B 区二排一层 Hall B, aisle 2, shelf 1"),
    ("WA-01", "发货区 Goods out"),
)
#: SKU, name, unit, what it is, minimum on its shelf, how much came first.
ITEMS = (
    ("PAPER-A4-80", "A4 复印纸 Copy paper A4, 80 g", "箱 box", "每箱五包 Five reams", 20, 120),
    ("PAPER-A3-80", "A3 复印纸 Copy paper A3, 80 g", "箱 box", "", 10, 40),
    ("TONER-BK-26", "黑色墨粉 Toner, black", "支 piece", "26A", 6, 24),
    ("PEN-GEL-05", "中性笔 Gel pen 0.5 mm", "盒 box", "每盒十二支 Twelve pens", 15, 90),
    ("TAPE-BOX-48", "封箱胶带 Packing tape 48 mm", "卷 roll", "", 60, 300),
    ("BOX-40-30-20", "纸箱 Carton 40 x 30 x 20 cm", "个 piece", "", 100, 500),
    ("KEYB-USB-CN", "USB 键盘 USB keyboard", "个 piece", "", 5, 30),
    ("MON-27-4K", "27 寸显示器 27-inch display, 4K", "台 piece", "", 2, 12),
    ("CABLE-HDMI-2", "HDMI 线 2 米 HDMI cable, 2 m", "根 piece", "", 20, 80),
    ("GLOVE-L", "防滑手套 Work gloves, size L", "双 pair", "", 30, 150),
)
#: supplier, place in ITEMS, how many, minor units of one, where it stands today.
ORDERS = (
    ("苏州金华盛纸业 Gold Huasheng Paper", 0, 80, 12_900, RECEIVED),
    ("深圳联创电子 Lianchuang Electronics", 6, 20, 7_900, RECEIVED),
    ("宁波得力文具 Deli Stationery", 3, 60, 2_640, ORDERED),
    ("京东方显示 BOE Display", 7, 6, 189_900, ORDERED),
    ("昆山包装材料 Kunshan Packaging", 5, 400, 310, CANCELLED),
    ("苏州金华盛纸业 Gold Huasheng Paper", 1, 30, 25_800, DRAFT),
    ("惠普耗材 HP Supplies", 2, 12, 46_900, DRAFT),
)


@dataclass(slots=True)
class _Story:
    """The warehouse on its way through time: who acts, and what is there by now."""

    work: Work
    keepers: list[User]
    buyer: User
    finance: tuple[User, User] | None
    at: datetime
    locations: dict[str, str] = field(default_factory=dict)
    items: list[str] = field(default_factory=list)
    closed: set[str] = field(default_factory=set)
    calls: int = 0

    def keep(self, code: str, /, **sent: Any) -> Done:
        """The next call of one of those who work there."""
        keeper = self.keepers[self.calls % len(self.keepers)]
        return self.call(keeper, code, **sent)

    def call(self, person: User, code: str, /, **sent: Any) -> Done:
        """The next call of somebody."""
        self._go_on()
        return demo_calls.run(self.work, person, code, sent, at=self.at)

    def agree(self, person: User, approver: User, code: str, /, **sent: Any) -> Done:
        """The next call that takes a person's word."""
        self._go_on()
        return demo_calls.run_approved(self.work, person, approver, code, sent, at=self.at)

    def _go_on(self) -> None:
        self.at += APART
        self.calls += 1
        self._close_last_month()

    def _close_last_month(self) -> None:
        last = (self.at.replace(day=1) - timedelta(days=1)).strftime("%Y-%m")
        if self.finance and self.at.day >= COUNTED_ON and last not in self.closed:
            self.closed.add(last)
            asks, agrees = self.finance
            sent = {"period": last, "note": "盘点完毕 Counted and reconciled"}
            code = "inventory.period.close"
            demo_calls.run_approved(self.work, asks, agrees, code, sent, at=self.at)


@demo.step
def show(work: Work, made: dict[str, Workspace]) -> None:
    """Fill both workspaces: a busy warehouse in one, a single shelf in the other."""
    acme, began = made["acme"], clock.now() - SPAN
    people = acme.people
    with clock.telling(began):
        keepers = _keepers(work, acme)
    story = _Story(work, keepers, people["bob"], (people["fiona"], people["frank"]), began)
    _furnish(story)
    _work_in_it(story)
    for place, order in enumerate(ORDERS):
        _order(story, place, *order)
    gina = made["globex"].people["gina"]
    _single_shelf(_Story(work, [gina], gina, None, began))


def _keepers(work: Work, acme: Workspace) -> list[User]:
    """Those of the warehouse's organisation, in a role for their work."""
    grants = {code: scope.value for code, scope in ROLES["warehouse"].items()}
    role = roles.create(
        work,
        None,
        tenant_id=acme.tenant.id,
        code="warehouse",
        name="仓管员 Warehouse",
        grants=grants,
    )
    acme.roles["warehouse"] = role
    place = acme.orgs["warehouse"]
    keepers = [
        user
        for _, user in sorted(acme.people.items())
        if user.org_id == place.id and user.status == UserStatus.ACTIVE
    ][:3]
    for user in keepers:
        roles.assign(work, None, user, role, place)
    return keepers


def _furnish(story: _Story) -> None:
    """Locations, items, and what came first; then a minimum for each shelf."""
    for code, name in LOCATIONS:
        done = story.keep("inventory.location.create", code=code, name=name)
        story.locations[code] = str(done.result["locationId"])
    for place, (sku, name, unit, description, least, first) in enumerate(ITEMS):
        item = story.keep(
            "inventory.item.create", sku=sku, name=name, unit=unit, description=description
        )
        story.items.append(str(item.result["itemId"]))
        came = story.keep(
            "inventory.stock.receive",
            itemId=story.items[place],
            locationId=_home(story, place),
            quantity=first,
            note="期初 Opening stock",
        )
        story.keep("inventory.stock.set_minimum", **_level(came), minLevel=least)


def _work_in_it(story: _Story) -> None:
    """Ten weeks of issues, transfers and counts; nothing goes below what is there."""
    out = story.locations["WA-01"]
    for number, (place, _) in enumerate(_rounds(3)):
        first, item, home = ITEMS[place][5], story.items[place], _home(story, place)
        some = max(1, first // (12 + number % 5))
        if number % 3 == 0:
            ways = {"fromLocationId": home, "toLocationId": out}
            story.keep("inventory.stock.move", itemId=item, **ways, quantity=some)
        elif number % 7 == 5:
            change = {"change": -1, "reason": "count" if number % 2 else "damage"}
            story.keep(
                "inventory.stock.adjust", itemId=item, locationId=home, **change, note="盘点 Count"
            )
        else:
            taken = {"itemId": item, "locationId": home, "quantity": some}
            story.keep("inventory.stock.issue", **taken, note=f"销售单 SO-{2100 + number}")
    promised = {"itemId": story.items[7], "locationId": story.locations["WE-01"], "quantity": 4}
    came = story.keep("inventory.stock.receive", **promised, note="样机 Samples")
    story.keep("inventory.stock.reserve", **_level(came), quantity=3, purpose="王爱丽 Alice Wang")


def _order(
    story: _Story, number: int, supplier: str, place: int, quantity: int, minor: int, state: str
) -> None:
    """One order on its way to where it stands today."""
    buyer = story.buyer
    drafted = story.call(
        buyer,
        "inventory.order.create",
        supplier=supplier,
        itemId=story.items[place],
        locationId=_home(story, place),
        quantity=quantity,
        unitPriceMinor=minor,
    )
    target = {"targetRecordId": drafted.result["orderId"], "operationType": "UPDATE"}
    if state == DRAFT:
        return
    story.agree(buyer, buyer, "inventory.order.place", **target, message="请送至收货区")
    if state == RECEIVED:
        note = f"送货单 Delivery note {4700 + number}"
        story.keep("inventory.order.receive", **target, quantity=quantity, note=note)
    elif state == CANCELLED:
        reason = "规格有误 Wrong size"
        story.agree(buyer, buyer, "inventory.order.cancel", **target, reason=reason)


def _single_shelf(story: _Story) -> None:
    story.keep("inventory.location.create", code="R-01", name="Shelf 1")
    shelf = story.keep("inventory.location.list").result["rows"][0]["id"]
    for sku, name, quantity in (("MUG-WHITE", "White mug", 48), ("TEA-GREEN", "Green tea", 30)):
        item = story.keep("inventory.item.create", sku=sku, name=name, unit="piece")
        booked = {"itemId": item.result["itemId"], "locationId": shelf}
        story.keep("inventory.stock.receive", **booked, quantity=quantity)
        story.keep("inventory.stock.issue", **booked, quantity=quantity // 6, note="Kitchen")


def _rounds(times: int) -> Iterator[tuple[int, int]]:
    for round_ in range(times):
        for place in range(len(ITEMS)):
            yield place, round_


def _home(story: _Story, place: int) -> str:
    """The shelf on which an item lies."""
    return story.locations[LOCATIONS[1 + place % 3][0]]


def _level(booked: Done) -> dict[str, Any]:
    """The stock level of a booking, as a target."""
    return {"targetRecordId": booked.result["stock"][0]["id"], "operationType": "UPDATE"}
