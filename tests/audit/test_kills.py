"""A power cut in the middle of edits: what was acknowledged is there, and the trail is whole.

`ASSENT_TEST_KILLS=100 bin/test tests/audit/test_kills.py` kills as often as you like.
"""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlmodel import Session, select

from app.audit import identity_check, verify
from app.identity.models import Org, User
from app.kernel import db, event_log, migrations
from app.kernel.db import Work
from tests.audit import trails

ROOT = Path(__file__).parent.parent.parent
KILLS = int(os.environ.get("ASSENT_TEST_KILLS", "3"))


@pytest.mark.requirement("SEC-T32")
def test_a_kill_loses_nothing_that_was_acknowledged(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "_cross_checks", {"identity": identity_check.check})
    chosen = random.Random(KILLS)  # noqa: S311 - a seed, not a secret
    db.open(database)
    tenant_id = trails.tenant()
    db.transact_now(_add_org, tenant_id)
    db.close()
    acknowledged: set[str] = set()

    for _ in range(KILLS):
        acknowledged |= _write_and_kill(database, tenant_id, chosen.randint(1, 120))

        migrations.upgrade(database)
        report = trails.checked(database, tmp_path)
        assert report.problems == []
        db.open(database)
        stored = db.read_now(_users, tenant_id)
        newest = db.read_now(event_log.newest, tenant_id)
        db.close()
        assert acknowledged <= stored
        assert report.entries == len(stored) == newest.seq

    assert len(acknowledged) >= KILLS


def _write_and_kill(url: str, tenant_id: str, edits: int) -> set[str]:
    """What a writer said before it was killed, in the middle of what came after so many edits."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.audit.writer", url, tenant_id],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = []
    for line in process.stdout:
        said.append(line)
        if len(said) == edits:
            process.kill()
    process.stdout.close()
    process.wait()
    return {line.strip() for line in said if line.endswith("\n")}


def _add_org(work: Work, tenant_id: str) -> None:
    work.session.add(Org(tenant_id=tenant_id, id="O", path="/O/", name="O"))


def _users(session: Session, tenant_id: str) -> set[str]:
    return set(session.exec(select(User.id).where(User.tenant_id == tenant_id)))
