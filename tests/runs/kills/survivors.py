"""The process that goes on with what a killed one left, and the checks that follow each kill."""

import signal
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

from sqlmodel import select

from app.commands.approval_models import Approval, ApprovalState
from app.kernel import db
from app.runs import worker
from app.runs.models.scripted import Script, ScriptedModel
from app.runs.run_models import Run
from app.runs.states import RunState
from tests.commands.asking import Asking
from tests.processes import Process, fork
from tests.runs.kills import afterwards, dying, scenes
from tests.runs.kills.dying import Place, Plan
from tests.runs.kills.scenes import AGENT, NEXT, Scene
from tests.runs.sessions import Desks

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)
PATIENCE_S = 60


class Survivors:
    """The process of the test, which goes on with what a killed one left."""

    def __init__(self, desks: Desks, url: str, folder: Path) -> None:
        self.desks, self.url, self.folder = desks, url, folder
        self.asking = Asking(desks.desk)
        self.model: ScriptedModel | None = None

    async def begin(self, scene: Scene) -> Script:
        """Let alice say what the scene is about; this process learns the script too."""
        script = await scenes.set_up(self.desks, scene)
        self.model = dying.learn(script, scene.context_tokens, self.folder)
        return script

    def kill(self, scene: Scene, script: Script, place: Place) -> None:
        """Let a process work until it is killed."""
        status = self.start(scene, script, place).wait(PATIENCE_S)
        assert status == -signal.SIGKILL, self.log()

    def start(
        self, scene: Scene, script: Script, place: Place, *, is_server: bool = False
    ) -> Process:
        """A process that begins to work, up to a place."""
        plan = Plan(
            url=self.url,
            folder=self.folder,
            script=script,
            place=place,
            packs=scene.packs,
            context_tokens=scene.context_tokens,
            is_server=is_server,
        )
        return fork(dying.run, plan)

    def log(self) -> str:
        """What killed processes wrote."""
        return (self.folder / "log").read_text()[-4_000:]

    def taxis(self) -> int:
        """How often a taxi was ordered outside."""
        file = self.folder / "taxis"
        return len(file.read_text().splitlines()) if file.exists() else 0

    async def go_on(self) -> None:
        """Work until nothing is left to do: leases are over, and alice assents to what waits."""
        for run in self.desks.runs():
            if run.state == RunState.RUNNING:
                self.desks.force(Run, (run.tenant_id, run.id), lease_until=LONG_AGO)
        await self.work()
        if await self.assent():
            await self.work()

    async def work(self) -> None:
        """Do what is due."""
        for _ in range(dying.LOOKS):
            await self.desks.scheduler(worker.execute).drain()

    async def assent(self) -> bool:
        """Decide what waits for alice; whether anything did."""
        query = select(Approval).where(Approval.state == ApprovalState.OPEN)
        waiting = await db.read(lambda session: list(session.exec(query)))
        for row in waiting:
            await self.asking.decide("alice", row)
        return bool(waiting)

    async def check(self, scene: Scene, lost: tuple[str, ...]) -> None:
        """What always holds; and the lane takes the next message."""
        self.desks.say("alice", AGENT, NEXT)
        await self.work()

        tenant_id, aid = self.desks.tenant_id, self.desks.aid(AGENT)
        assert db.read_now(afterwards.problems, tenant_id) == []
        assert afterwards.trail_problems(self.url, tenant_id, self.folder / "none") == []
        made = db.read_now(afterwards.titles)
        assert {title: made[title] for title in scene.titles} == {
            title: int(title not in lost) for title in scene.titles
        }
        said = Counter(scene.texts) - Counter(lost) + Counter(["Nothing more."])
        assert db.read_now(afterwards.texts, aid) == said
        assert db.read_now(afterwards.sent_more_than_once) == []
        assert self.model is not None
        assert [text for ask in self.model.asks for text in afterwards.unfit(ask.entries)] == []
