"""Bring the database to the newest schema. The server does so at every start by itself."""

import argparse
import sys

from app.kernel import migrations
from app.operator.refusing import Refused, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """`--check`."""
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if something is to do"
    )


def run(chosen: argparse.Namespace) -> int:
    """Upgrade, or say whether that is needed."""
    given = chosen_settings()
    given.data_dir.mkdir(parents=True, exist_ok=True)  # on a fresh machine nothing is there yet
    url = given.database
    if chosen.check:
        is_current = migrations.is_current(url)
        sys.stdout.write("The schema is current.\n" if is_current else "The schema is behind.\n")
        return 0 if is_current else 1
    try:
        changed = migrations.upgrade(url)
    except migrations.SchemaTooNew as fault:
        raise Refused(str(fault)) from None
    sys.stdout.write("The schema was upgraded.\n" if changed else "The schema was current.\n")
    return 0
