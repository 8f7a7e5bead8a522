"""Verify the audit trail: every entry, link, hash and checkpoint. Offline, changes nothing.

Exit status 0 where all is well, 1 with the first bad entry and what is wrong (SEC-78).
"""

import argparse
import json
import sys
from pathlib import Path

from sqlalchemy.exc import SQLAlchemyError

from app.audit import identity_check, verify
from app.commands import record_check, registry
from app.operator.refusing import Refused, chosen_settings


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which chains, from where, and how to tell."""
    parser.add_argument("--tenant", help="short name or id; all where it is left out")
    parser.add_argument("--since", type=int, default=0, metavar="SEQ", help="an entry known good")
    parser.add_argument("--checkpoints", type=Path, help="folder (ASSENT_CHECKPOINT_DIR)")
    parser.add_argument("--json", action="store_true", help="the report for programs")


def run(chosen: argparse.Namespace) -> int:
    """Print what was found."""
    given = chosen_settings()
    folder = chosen.checkpoints or given.checkpoints
    registry.discover(given.packs_dir)
    verify.register_cross_check("identity", identity_check.check)
    verify.register_cross_check("records", record_check.check)
    try:
        report = verify.verify(given.database, folder, tenant=chosen.tenant, since=chosen.since)
    except LookupError:
        raise Refused(f"There is no tenant {chosen.tenant}.") from None
    except SQLAlchemyError as fault:
        raise Refused(f"The database cannot be read: {type(fault).__name__}.") from None
    if chosen.json:
        sys.stdout.write(json.dumps(report.as_json(), indent=1) + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in report.lines())
    return 0 if report.is_ok else 1
