"""A tenant's parties without keys: what storing and reading messages need to know of them."""

from dataclasses import dataclass, field
from typing import Any

from app.aun.caller import CONSOLE_DEVICE, Caller, Door
from app.aun.models import Identity, IdentityKind, IdentityStatus
from app.identity import tenants
from app.identity.models import Tenant
from app.kernel import clock, db
from app.kernel.db import Work

ISSUER = "acme.example"


@dataclass
class Parties:
    """The AIDs of one tenant; `parties.tina` is `tina.acme.example`."""

    tenant: Tenant
    issuer: str = ISSUER
    made: dict[str, Identity] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """The tenant's id."""
        return self.tenant.id

    def __getattr__(self, name: str) -> str:
        if name.startswith("_"):
            raise AttributeError(name)
        return f"{name}.{self.issuer}"

    def add(self, name: str, kind: IdentityKind, **values: Any) -> str:
        """One more."""
        aid = f"{name}.{self.issuer}"
        self.made[aid] = db.transact_now(_identity, self.id, aid, kind, values)
        return aid

    def caller(self, name: str, device: str = "phone", slot: str = "default") -> Caller:
        """The party `name`, on one of its devices."""
        aid = f"{name}.{self.issuer}"
        kind = IdentityKind(self.made[aid].kind)
        is_hosted = kind in {IdentityKind.USER, IdentityKind.AGENT}
        return Caller(
            tenant_id=self.id,
            aid=aid,
            kind=kind,
            device_id=CONSOLE_DEVICE if is_hosted else device,
            slot_key=slot,
            connection_id=None if is_hosted else f"{name}-{device}-{slot}",
            door=Door.CONSOLE if is_hosted else Door.SOCKET,
        )

    def turn_off(self, name: str, status: IdentityStatus = IdentityStatus.INACTIVE) -> None:
        """Let a party be inactive, or blocked."""
        db.transact_now(_status, self.id, f"{name}.{self.issuer}", status)


def gather(slug: str = "acme", issuer: str = ISSUER) -> Parties:
    """`tina`, `otto` and `owen` outside; `alice` and `bobby` users, `clerk` an agent."""
    parties = Parties(db.transact_now(_tenant, slug), issuer)
    for name in ("tina", "otto", "owen"):
        parties.add(name, IdentityKind.OUTSIDE)
    for name in ("alice", "bobby"):
        parties.add(name, IdentityKind.USER)
    parties.add("clerk", IdentityKind.AGENT)
    return parties


def _tenant(work: Work, slug: str) -> Tenant:
    return tenants.create(work, slug=slug, name=slug.title())[0]


def _identity(
    work: Work, tenant_id: str, aid: str, kind: IdentityKind, values: dict[str, Any]
) -> Identity:
    made = Identity(tenant_id=tenant_id, aid=aid, kind=kind, created_at=clock.now(), **values)
    work.session.add(made)
    work.session.flush()
    return made


def _status(work: Work, tenant_id: str, aid: str, status: IdentityStatus) -> None:
    found = work.session.get(Identity, (tenant_id, aid))
    assert found is not None
    found.status = status
    work.session.add(found)
