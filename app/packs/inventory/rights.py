"""What may be permitted in the warehouse, and which roles that ship get of it."""

from collections.abc import Mapping

from app.identity.models import DataScope
from app.identity.permissions import Declared

READ = "inventory.stock.read"
ITEMS = "inventory.item.manage"
MANAGE = "inventory.stock.manage"
ORDERS = "inventory.order.manage"
PLACE = "inventory.order.place"
CLOSE = "inventory.period.close"
APPROVE_CLOSE = "inventory.period.approve"


def _declared(code: str, en: str, zh: str) -> Declared:
    return Declared(code, "inventory", en, zh)


PERMISSIONS = (
    _declared(READ, "See items, stock, moves and orders", "查看物料、库存、流水和采购单"),
    _declared(ITEMS, "Make and change items and locations", "创建和修改物料与库位"),
    _declared(MANAGE, "Receive, issue, move and adjust stock", "入库、出库、移库和调整库存"),
    _declared(ORDERS, "Draft and receive purchase orders", "起草采购单并收货"),
    _declared(PLACE, "Order from suppliers", "向供应商下单"),
    _declared(CLOSE, "Close periods", "关闭库存期间"),
    _declared(APPROVE_CLOSE, "Approve the closing of periods", "批准关闭库存期间"),
)

_BELOW, _ALL = DataScope.ORG_AND_BELOW, DataScope.ALL
ROLES: Mapping[str, Mapping[str, DataScope]] = {
    "employee": {READ: _ALL},
    "warehouse": {READ: _ALL, ITEMS: _BELOW, MANAGE: _BELOW, ORDERS: _BELOW},
    "manager": {READ: _ALL, ITEMS: _BELOW, MANAGE: _BELOW, ORDERS: _BELOW, PLACE: _BELOW},
    "finance": {READ: _ALL, CLOSE: _ALL, APPROVE_CLOSE: _ALL},
    "auditor": {READ: _ALL},
    "administrator": {READ: _ALL, ITEMS: _ALL},
}
