"""After commit: what was in force when the call wrote is kept, for whoever asks later."""

from app.commands import snapshots
from app.commands.snapshots import Written
from app.kernel.db import Work


def run(work: Work, entry: Written, as_of_seq: int) -> None:
    """Keep definition, release, grants and rules of the call that `entry` tells of."""
    snapshots.keep(work, entry, as_of_seq)
