"""What the tests of signing in share: a known password, and forms filled in as a browser would."""

import re
from html import unescape

import httpx2
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import passwords
from app.identity.models import User
from app.kernel import db
from app.kernel.db import Work

PASSWORD = "correct horse battery staple"
DIGEST = passwords._hasher.hash(PASSWORD)


def give_password(user: User, argon2id: str = DIGEST) -> None:
    """Let `user` sign in with PASSWORD."""

    def keep(work: Work) -> None:
        passwords.keep(work, user, argon2id)

    db.transact_now(keep)


def hidden(page: httpx2.Response, name: str) -> str:
    """What stands in a hidden field of a page."""
    found = re.search(rf'<input type="hidden" name="{name}" value="([^"]*)"', page.text)
    assert found, f"no hidden field {name} in {page.text[:2000]}"
    return unescape(found[1])


async def send(
    client: httpx2.AsyncClient, page: str, action: str = "", **fields: str
) -> httpx2.Response:
    """Open `page` and send its form, to `action` where it is not the page itself."""
    opened = await client.get(page)
    form = {"_csrf": hidden(opened, "_csrf"), **fields}
    return await client.post(action or page.partition("?")[0], data=form)


async def sign_in(
    client: httpx2.AsyncClient, login: str, password: str = PASSWORD, tenant: str = "acme"
) -> httpx2.Response:
    """Sign in on the page."""
    return await send(client, "/sign-in", tenant=tenant, login=login, password=password)


def entries(tenant_id: str, command: str) -> list[AuditEntry]:
    """The entries of the trail about `command`, the oldest first."""

    def read(session: Session) -> list[AuditEntry]:
        query = (
            select(AuditEntry)
            .where(AuditEntry.tenant_id == tenant_id, AuditEntry.command == command)
            .order_by(col(AuditEntry.seq))
        )
        return list(session.exec(query))

    return db.read_now(read)
