"""A process that runs many calls at once and kills itself at one place in the pipeline.

Forked with everything loaded; it writes a line for each call that was answered.
"""

import asyncio
import os
import signal
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.commands import pipeline
from app.commands.call import Call
from app.identity import sessions
from app.identity.principal import Principal
from app.kernel import db
from app.kernel.db import Work
from tests.commands.declared import SAMPLES
from tests.people import ready

BEFORE_COMMIT, AFTER_COMMIT = "before the commit", "after the commit"


@dataclass(frozen=True)
class Plan:
    """What to do, and where to die.

    Attributes:
        place: name of a stage that is about to run, or one of the two above.
        passes: how often the place is passed before.
    """

    url: str
    tenant_id: str
    user_id: str
    said: Path
    prefix: str
    calls: int
    place: str
    passes: int


def run(plan: Plan) -> None:
    """Run calls until the end, which comes by SIGKILL."""
    os.environ["ASSENT_PACKS_DIR"] = str(SAMPLES)
    db.open(plan.url)
    with ready(declared=True):
        _arm(plan)
        asyncio.run(_call_all(plan))


def _arm(plan: Plan) -> None:
    passed = 0

    def die_when_it_is_time() -> None:
        nonlocal passed
        passed += 1
        if passed > plan.passes:
            os.kill(os.getpid(), signal.SIGKILL)

    if plan.place == AFTER_COMMIT:
        tell = Work.tell

        def told(work: Work) -> None:
            die_when_it_is_time()
            tell(work)

        Work.tell = told  # type: ignore[assignment,method-assign]
        return
    if plan.place == BEFORE_COMMIT:
        flush = Work.flush

        def flushed(work: Work) -> None:
            flush(work)
            die_when_it_is_time()

        Work.flush = flushed  # type: ignore[assignment,method-assign]
        return
    for stage in pipeline.MAY_IT_RUN + pipeline.CHANGE_IT:
        if pipeline.name_of(stage) == plan.place:
            _wrap(stage, die_when_it_is_time)


def _wrap(stage: Any, before: Any) -> None:
    run_stage = stage.run

    def armed(ctx: Any) -> None:
        before()
        run_stage(ctx)

    stage.run = armed


async def _call_all(plan: Plan) -> None:
    person = db.read_now(sessions.requester, plan.tenant_id, plan.user_id, None)
    assert person is not None
    with plan.said.open("a", buffering=1) as said:
        await asyncio.gather(
            *(_call(person, f"{plan.prefix}-{number}", said) for number in range(plan.calls))
        )


async def _call(person: Principal, name: str, said: Any) -> None:
    done = await pipeline.execute(
        Call(
            code="sample.form.write",
            input={"title": name},
            principal=person,
            call_id=name,
            idempotency_key=name,
        )
    )
    said.write(f"{done.call_id}\n")
