"""Make new keys for tokens, forms and lists; what was signed before stays valid for its life."""

import argparse
import sys

from app.aun import tokens
from app.commands import deciding
from app.identity import csrf, paging, signing_keys
from app.kernel import db, keyring
from app.kernel.db import Work
from app.mcp import rings
from app.operator.refusing import opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """`--emergency`."""
    parser.add_argument(
        "--emergency",
        action="store_true",
        help="drop the active keys at once and revoke every refresh token: they may be stolen",
    )


def run(chosen: argparse.Namespace) -> int:
    """Rotate."""
    with opened():
        db.transact_now(_rotate, chosen.emergency)
    sys.stdout.write("The keys were rotated; a running server takes them up within a minute.\n")
    return 0


def _rotate(work: Work, emergency: bool) -> None:
    signing_keys.rotate(work, emergency=emergency)
    tokens.replace_keys(work)
    for purpose in (csrf.PURPOSE, paging.PURPOSE, deciding.PURPOSE, rings.STATES):
        keyring.rotate(work, purpose)
