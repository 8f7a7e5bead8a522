"""The warehouse: items, locations, stock and its moves, orders from suppliers, closed periods."""

from app.commands.definition import Text
from app.commands.pack import Pack
from app.packs.inventory.models import Item, Location, Move, Order, Period, Stock
from app.packs.inventory.rights import PERMISSIONS, ROLES

PACK = Pack(
    code="inventory",
    name=Text(en="Inventory", zh="库存"),
    permissions=PERMISSIONS,
    record_types=(Item, Location, Stock, Move, Order, Period),
    roles=ROLES,
)
