"""`kill -9` while people are edited: what was acknowledged is there, and on record (issue 2)."""

import asyncio
import base64
import re
from dataclasses import dataclass, field
from pathlib import Path

import httpx2
import pytest
from sqlmodel import Session, col, select

from app.audit.models import AuditEntry
from app.identity import cookies, csrf, sessions, setup
from app.identity.models import User
from app.identity.passwords import digest
from app.identity.sessions import Browser
from app.identity.setup import FirstOwner
from app.kernel import db
from app.kernel.db import Work
from tests import people
from tests.server import RunningServer

KILLS = 5
EDITORS = 4
EDITS = 25  # acknowledged before each kill
MASTER_KEY = base64.urlsafe_b64encode(bytes(32)).decode()  # that of `people.ready`
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"


@dataclass
class Owner:
    """Who edits, with the cookie and the token of a session."""

    cookie: str
    token: str
    org_id: str
    acknowledged: list[str] = field(default_factory=list)
    asked: int = 0
    wanted: int = 0
    reached: asyncio.Event = field(default_factory=asyncio.Event)

    def is_told(self, login: str) -> None:
        """An edit was acknowledged."""
        self.acknowledged.append(login)
        if len(self.acknowledged) >= self.wanted:
            self.reached.set()


async def made_owner() -> Owner:
    argon2id = await digest("correct horse battery staple")
    secret = await db.transaction(setup.make_link)
    assert secret is not None

    def make(work: Work) -> Owner:
        _, user = setup.complete(
            work,
            secret,
            FirstOwner(
                tenant_name="Acme",
                tenant_slug="acme",
                login="olga",
                display_name="Olga",
                locale="en",
                argon2id=argon2id,
            ),
        )
        cookie = sessions.start(work, user, ["pwd"], Browser("192.0.2.0/24", AGENT))
        signed = sessions.find(work.session, cookie)
        assert signed is not None
        return Owner(cookie, csrf.of_session(signed.session.id), user.org_id)

    return await db.transaction(make)


async def edit_until_killed(owner: Owner, server: RunningServer) -> None:
    """Invite one person after the other; return when the server is gone."""
    async with httpx2.AsyncClient(
        base_url=server.base_url,
        headers={
            "Cookie": f"{cookies.session_name()}={owner.cookie}",
            "X-CSRF-Token": owner.token,
            "Sec-Fetch-Site": "same-origin",
            "User-Agent": AGENT,
        },
        timeout=30,
    ) as browser:
        while True:
            owner.asked += 1
            login = f"person-{owner.asked:05}"
            form = {"display_name": login, "login": login, "org_id": owner.org_id}
            try:
                answer = await browser.post("/admin/users", data=form)
            except httpx2.TransportError:
                return
            assert answer.status_code < 400, answer.text[:2000]
            owner.is_told(login)


async def kill_in_the_middle(owner: Owner, server: RunningServer) -> None:
    owner.wanted = len(owner.acknowledged) + EDITS
    owner.reached.clear()
    editing = [asyncio.create_task(edit_until_killed(owner, server)) for _ in range(EDITORS)]
    reached = asyncio.create_task(owner.reached.wait())
    await asyncio.wait({reached, *editing}, return_when=asyncio.FIRST_COMPLETED, timeout=120)
    assert not any(editor.done() for editor in editing), "the kill has to come in the middle"
    server.kill()
    await asyncio.gather(*editing)
    await reached


def people_there(session: Session) -> dict[str, str]:
    rows = session.exec(select(User).where(col(User.login).startswith("person-"))).all()
    return {row.login: row.id for row in rows}


def people_on_record(session: Session) -> set[str]:
    query = select(AuditEntry.target_id).where(AuditEntry.command == "identity.user.create")
    return {target for target in session.exec(query).all() if target}


@pytest.mark.requirement("KERNEL-1", "KERNEL-5")
async def test_nothing_acknowledged_is_lost_and_nothing_is_off_the_record(
    database: str, tmp_path: Path
) -> None:
    db.open(database)
    with people.ready():
        owner = await made_owner()
    db.close()
    env = {"ASSENT_MASTER_KEY": MASTER_KEY, "ASSENT_RATE_SESSIONS": "100000/minute"}
    server = RunningServer(tmp_path / "server", database, env=env)

    for _ in range(KILLS):
        server.start()
        await kill_in_the_middle(owner, server)

    server.start()
    server.stop()
    verdict = server.command("verify-audit")
    db.open(database)
    there = db.read_now(people_there)
    recorded = db.read_now(people_on_record)
    db.close()

    assert len(owner.acknowledged) >= KILLS * EDITS
    assert set(owner.acknowledged) - there.keys() == set()
    assert len(there) <= owner.asked
    assert set(there.values()) <= recorded, "each person has the entry of the same commit"
    assert len(recorded) == len(there) + 1, "and no entry is without its person; the owner is one"
    assert re.search(r"^acme: ok", verdict, re.MULTILINE), verdict
    assert server.command("migrate", "--check").strip() == "The schema is current."
