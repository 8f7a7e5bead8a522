"""/admin/permissions: everything there is to be permitted, and which roles grant it."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from sqlmodel import Session, col, select

from app.access import scope
from app.console.nav import NavItem
from app.console.pages.admin_roles import packs_of
from app.console.params import Search
from app.console.view import render
from app.identity import roles, search
from app.identity.deps import Person
from app.identity.models import Grant
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.i18n import N_

READ = "identity.role.read"

router = APIRouter(prefix="/admin/permissions")
NAV = NavItem(
    N_("Permissions"), "/admin/permissions", "permission", "administration", READ, order=40
)


@router.get("")
async def index(
    request: Request,
    person: Person,
    q: Search = "",
    pack: Annotated[str, Query(max_length=63)] = "",
) -> HTMLResponse:
    """Permissions by pack; what is searched for may stand in their codes or titles."""
    context = await db.read(_found, person, q, pack)
    return render(request, "admin_permissions/index.html", q=q, pack=pack, **context)


def _found(session: Session, person: Principal, q: str, wanted: str) -> dict[str, Any]:
    scope.require(session, person, READ)
    packs = packs_of(session)
    words = search.fold(q).split()
    found = [
        (pack, [each for each in group if _holds(words, each.code, *each.title.values())])
        for pack, group in packs
        if wanted in {"", pack}
    ]
    named = {role.id: role for role in roles.of_tenant(session, person.tenant_id)}
    query = select(Grant).where(Grant.tenant_id == person.tenant_id)
    granting: dict[str, list[Any]] = {}
    for grant in session.exec(query.order_by(col(Grant.permission))).all():
        granting.setdefault(grant.permission, []).append((named[grant.role_id], grant.data_scope))
    return {
        "packs": [each for each in found if each[1]],
        "all_packs": [pack for pack, _ in packs],
        "count": sum(len(group) for _, group in found),
        "granting": granting,
    }


def _holds(words: list[str], *texts: str) -> bool:
    text = search.folded(*texts)
    return all(word in text for word in words)
