"""What is installed, and what a lock would install, is not older than what is known to be safe."""

import importlib.metadata
import re
from pathlib import Path

import pytest
from packaging.version import Version

from tests.sources import ROOT

LEAST = {
    name: Version(version.strip())
    for line in (Path(__file__).parent / "advisories.yml").read_text().splitlines()
    if not line.startswith("#")
    for name, _, version in [line.partition(":")]
}


@pytest.mark.requirement("SEC-85", "SEC-86")
def test_no_installed_package_is_older_than_its_last_known_fault() -> None:
    installed = {
        distribution.metadata["Name"].lower().replace("_", "-"): Version(distribution.version)
        for distribution in importlib.metadata.distributions()
    }
    compared = LEAST.keys() & installed.keys()

    assert "starlette" in compared, "else this proves nothing"
    assert [name for name in sorted(compared) if installed[name] < LEAST[name]] == []


@pytest.mark.requirement("SEC-86")
@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_no_lock_would_install_one(lock: str) -> None:
    pins = re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / lock).read_text(), re.MULTILINE)

    assert pins, "else this proves nothing"
    assert [name for name, pin in pins if name in LEAST and Version(pin) < LEAST[name]] == []


@pytest.mark.requirement("SEC-86")
def test_the_vendored_htmx_is_not_older_either() -> None:
    [file] = (ROOT / "static").rglob("htmx*.js")
    found = re.search(r"version\s*[:=]\s*['\"](\d+\.\d+\.\d+)", file.read_text(encoding="utf-8"))

    assert found, "htmx no longer says its version this way"
    assert Version(found[1]) >= LEAST["htmx"]


@pytest.mark.requirement("SEC-86")
def test_the_vendored_swagger_ui_is_not_older_either() -> None:
    said = (ROOT / "static/vendor/README.md").read_text(encoding="utf-8")
    found = re.search(r"`swagger-ui-dist` (\d+\.\d+\.\d+)", said)

    assert found, "the notices no longer say its version"
    assert Version(found[1]) >= LEAST["swagger-ui"]
