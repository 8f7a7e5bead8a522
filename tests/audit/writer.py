"""A process that edits people and is killed in the middle: it says what it was promised.

Run as `python -m tests.audit.writer URL TENANT`; each line of its output is one acknowledged edit.
"""

import sys
import threading

from sqlmodel import Session, select

from app.audit import listening
from app.identity import facts
from app.identity.models import Org, User
from app.kernel import clock, db, ids
from app.kernel.db import Work

WRITERS = 4


def main(url: str, tenant_id: str) -> None:
    """Edit until the end comes from outside."""
    db.open(url)
    listening.listen()
    org_id = db.read_now(_org, tenant_id)
    say = threading.Lock()

    def write() -> None:
        while True:
            user_id = ids.ulid()
            db.transact_now(edit, tenant_id, org_id, user_id)
            with say:
                sys.stdout.write(f"{user_id}\n")
                sys.stdout.flush()

    threads = [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def edit(work: Work, tenant_id: str, org_id: str, user_id: str) -> None:
    """One edit: a person, and the fact that tells of it."""
    work.session.add(
        User(
            tenant_id=tenant_id,
            id=user_id,
            login=user_id,
            display_name="U",
            org_id=org_id,
            created_at=clock.now(),
        )
    )
    facts.record(work, "identity.user.create", None, tenant_id=tenant_id, target=("user", user_id))


def _org(session: Session, tenant_id: str) -> str:
    return session.exec(select(Org.id).where(Org.tenant_id == tenant_id)).one()


if __name__ == "__main__":
    main(*sys.argv[1:])
