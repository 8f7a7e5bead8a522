"""The locks are what pyproject.toml asks for, hash-pinned, and name nobody's host.

`bin/check` compiles them again, which finds what these cannot: a pin that nothing needs any more.
"""

import re
import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.sources import ROOT

LOCKS = ["requirements.lock", "requirements-dev.lock"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pins(lock: str) -> dict[str, list[Version]]:
    """Each package of a lock; it has two versions where Pythons need different ones."""
    found: dict[str, list[Version]] = {}
    for name, version in re.findall(r"^([\w.-]+)==([^\s;]+)", text(lock), re.MULTILINE):
        found.setdefault(canonicalize_name(name), []).append(Version(version))
    return found


def text(lock: str) -> str:
    return (ROOT / lock).read_text(encoding="utf-8")


def group(name: str) -> list[str]:
    return [
        line
        for entry in PROJECT["dependency-groups"][name]
        for line in (group(entry["include-group"]) if isinstance(entry, dict) else [entry])
    ]


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_what_the_project_asks_for(lock: str) -> None:
    asked = PROJECT["project"]["dependencies"] + (group("dev") if "dev" in lock else [])
    pinned = pins(lock)
    unmet = [
        line
        for line in asked
        for requirement in [Requirement(line)]
        for versions in [pinned.get(canonicalize_name(requirement.name), [])]
        if not versions or not all(version in requirement.specifier for version in versions)
    ]

    assert unmet == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_a_hash(lock: str) -> None:
    entries = re.split(r"^(?=\S)", text(lock), flags=re.MULTILINE)

    assert [entry for entry in entries if entry and "--hash=sha256:" not in entry] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host_and_no_folder(lock: str) -> None:
    assert re.findall(r"//|--index|--find-links|file:|^#.*", text(lock), re.MULTILINE) == []


def test_the_tests_run_what_users_run() -> None:
    users, tests = pins("requirements.lock"), pins("requirements-dev.lock")

    assert {name: tests.get(name) for name in users} == users
