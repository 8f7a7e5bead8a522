"""`bin/run` and `bin/test` on a machine that lacks something: one clear line, and a failure."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sources import ROOT

TOOLS = ["sh", "dirname", "cmp", "rm", "cp", "id", "env"]


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A copy of the scripts, and a folder of the few programs that every system has."""
    shutil.copytree(ROOT / "bin", tmp_path / "bin")
    for lock in ROOT.glob("*.lock"):
        shutil.copy(lock, tmp_path)
    (tmp_path / "tools").mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found
        (tmp_path / "tools" / tool).symlink_to(found)
    return tmp_path


def run(bare: Path, script: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [bare / "bin" / script],
        env={"PATH": str(bare / "tools"), **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
    )


def pretend_installed(bare: Path) -> None:
    """A .venv whose lock is current, with a Python that only says what it was asked to do."""
    (bare / ".venv/bin").mkdir(parents=True)
    python = bare / ".venv/bin/python"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || echo "$@"\n[ "$2" != playwright ]\n')
    python.chmod(0o755)
    for lock in bare.glob("*.lock"):
        shutil.copy(lock, bare / ".venv")


@pytest.mark.parametrize("script", ["run", "test"])
def test_without_python_a_script_says_which_one_it_needs(bare: Path, script: str) -> None:
    ended = run(bare, script)

    assert ended.returncode != 0
    assert ended.stderr.splitlines() == [
        "Assent needs Python 3.11 or newer, and none was found on the PATH."
    ]


def test_what_is_installed_is_not_installed_again(bare: Path) -> None:
    pretend_installed(bare)

    ended = run(bare, "run")

    assert (ended.stdout, ended.stderr, ended.returncode) == ("-m app\n", "", 0)


def test_a_changed_lock_is_installed(bare: Path) -> None:
    pretend_installed(bare)
    with (bare / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")

    ended = run(bare, "run")

    assert "Installing requirements.lock ..." in ended.stderr
    assert "--require-hashes" in ended.stderr
    assert run(bare, "run").stderr == ""


@pytest.mark.requirement("UI-105")
def test_the_browser_of_this_machine_is_used(bare: Path) -> None:
    pretend_installed(bare)
    browser = bare / "tools/chromium"
    browser.symlink_to("/bin/sh")
    python = bare / ".venv/bin/python"
    python.write_text(python.read_text() + 'echo "$ASSENT_E2E_BROWSER"\n')

    assert run(bare, "test").stdout.splitlines()[-1] == str(browser)


@pytest.mark.requirement("UI-105")
def test_without_a_browser_the_tests_say_what_to_install(bare: Path) -> None:
    pretend_installed(bare)
    somebody = bare / "tools/id"  # root on Debian would install one
    somebody.unlink()
    somebody.write_text("#!/bin/sh\necho 1000\n")
    somebody.chmod(0o755)

    ended = run(bare, "test")

    assert ended.returncode != 0
    assert ended.stderr.splitlines()[-1].startswith("The browser tests need Chromium:")


@pytest.mark.requirement("UI-105")
def test_a_browser_that_is_not_there_is_named(bare: Path) -> None:
    pretend_installed(bare)

    ended = run(bare, "test", ASSENT_E2E_BROWSER="/nowhere/chromium")

    assert ended.returncode != 0
    assert "/nowhere/chromium" in ended.stderr


def test_the_failure_of_the_tests_is_the_failure_of_the_script(bare: Path) -> None:
    pretend_installed(bare)
    python = bare / ".venv/bin/python"
    python.write_text(python.read_text() + '[ "$2" != pytest ] || exit 1\n')

    assert run(bare, "test", ASSENT_E2E_BROWSER="/bin/sh").returncode == 1
