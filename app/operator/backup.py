"""Write everything into one archive, while the server runs.

The archive holds the sealed keys but not the master key that opens them: keep that apart.
"""

import argparse
import sys
from pathlib import Path

from app.kernel import archive, clock, migrations
from app.operator.refusing import Refused, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Where to."""
    parser.add_argument("file", type=Path, nargs="?", help="the new archive (assent-<date>.tar.gz)")


def run(chosen: argparse.Namespace) -> int:
    """Write the archive and say what is in it."""
    given = chosen_settings()
    target = chosen.file or Path(f"assent-{clock.now():%Y%m%d-%H%M%S}.tar.gz")
    if not migrations.is_current(given.database):
        raise Refused("The schema is behind this version: start the server or run migrate first.")
    try:
        rows = archive.write(given.database, target.absolute(), given.checkpoints)
    except archive.ArchiveProblem as fault:
        raise Refused(str(fault)) from None
    sys.stdout.write(f"{target}: {sum(rows.values())} rows of {len(rows)} tables.\n")
    sys.stdout.write("The master key is not in it. Keep a copy of it somewhere else.\n")
    return 0
