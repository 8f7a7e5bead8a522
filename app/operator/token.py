"""Mint one access token of an agent, for a user who let it act (300 s, no refresh; SEC-87)."""

import argparse
import sys

from app.identity.oauth import operator
from app.kernel import db
from app.operator.refusing import opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """Whose token, for which door."""
    parser.add_argument("--user", required=True, help="login, or tenant/login")
    parser.add_argument("--agent", required=True, help="the agent's code")
    parser.add_argument("--audience", required=True, choices=operator.AUDIENCES)


def run(chosen: argparse.Namespace) -> int:
    """Print the token."""
    with opened():
        token = db.transact_now(operator.mint, chosen.user, chosen.agent, chosen.audience)
    sys.stdout.write(f"{token}\n")
    return 0
