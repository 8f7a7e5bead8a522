"""DBOS on SQLite, in its own environment: `python dbos_peer.py FILE`, then a line for each round.

A line is `<workflows> <steps>`; the answer is one of JSON: seconds, processor seconds, steps.
"""

import json
import sys
import time

from dbos import DBOS  # type: ignore[import-not-found,unused-ignore]

PAD = "x" * 200

DBOS(
    config={
        "name": "bench",
        "system_database_url": f"sqlite:///{sys.argv[1]}",
        "log_level": "ERROR",
        "console_log_level": "ERROR",
        "enable_otlp": False,
    }
)


@DBOS.step()  # type: ignore[untyped-decorator,unused-ignore]
def step(number: int) -> dict[str, object]:
    """What one step keeps: about as much as a call of a tool."""
    return {"number": number, "text": PAD}


@DBOS.workflow()  # type: ignore[untyped-decorator,unused-ignore]
def flow(steps: int) -> int:
    """So many steps, one after the other."""
    return sum(bool(step(number)) for number in range(steps))


def main() -> None:
    """Rounds, as they are asked for."""
    DBOS.launch()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    for line in sys.stdin:
        workflows, steps = map(int, line.split())
        began, used = time.perf_counter(), time.process_time()
        handles = [DBOS.start_workflow(flow, steps) for _ in range(workflows)]
        done = sum(handle.get_result() for handle in handles)
        passed, used = time.perf_counter() - began, time.process_time() - used
        sys.stdout.write(json.dumps({"seconds": passed, "cpu_s": used, "steps": done}) + "\n")
        sys.stdout.flush()
    DBOS.destroy()


main()
