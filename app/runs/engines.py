"""Which engine executes a run: two, written out; a harness is never a model (RUN-5)."""

from app.runs import loop
from app.runs.errors import RunFailed
from app.runs.outcome import Complete, Suspended
from app.runs.session import RunSession

NATIVE = "native"
UNAVAILABLE = "The engine this agent asks for is not part of this installation."


async def execute(run: RunSession, engine: str) -> Complete | Suspended:
    """Drive the run by its engine; what `loop.drive` raises.

    Raises:
        RunFailed: `engine_unavailable`.
    """
    match engine:
        case "native":
            return await loop.drive(run)
    raise RunFailed("engine_unavailable", UNAVAILABLE)


def check(engine: str) -> None:
    """Return where the engine is there; before anything of the run is prepared (RUN-4).

    Raises:
        RunFailed: `engine_unavailable`.
    """
    if engine != NATIVE:
        raise RunFailed("engine_unavailable", UNAVAILABLE)
