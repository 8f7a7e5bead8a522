"""A warehouse in Shanghai for the tests: one item, two shelves, and who works there.

In Acme: `alice` works in it, `bob` (Sales) may see it, `mia` manages Shanghai, `fiona` and `frank`
are finance, `olga` owns the workspace.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import pytest
from sqlmodel import Session, SQLModel, col, select

from app.commands import deciding, pipeline
from app.commands.approval_models import Approval
from app.commands.call import Call
from app.commands.deciding import Browser, Decision
from app.commands.governed import GovernedRecord
from app.commands.outcome import Done
from app.commands.refused import Refused
from app.identity import users
from app.identity.models import Org, User, UserStatus
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from app.packs.inventory.models import Item, Location, Stock
from app.packs.inventory.rights import ROLES
from tests.people import World

R = TypeVar("R", bound=GovernedRecord)


class Warehouse:
    """The people, the place and the calls of inventory."""

    def __init__(self, world: World) -> None:
        self.world, self.acme = world, world.acme
        self._persons: dict[str, Principal] = {}
        for login, role, org in (
            ("alice", "warehouse", self.acme.orgs["shanghai"]),
            ("bob", "employee", self.acme.orgs["sales"]),
            ("mia", "manager", self.acme.orgs["shanghai"]),
            ("fiona", "finance", self.acme.root),
            ("frank", "finance", self.acme.root),
        ):
            if login not in self.acme.people:
                self.acme.people[login] = db.transact_now(_join, org, login)
            grants = {code: str(scope) for code, scope in ROLES[role].items()}
            world.give(self.acme[login], role, org, grants=grants)
        self.item = self.made("inventory.item.create", sku="TAPE-50", name="Tape", unit="roll")
        self.shelf = self.made("inventory.location.create", code="A-01", name="Aisle 1")
        self.other = self.made("inventory.location.create", code="B-01", name="Hall B")

    def person(self, login: str) -> Principal:
        """Somebody, in a browser session that stays the same; `gina` is of the other tenant."""
        if login not in self._persons:
            company = self.world.globex if login == "gina" else self.acme
            self._persons[login] = self.world.person(company[login])
        return self._persons[login]

    def call(self, code: str, by: str | Principal = "alice", /, **sent: Any) -> Call:
        """A call by the names of the wire; `at` is the id of its target."""
        at, approval_id = sent.pop("at", None), sent.pop("approval_id", None)
        if at is not None:
            sent["targetRecordId"] = at
            if not code.endswith(".get"):
                sent["operationType"] = "UPDATE"
        principal = by if isinstance(by, Principal) else self.person(by)
        return Call(code=code, input=sent, principal=principal, approval_id=approval_id)

    def do(self, code: str, by: str | Principal = "alice", /, **sent: Any) -> Done:
        """Run a command."""
        return db.transact_now(pipeline.perform, self.call(code, by, **sent))

    def made(self, code: str, by: str = "alice", /, **sent: Any) -> str:
        """Run a command that creates; the id of what it made."""
        record = self.do(code, by, **sent).record
        assert record is not None
        return str(record["id"])

    def undo(self, done: Done, by: str = "alice") -> Done:
        """Run what takes a call back, with the input that came with it."""
        assert done.undo is not None
        call = Call(code=done.undo.code, input=done.undo.input, principal=self.person(by))
        return db.transact_now(pipeline.perform, call)

    async def refused(self, code: str, by: str | Principal = "alice", /, **sent: Any) -> Refused:
        """How a command is refused; that it is done fails the test."""
        with pytest.raises(Refused) as refusal:
            await pipeline.execute(self.call(code, by, **sent))
        return refusal.value

    async def agreed(self, code: str, by: str, decider: str, /, **sent: Any) -> Done:
        """Run a command that a person has to assent to: ask, decide, call again."""
        refusal = await self.refused(code, by, **sent)
        approval_id = await self.approve(refusal, decider)
        return await pipeline.execute(self.call(code, by, approval_id=approval_id, **sent))

    async def approve(self, refusal: Refused, decider: str) -> str:
        """Let somebody click on what a refused call asks for; the approval's id."""
        assert refusal.reason == "approval_required", (refusal.stage, refusal.reason)
        approval_id, person = str(refusal.facts["approvalId"]), self.person(decider)
        row = db.read_now(lambda session: session.get_one(Approval, (self.acme.id, approval_id)))
        decision = Decision(
            verdict="approve",
            digest=row.digest,
            nonce=deciding.nonce_for(row, person.session_id or ""),
            typed=deciding.to_type(row),
        )
        await deciding.attempt(person, approval_id, decision, Browser(is_fresh=True))
        return approval_id

    def where(self, location_id: str | None = None) -> dict[str, str]:
        """Item and location, as bookings name them."""
        return {"itemId": self.item, "locationId": location_id or self.shelf}

    def receive(self, quantity: int, location_id: str | None = None) -> Done:
        """Put something on a shelf."""
        wanted = self.where(location_id)
        return self.do("inventory.stock.receive", **wanted, quantity=quantity)

    def draft(self, quantity: int = 40, **more: Any) -> str:
        """A drafted order; its id."""
        wanted = {**self.where(), "supplier": "Suzhou Paper", "unitPriceMinor": 250, **more}
        return self.made("inventory.order.create", "mia", quantity=quantity, **wanted)

    async def ordered(self, quantity: int = 40) -> str:
        """An order that its supplier has; its id."""
        order = self.draft(quantity)
        await self.agreed("inventory.order.place", "mia", "mia", at=order)
        return order

    def row(self, model: type[R], id: str) -> R:
        """A row as it is stored."""
        return db.read_now(lambda session: session.get_one(model, (self.acme.id, id)))

    def level(self, location_id: str | None = None) -> Stock:
        """What lies at a location."""
        query = select(Stock).where(
            col(Stock.item_id) == self.item, col(Stock.location_id) == (location_id or self.shelf)
        )
        return db.read_now(lambda session: session.exec(query).one())

    def sums(self) -> tuple[int, int, int]:
        """On hand of the item, of the shelf, of the other location."""
        item = self.row(Item, self.item).on_hand
        shelf, other = (self.row(Location, id).on_hand for id in (self.shelf, self.other))
        return item, shelf, other


def contents(*models: type[SQLModel]) -> list[Mapping[str, Any]]:
    """Every row of these tables, to prove that nothing was written."""
    return [row for model in models for row in db.read_now(_rows, model)]


def _rows(session: Session, model: type[SQLModel]) -> list[dict[str, Any]]:
    return [row.model_dump() for row in session.exec(select(model)).all()]


def _join(work: Work, org: Org, login: str) -> User:
    return users.create(
        work, None, org, login=login, display_name=login.title(), status=UserStatus.ACTIVE
    )
