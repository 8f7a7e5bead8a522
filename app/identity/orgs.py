"""The organisation tree: every node knows its path, so that "and below" is a prefix."""

from collections.abc import Sequence

from sqlalchemy import update
from sqlmodel import Session, col, func, select

from app.identity import epochs, facts
from app.identity.errors import NotUsableNow, StillInUse, WouldLoop
from app.identity.models import Org, OrgStatus, RoleAssignment, Tenant, User
from app.identity.principal import Principal
from app.kernel import ids
from app.kernel.db import Work
from app.kernel.errors import FieldError, Invalid, NotFound
from app.kernel.i18n import N_

DEEPEST = 20  # levels


def make_root(work: Work, tenant_id: str, name: str) -> Org:
    """The first node of a new tenant."""
    org_id = ids.ulid()
    org = Org(tenant_id=tenant_id, id=org_id, path=f"/{org_id}/", name=name)
    work.session.add(org)
    work.session.flush()
    return org


def create(work: Work, actor: Principal | None, parent: Org, name: str) -> Org:
    """A new organisation below `parent`.

    Raises:
        Invalid: the name stands beside the same name, or the tree gets too deep.
        NotUsableNow: `parent` is closed.
    """
    _hold_tree(work, parent)
    _usable(parent)
    if parent.path.count("/") > DEEPEST:
        raise Invalid(FieldError("parent_id", N_("The tree cannot get deeper than this.")))
    _name_is_free(work.session, parent.tenant_id, parent.id, name)
    org_id = ids.ulid()
    org = Org(
        tenant_id=parent.tenant_id,
        id=org_id,
        parent_id=parent.id,
        path=f"{parent.path}{org_id}/",
        name=name,
    )
    work.session.add(org)
    work.session.flush()
    facts.record(
        work,
        "identity.org.create",
        actor,
        tenant_id=org.tenant_id,
        target=("org", org.id),
        changes={"name": (None, name), "parent_id": (None, parent.id)},
    )
    return org


def rename(work: Work, actor: Principal, org: Org, name: str) -> None:
    """Give `org` another name.

    Raises:
        Invalid: its siblings have that name already.
    """
    if name == org.name:
        return
    _name_is_free(work.session, org.tenant_id, org.parent_id, name)
    facts.record(
        work,
        "identity.org.rename",
        actor,
        target=("org", org.id),
        changes={"name": (org.name, name)},
    )
    org.name = name
    work.session.add(org)


def move(work: Work, actor: Principal, org: Org, parent: Org) -> None:
    """Put `org` and everything below it under `parent`, in one transaction (SEC-10).

    Raises:
        WouldLoop: `parent` is `org` or stands below it.
        NotUsableNow: `parent` is closed, or `org` is the root.
        Invalid: a sibling there has the same name.
    """
    _hold_tree(work, org, parent)
    if org.parent_id is None:
        raise NotUsableNow(state="root")
    if parent.path.startswith(org.path):
        raise WouldLoop
    if parent.id == org.parent_id:
        return
    _usable(parent)
    _name_is_free(work.session, org.tenant_id, parent.id, org.name)
    old_path, new_path = org.path, f"{parent.path}{org.id}/"
    members = _members_below(work.session, org)
    facts.record(
        work,
        "identity.org.move",
        actor,
        target=("org", org.id),
        changes={"parent_id": (org.parent_id, parent.id), "path": (old_path, new_path)},
    )
    org.parent_id = parent.id
    work.session.add(org)
    work.session.flush()
    work.session.execute(
        update(Org)
        .where(col(Org.tenant_id) == org.tenant_id, col(Org.path).startswith(old_path))
        .values(path=new_path + func.substr(col(Org.path), len(old_path) + 1))
        .execution_options(synchronize_session="fetch")
    )
    epochs.raise_for(work, org.tenant_id, members, "org_moved")


def close(work: Work, actor: Principal, org: Org) -> None:
    """Take no new members and no new children into `org`.

    Raises:
        NotUsableNow: it is the root, or closed already.
        StillInUse: people or open organisations are in it.
    """
    _hold_tree(work, org)
    if org.parent_id is None:
        raise NotUsableNow(state="root")
    _usable(org)
    if _count(work.session, User, org):
        raise StillInUse(by=N_("people belong to it"))
    if _open_children(work.session, org):
        raise StillInUse(by=N_("there are organisations below it"))
    facts.record(
        work,
        "identity.org.close",
        actor,
        target=("org", org.id),
        changes={"status": (org.status, OrgStatus.CLOSED.value)},
    )
    org.status = OrgStatus.CLOSED
    work.session.add(org)


def one(session: Session, tenant_id: str, org_id: str) -> Org:
    """An organisation of the tenant.

    Raises:
        NotFound: there is none with this id.
    """
    org = session.get(Org, (tenant_id, org_id))
    if org is None:
        raise NotFound
    return org


def root(session: Session, tenant_id: str) -> Org:
    """The top of the tree."""
    query = select(Org).where(Org.tenant_id == tenant_id, col(Org.parent_id).is_(None))
    return session.exec(query).one()


def tree(session: Session, tenant_id: str) -> Sequence[Org]:
    """Every organisation, parents before children, siblings by name."""
    rows = session.exec(select(Org).where(Org.tenant_id == tenant_id)).all()
    names = {org.id: org.name for org in rows}
    return sorted(rows, key=lambda org: [names.get(i, i) for i in org.path.strip("/").split("/")])


def _hold_tree(work: Work, *seen: Org) -> None:
    """Change the tree alone, and see `seen` as it is now.

    Two who move each other's organisation below their own would close a loop; a new organisation
    would keep the path its parent had before a move.
    """
    tenant = select(Tenant.id).where(Tenant.id == seen[0].tenant_id)
    work.session.exec(tenant.with_for_update()).one()
    for org in seen:
        work.session.refresh(org)


def _usable(org: Org) -> None:
    if org.status != OrgStatus.ACTIVE:
        raise NotUsableNow(state=org.status)


def _name_is_free(session: Session, tenant_id: str, parent_id: str | None, name: str) -> None:
    query = select(Org.id).where(
        Org.tenant_id == tenant_id, Org.parent_id == parent_id, Org.name == name
    )
    if session.exec(query).first():
        raise Invalid(FieldError("name", N_("An organisation beside it has this name.")))


def _members_below(session: Session, org: Org) -> list[str]:
    at_home = (
        select(User.id)
        .join(Org, (col(Org.tenant_id) == User.tenant_id) & (col(Org.id) == User.org_id))
        .where(User.tenant_id == org.tenant_id, col(Org.path).startswith(org.path))
    )
    assigned = (
        select(RoleAssignment.user_id)
        .join(
            Org,
            (col(Org.tenant_id) == RoleAssignment.tenant_id)
            & (col(Org.id) == RoleAssignment.org_id),
        )
        .where(RoleAssignment.tenant_id == org.tenant_id, col(Org.path).startswith(org.path))
    )
    return [*session.exec(at_home).all(), *session.exec(assigned).all()]


def _count(session: Session, table: type[User], org: Org) -> int:
    query = select(func.count()).where(table.tenant_id == org.tenant_id, table.org_id == org.id)
    return session.exec(query).one()


def _open_children(session: Session, org: Org) -> int:
    query = select(func.count()).where(
        Org.tenant_id == org.tenant_id, Org.parent_id == org.id, Org.status == OrgStatus.ACTIVE
    )
    return session.exec(query).one()
