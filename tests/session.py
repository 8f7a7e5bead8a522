"""One run of the tests: a folder that all its processes share, and that ends with the run.

The first process (pytest's controller) owns the run by holding a file lock. Whatever has to live
exactly as long as the run waits for that lock, so that even a killed run leaves nothing running.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VARIABLE = "ASSENT_TEST_SESSION"
OWNER = "owner.lock"  # held by the owner as long as it lives
MEMORY = Path("/dev/shm")  # noqa: S108 - we make a folder of its own in it
ROOM = 4 << 30  # bytes
COMPANIONS = "companions.lock"  # shared by those who wait for its end


@contextmanager
def run() -> Iterator[Path]:
    """Own a run, or take part in the one that is there already; gives its folder."""
    if VARIABLE in os.environ:
        yield folder()
        return
    made = Path(tempfile.mkdtemp(prefix="assent-tests-", dir=_in_memory()))
    made.chmod(0o711)  # the database server is another user where we are root
    os.environ[VARIABLE] = str(made)
    try:
        with (made / COMPANIONS).open("w") as companions:
            with locked(made / OWNER):
                yield made
            fcntl.flock(companions, fcntl.LOCK_EX)  # whoever waited for us has ended
    finally:
        del os.environ[VARIABLE]
        shutil.rmtree(made, ignore_errors=True)


def folder() -> Path:
    """The folder of the run this process takes part in."""
    return Path(os.environ[VARIABLE])


def _in_memory() -> Path | None:
    """Where files cost no disk, if there is room: a run makes thousands of databases."""
    if os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > ROOM:
        return MEMORY
    return None


@contextmanager
def companion(of: Path) -> Iterator[None]:
    """Be waited for by the owner of the run in folder `of`, before it is over."""
    with locked(of / COMPANIONS, shared=True):
        yield


def wait_for_the_end(of: Path) -> None:
    """Return when the owner of the run in folder `of` has ended, however it did."""
    with locked(of / OWNER):
        pass


@contextmanager
def locked(path: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock file at `path`; it is released when this process ends, too."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        yield


def once(name: str) -> "Once":
    """Something one process of the run makes and all others use, by what it wrote down."""
    return Once(folder() / name)


class Once:
    """A note written by the first process that needs it."""

    def __init__(self, note: Path) -> None:
        self.note = note

    @contextmanager
    def making(self) -> Iterator[str | None]:
        """Hold everybody else back; gives what is written already, or None: then `write` it."""
        with locked(self.note.with_suffix(".lock")):
            yield self.note.read_text() if self.note.exists() else None

    def write(self, text: str) -> str:
        """Write the note; gives `text` again."""
        self.note.write_text(text)
        return text
