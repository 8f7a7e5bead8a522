"""Print a one-time link with which a person sets a new password: for an owner who is locked out."""

import argparse
import sys

from app.identity import links
from app.identity.models import LinkPurpose, UserStatus
from app.kernel import db
from app.kernel.db import Work
from app.operator import people
from app.operator.refusing import opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """For whom."""
    parser.add_argument("user", help="login, or tenant/login")


def run(chosen: argparse.Namespace) -> int:
    """Print the link; it lives an hour, an invitation seven days."""
    with opened() as given:
        path = db.transact_now(_make, chosen.user)
    sys.stdout.write(f"{given.origin}{path}\n")
    return 0


def _make(work: Work, name: str) -> str:
    user = people.user(work.session, name)
    is_new = user.status == UserStatus.INVITED
    purpose = LinkPurpose.INVITE if is_new else LinkPurpose.RESET
    return f"/{purpose}/{links.make(work, None, user, purpose)}"
