"""A process that works for agents as a server does, and ends itself at one place of the product.

It is forked with everything loaded (`tests/processes.py`). The product knows nothing of it: the
function that stands at the place is wrapped here.
"""

import asyncio
import importlib
import inspect
import itertools
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Literal

from app.commands import external
from app.commands.dispatcher import Dispatcher
from app.commands.external import ExternalRequest, ExternalResult
from app.kernel import db, settings
from app.kernel.settings import Settings
from app.runs import writing
from app.runs.claiming import LEASE_S
from app.runs.models import scripted
from app.runs.models.scripted import Script
from app.runs.scheduler import Scheduler
from tests.people import ready

MODEL = "kills"
TAXI = "sample.taxi.order"
LOOKS = 3  # rounds in which nothing new came up: then it is over

When = Literal["before", "after", "committed"]


@dataclass(frozen=True)
class Place:
    """Where a process ends.

    Attributes:
        name: of a function or method, dotted.
        when: before it is called, after it returned (of a unit: inside its transaction), or after
            the transaction of this unit was committed.
        passes: how often it is passed before.
        signal: what the process sends itself there.
    """

    name: str
    when: When = "before"
    passes: int = 0
    signal: int = signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a process works with, and where it ends; None: nowhere.

    Attributes:
        folder: for its log, and for a line for each taxi that was ordered.
        packs: a folder with more commands.
        is_server: goes on until SIGTERM, instead of until nothing is left to do.
    """

    url: str
    folder: Path
    script: Script
    place: Place | None = None
    packs: str = ""
    context_tokens: int = 128_000
    lease_s: float = LEASE_S
    is_server: bool = False


def run(plan: Plan) -> None:
    """Work until the end."""
    _keep_log(plan.folder / "log")
    os.environ["ASSENT_MODEL"] = f"scripted:{MODEL}"
    if plan.packs:
        os.environ["ASSENT_PACKS_DIR"] = plan.packs
    settings.current.cache_clear()
    db.open(plan.url)
    with ready(declared=True):
        learn(plan.script, plan.context_tokens, plan.folder)
        if plan.place is not None:
            arm(plan.place)
        asyncio.run(_serve(plan) if plan.is_server else _work(plan))
    db.close()


def learn(script: Script, context_tokens: int, folder: Path) -> scripted.ScriptedModel:
    """Let the model of this process say what is written down, and its taxis leave a line each."""
    external.performers[TAXI] = _driving(folder)
    made = scripted.register(MODEL, script)
    made.context_tokens = context_tokens
    return made


def chosen() -> Settings:
    """Settings with which runs think by the script, for a process that was not forked."""
    return Settings(model=f"scripted:{MODEL}")


def arm(place: Place) -> None:
    """Let this process end at a place."""
    die = _dying(place)
    holder, name = _find(place.name)
    found = getattr(holder, name)
    if place.when == "committed":
        _watch_commits(found, die)
    elif inspect.iscoroutinefunction(found):
        setattr(holder, name, _around_coroutine(found, place.when, die))
    else:
        setattr(holder, name, _around(found, place.when, die))


def _dying(place: Place) -> Callable[[], None]:
    passed = itertools.count()

    def die() -> None:
        if next(passed) == place.passes:
            os.kill(os.getpid(), place.signal)

    return die


def _find(dotted: str) -> tuple[Any, str]:
    parts = dotted.split(".")
    for length in range(len(parts) - 1, 0, -1):
        with suppress(ModuleNotFoundError):
            holder: Any = importlib.import_module(".".join(parts[:length]))
            for name in parts[length:-1]:
                holder = getattr(holder, name)
            return holder, parts[-1]
    raise LookupError(dotted)


def _watch_commits(unit: Any, die: Callable[[], None]) -> None:
    transaction = db.transaction

    async def watched(asked: Any, *args: Any, **more: Any) -> Any:
        done = await transaction(asked, *args, **more)
        together = args[0] if asked is writing._together else ()
        units = [asked, *(each.unit for each in together)]
        for each in units:
            if getattr(each, "__func__", each) is unit:
                die()
        return done

    db.transaction = watched  # type: ignore[assignment]


def _around(found: Any, when: When, die: Callable[[], None]) -> Any:
    @wraps(found)
    def armed(*args: Any, **more: Any) -> Any:
        if when == "before":
            die()
        done = found(*args, **more)
        if when == "after":
            die()
        return done

    return armed


def _around_coroutine(found: Any, when: When, die: Callable[[], None]) -> Any:
    @wraps(found)
    async def armed(*args: Any, **more: Any) -> Any:
        if when == "before":
            die()
        done = await found(*args, **more)
        if when == "after":
            die()
        return done

    return armed


async def _work(plan: Plan) -> None:
    scheduler, teller = Scheduler(lease_s=plan.lease_s), Dispatcher()
    for _ in range(LOOKS):
        await scheduler.drain()
        await teller.drain()


async def _serve(plan: Plan) -> None:
    """Begin and end as the application does, `app/main.py`."""
    asked_to_end = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked_to_end.set)
    scheduler, teller = Scheduler(lease_s=plan.lease_s), Dispatcher()
    teller.start()
    scheduler.start()
    await asked_to_end.wait()
    await scheduler.stop()
    await teller.stop()


def _driving(folder: Path) -> Any:
    async def drive(request: ExternalRequest) -> ExternalResult:
        with (folder / "taxis").open("a") as out:
            out.write(f"{request.call_id}\n")
        return ExternalResult(outcome="done", data={"car": "B-7"})

    return drive


def _keep_log(file: Path) -> None:
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for descriptor in (1, 2):
        os.dup2(opened, descriptor)
    os.close(opened)
