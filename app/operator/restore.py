"""Fill an empty database, SQLite or PostgreSQL, from an archive of `backup`.

It needs the master key the archive was made under. Whoever follows the event log starts over.
"""

import argparse
import sys
from pathlib import Path

from app.kernel import archive
from app.operator.refusing import Refused, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """From where."""
    parser.add_argument("file", type=Path, help="the archive")


def run(chosen: argparse.Namespace) -> int:
    """Fill the database and say with what."""
    given = chosen_settings()
    given.data_dir.mkdir(parents=True, exist_ok=True)
    try:
        rows = archive.read(given.database, chosen.file, given.checkpoints)
    except archive.ArchiveProblem as fault:
        raise Refused(str(fault)) from None
    sys.stdout.write(f"{sum(rows.values())} rows of {len(rows)} tables were restored.\n")
    sys.stdout.write("Run doctor next: it checks that the master key fits.\n")
    return 0
