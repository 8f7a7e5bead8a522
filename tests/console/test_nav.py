"""The navigation shows what exists and what this person may see."""

from dataclasses import replace

import pytest

from app.console import nav
from app.console.nav import NavItem, groups
from app.console.view import environment
from tests.console.pages import ALICE

ITEMS = (
    NavItem("Settings", "/settings", "settings", order=90),
    NavItem("People", "/admin/users", "users", "administration", "identity.user.read"),
    NavItem("Roles", "/admin/roles", "role", "administration", "identity.role.read"),
    NavItem("Start", "/", "home", order=1),
)


FIND = nav.items


@pytest.fixture(autouse=True)
def _entries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nav, "items", lambda: ITEMS)


@pytest.mark.requirement("UI-27")
def test_a_person_sees_what_she_may_open() -> None:
    shown = {
        group.section: [entry.item.label for entry in group.entries]
        for group in groups(ALICE, "/settings")
    }

    assert shown == {"main": ["Settings", "Start"], "administration": ["People"]}


@pytest.mark.requirement("UI-27")
def test_the_bar_of_a_phone_has_room_for_what_is_in_it() -> None:
    assert [item.path for item in FIND() if item.section == "main"] == [
        "/conversations",
        "/approvals",
        "/commands",
    ]


@pytest.mark.requirement("UI-27")
def test_a_section_without_entries_has_no_heading() -> None:
    nobody = replace(ALICE, permissions=frozenset())

    assert [group.section for group in groups(nobody, "/")] == ["main"]


@pytest.mark.requirement("UI-90")
@pytest.mark.parametrize(
    ("path", "current", "here"),
    [
        ("/admin/users", ["/admin/users"], ["/admin/users"]),
        ("/admin/users/01J", [], ["/admin/users"]),
        ("/admin/users-import", [], ["/"]),
        ("/", ["/"], ["/"]),
    ],
)
def test_the_page_on_screen_is_marked(path: str, current: list[str], here: list[str]) -> None:
    entries = [entry for group in groups(ALICE, path) for entry in group.entries]

    assert [entry.item.path for entry in entries if entry.is_current] == current
    assert [entry.item.path for entry in entries if entry.is_here] == here


def test_entries_are_found_in_the_page_modules() -> None:
    found = FIND()

    assert all(isinstance(item, NavItem) for item in found)
    assert [item.order for item in found] == sorted(item.order for item in found)
    assert len({item.path for item in found}) == len(found)
    assert all(item.path.startswith("/") and icon_exists(item.icon) for item in found)


def icon_exists(name: str) -> bool:
    return "<svg" in environment.globals["icon"](name)  # type: ignore[operator]
