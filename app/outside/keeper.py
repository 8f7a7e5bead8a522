"""Keeps a program as long as its server lives: `python keeper.py <descriptor> <command…>`.

The descriptor is one end of a pipe whose other end the server holds. When the server lets go of it,
also because it was killed, everything the program started is killed with it (K-3). Nothing of the
product is imported here: this starts with every connection.
"""

import os
import signal
import subprocess
import sys
import threading

NOT_STARTED = 127


def main() -> int:
    """Run the program, and end its whole group with it."""
    threading.Thread(target=_watch, args=(int(sys.argv[1]),), daemon=True).start()
    try:
        program = subprocess.Popen(sys.argv[2:])  # noqa: S603 - as the operator's file says
    except OSError:
        return NOT_STARTED
    program.wait()
    os.killpg(0, signal.SIGKILL)
    return 0


def _watch(held: int) -> None:
    while os.read(held, 1):
        pass
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    raise SystemExit(main())
