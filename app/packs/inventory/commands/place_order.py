"""`inventory.order.place`: the supplier gets the order."""

from pydantic import Field

from app.commands.definition import (
    CommandDefinition,
    Input,
    Operation,
    Risk,
    Rule,
    Rules,
    Text,
    Told,
    Transition,
)
from app.packs.inventory.models import DRAFT, ORDERED, Order
from app.packs.inventory.rights import PLACE


class PlaceOrder(Input):
    """A last word to the supplier."""

    message: str = Field("", max_length=500, description="A message that goes with the order.")


COMMAND = CommandDefinition(
    code="inventory.order.place",
    display_name=Text(en="Order from supplier", zh="向供应商下单"),
    description=Text(
        en="Sends a drafted order to its supplier. It binds us from then on.",
        zh="把采购草稿发送给供应商，自此对我方具有约束力。",
    ),
    agent_hint=Text(
        en="Use when a drafted order was checked and the supplier should get it now; it goes "
        "outside, so a person confirms. Until it arrives, inventory.order.cancel calls it off.",
        zh="采购草稿已核对、需要立即发给供应商时使用；会对外发送，因此需要人工确认。"
        "到货之前可用 inventory.order.cancel 撤单。",
    ),
    risk=Risk.L3,  # a webhook to the supplier
    idempotent=False,
    reversible=False,
    record=Order,
    operation=Operation.TRANSITION,
    input=PlaceOrder,
    example={"message": "Please deliver before Friday."},
    permission=PLACE,
    transition=Transition(from_=(DRAFT,), to=ORDERED),
    related=("item", "location"),
    rules=Rules(
        asserts=(
            Rule(
                expr="related.item.all(each, each.state == 'active')",
                message=Text(en="The item is retired.", zh="该物料已停用。"),
            ),
            Rule(
                expr="related.location.all(each, each.state == 'open')",
                message=Text(
                    en="The location it would be delivered to is closed.", zh="收货库位已关闭。"
                ),
            ),
        ),
        cross_field=(
            Rule(
                expr="record.total_minor > 0 || input.message != ''",
                message=Text(
                    en="An order without a price needs a word to the supplier.",
                    zh="没有价格的采购单请附上给供应商的说明。",
                ),
                pointers=("/message",),
            ),
        ),
        post_invariants=(
            Rule(
                expr="record.total_minor == record.quantity * record.unit_price_minor "
                "&& record.total_minor == before.total_minor",
                message=Text(
                    en="What was checked is what is ordered.", zh="下单内容必须与核对时一致。"
                ),
            ),
        ),
    ),
    set={"ordered_at": "now", "ordered_by": "user.id"},
    events=("inventory.order.placed",),
    webhooks=(
        Told(
            type="inventory.order.placed",
            data={
                "orderId": "record.id",
                "number": "record.number",
                "supplier": "record.supplier",
                "itemId": "record.item_id",
                "quantity": "record.quantity",
                "unitPriceMinor": "record.unit_price_minor",
                "totalMinor": "record.total_minor",
                "currency": "record.currency",
                "note": "record.note",
                "message": "input.message",
            },
        ),
    ),
    tags=("money",),
)
