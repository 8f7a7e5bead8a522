"""Products that a bench compares ours with: each in an environment of its own, made once."""

import subprocess
import sys

from tests.sources import ROOT

ENVIRONMENTS = ROOT / "var" / "bench" / "peers"
INSTALL_LIMIT_S = 900


def python_of(name: str, *packages: str) -> str | None:
    """The interpreter of an environment with these packages; None where they cannot be had."""
    folder = ENVIRONMENTS / name
    python, done = folder / "bin" / "python", folder / "installed"
    if done.exists() and done.read_text().split() == list(packages):
        return str(python)
    try:
        _run(sys.executable, "-m", "venv", "--clear", str(folder))
        _run(str(python), "-m", "pip", "install", "--quiet", *packages)
    except (OSError, subprocess.SubprocessError):
        return None
    done.write_text("\n".join(packages))
    return str(python)


def _run(*command: str) -> None:
    subprocess.run(
        command,
        check=True,
        timeout=INSTALL_LIMIT_S,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
