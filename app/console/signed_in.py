"""Who looks at a page when somebody is signed in, and which requests are for pages at all."""

from sqlmodel import Session
from starlette.requests import Request

from app.access import scope
from app.console import language
from app.console.live import families
from app.console.live.handles import handle_of
from app.console.viewer import Viewer
from app.identity import csrf, sessions
from app.identity.deps import signed_of
from app.identity.principal import Principal
from app.kernel import db, event_log
from app.kernel.event_log import Position

# Doors of programs and files; everything else is a page of the console.
NOT_PAGES = (
    "/v1",
    "/mcp",
    "/a2a",
    "/aun",
    "/pki",
    "/agent.md",
    "/root.crt",
    "/health",
    "/.well-known",
    "/oauth",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/static",
    "/csp-report",
)
PAGES_OF_OAUTH = ("/oauth/authorize", "/oauth/consent", "/oauth/device")


async def load(request: Request) -> Viewer | None:
    """The viewer of a live session; None where nobody is signed in."""
    signed = await signed_of(request)
    if signed is None:
        return None
    user, tenant = signed.user, signed.tenant
    permissions, badges, cursor = await db.read(_standing, sessions.person(signed))
    return Viewer(
        user_id=user.id,
        tenant_id=tenant.id,
        display_name=user.display_name,
        tenant_name=tenant.name,
        language=language.of_request(request, user=user.locale, tenant=tenant.locale),
        theme=language.theme_of(request, user=None if user.theme == "system" else user.theme),
        time_zone=user.time_zone or "UTC",
        csrf=csrf.of_session(signed.session.id),
        permissions=permissions,
        is_person=True,
        badges=badges,
        live=handle_of(signed.session.id),
        cursor=str(cursor),
    )


def _standing(
    session: Session, person: Principal
) -> tuple[frozenset[str], dict[str, int], Position]:
    cursor = event_log.newest(session, person.tenant_id)
    badges = {name: count(session, person) for name, count in families.found().badges.items()}
    return scope.permissions_of(session, person), badges, cursor


def is_page(request: Request) -> bool:
    """Whether a person's browser asks, to whom refusals are pages and not problems."""
    return is_page_path(request.url.path)


def is_page_path(path: str) -> bool:
    """Whether a path is one of pages."""
    return _is_below(path, PAGES_OF_OAUTH) or not _is_below(path, NOT_PAGES)


def _is_below(path: str, tops: tuple[str, ...]) -> bool:
    return any(path == top or path.startswith(f"{top}/") for top in tops)
