"""List, add, suspend or resume tenants."""

import argparse
import sys

from sqlmodel import Session, col, select

from app.identity import links, orgs, roles, tenants, users
from app.identity.models import LinkPurpose, Tenant
from app.kernel import db
from app.kernel.db import Work
from app.operator import people
from app.operator.refusing import opened


def arguments(parser: argparse.ArgumentParser) -> None:
    """The act, and on which tenant."""
    acts = parser.add_subparsers(dest="act", required=True)
    acts.add_parser("list", help="every tenant with its status")
    add = acts.add_parser("add", help="a new tenant; prints the invitation of its owner")
    add.add_argument("slug")
    add.add_argument("--name", required=True)
    add.add_argument("--owner", required=True, help="login of its first owner")
    for act, says in (("suspend", "stop everything of it, now"), ("resume", "let it work again")):
        acts.add_parser(act, help=says).add_argument("slug")


def run(chosen: argparse.Namespace) -> int:
    """Do it and say what came of it."""
    with opened() as given:
        if chosen.act == "list":
            lines = db.read_now(_list)
        elif chosen.act == "add":
            path = db.transact_now(_add, chosen.slug, chosen.name, chosen.owner)
            lines = [f"{given.origin}{path}"]
        else:
            db.transact_now(_change, chosen.slug, chosen.act)
            lines = [f"{chosen.slug}: done."]
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


def _list(session: Session) -> list[str]:
    rows = session.exec(select(Tenant).order_by(col(Tenant.slug))).all()
    return [f"{row.slug:<24}{row.status:<12}{row.name}" for row in rows]


def _add(work: Work, slug: str, name: str, login: str) -> str:
    made, root = tenants.create(work, slug=slug, name=name)
    owner = users.create(work, None, root, login=login, display_name=login)
    role = roles.by_code(work.session, made.id, roles.OWNER)
    if role is not None:
        roles.assign(work, None, owner, role, orgs.root(work.session, made.id))
    return f"/invite/{links.make(work, None, owner, LinkPurpose.INVITE)}"


def _change(work: Work, slug: str, act: str) -> None:
    found = people.tenant(work.session, slug)
    (tenants.suspend if act == "suspend" else tenants.resume)(work, found)
