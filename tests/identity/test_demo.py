"""--demo: a workspace made once, in an empty database, whose passwords are told once."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from sqlmodel import Session, func, select

from app.identity import demo, passwords, sessions, tenants, users
from app.identity.demo import DemoResult, NoDemoHere, NotOurFile
from app.identity.models import Agent, Delegation, User
from app.kernel import db, settings
from app.kernel.db import Work
from app.kernel.settings import Settings
from tests import people
from tests.people import World

pytestmark = pytest.mark.requirement("SEC-43")


async def seeded() -> DemoResult:
    return await demo.seed(settings.current())


def counts(session: Session) -> dict[str, int]:
    return {
        table.__name__: session.exec(select(func.count()).select_from(table)).one()
        for table in (User, Agent, Delegation)
    }


async def test_everybody_it_names_can_sign_in_with_what_it_says(opened: str) -> None:
    with people.ready():
        made = await seeded()

        assert made.is_fresh
        assert {user.tenant for user in made.users} == {"acme", "globex"}
        roles = [role for user in made.users if user.tenant == "acme" for role in user.roles]
        assert roles.count("finance") == 2
        assert {"employee", "manager", "auditor", "administrator", "owner"} <= set(roles)
        for one in (made.users[0], made.users[-1]):
            stored = db.read_now(password_of, one.tenant, one.username)
            assert await passwords.is_right(stored, one.password)
        assert len({user.password for user in made.users}) == len(made.users)


def password_of(session: Session, slug: str, login: str) -> str | None:
    tenant = tenants.by_slug(session, slug)
    assert tenant is not None
    user = users.by_login(session, tenant.id, login)
    assert user is not None
    found = passwords.of_user(session, user)
    return found.argon2id if found else None


async def test_lists_are_long_enough_to_search_and_page(opened: str) -> None:
    with people.ready():
        made = await seeded()

        assert db.read_now(counts)["User"] > 50
        assert [agent.slug for agent in made.agents] == ["expenses", "stock"]
        assert all(agent.client_id for agent in made.agents)
        assert db.read_now(counts)["Delegation"] >= 3


async def test_a_second_time_changes_nothing_and_tells_no_password(
    opened: str, tmp_path: Path
) -> None:
    file = tmp_path / "sign-ins.json"
    with people.ready():
        first = await seeded()
        demo.write_credentials(file, first, None)
        before, text = db.read_now(counts), file.read_text()

        second = await seeded()
        demo.write_credentials(file, second, None)

        assert db.read_now(counts) == before
        assert not second.is_fresh
        assert [user.username for user in second.users] == [user.username for user in first.users]
        assert file.read_text() == text


async def test_a_database_with_others_in_it_is_left_alone(world: World) -> None:
    before = db.read_now(counts)

    with pytest.raises(NoDemoHere):
        await seeded()

    assert db.read_now(counts) == before


@pytest.mark.parametrize("origin", ["https://assent.example", "http://10.0.0.7:8000"])
async def test_an_address_others_can_reach_gets_no_demo(opened: str, origin: str) -> None:
    with people.ready(), pytest.raises(NoDemoHere):
        await demo.seed(Settings(public_url=origin))


async def test_the_file_is_for_this_account_alone(opened: str, tmp_path: Path) -> None:
    file = tmp_path / "sign-ins.json"
    with people.ready():
        made = await seeded()
    demo.write_credentials(file, made, "http://localhost:8000/setup/x")

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    content: dict[str, Any] = json.loads(file.read_text())
    assert set(content) == {"setup_url", "users", "agents"}
    assert set(content["users"][0]) == {"tenant", "username", "password", "roles", "org"}
    assert set(content["agents"][0]) == {"slug", "aid", "client_id"}


@pytest.mark.parametrize("content", ["", "my notes", "{}", '{"users": []}', "[1]"])
def test_a_file_of_somebody_else_is_not_written(tmp_path: Path, content: str) -> None:
    file = tmp_path / "notes"
    file.write_text(content)

    with pytest.raises(NotOurFile):
        demo.write_credentials(file, DemoResult((), ()), None)

    assert file.read_text() == content


def test_a_link_to_elsewhere_is_not_followed(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text('{"users": [], "agents": []}')
    link = tmp_path / "link"
    link.symlink_to(target)

    with pytest.raises(NotOurFile):
        demo.check_credentials(link)


async def test_packs_add_what_they_have_to_show(
    opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def further(work: Work, made: dict[str, demo.Workspace]) -> None:
        seen.extend(sorted(made["acme"].people)[:1])

    monkeypatch.setattr(demo, "_steps", [])
    demo.step(further)
    with people.ready():
        await seeded()
        await seeded()

    assert seen == ["alice"] or len(seen) == 1, "once, with the people there"


async def test_nobody_else_of_the_demo_can_sign_in(opened: str) -> None:
    with people.ready():
        made = await seeded()
        told = {user.username for user in made.users}

        assert db.read_now(with_password) == told
        assert db.read_now(sessions.of_user, "x", "x") == []


def with_password(session: Session) -> set[str]:
    everybody = session.exec(select(User)).all()
    return {user.login for user in everybody if passwords.of_user(session, user)}
