"""`bin/test bench [topic …]`: runs `tests/bench/<topic>.py`, all of them without a topic.

A topic has `main() -> Report`; what stands beside one, as its floors and peers, has none.
"""

import importlib
import re
import sys
from pathlib import Path

from tests.sources import ROOT

TOPICS = sorted(
    path.stem
    for path in Path(__file__).parent.glob("*.py")
    if re.search("^def main\\(\\) -> Report:", path.read_text(encoding="utf-8"), re.MULTILINE)
)
RESULTS = ROOT / "var" / "bench"


def main(wanted: list[str]) -> None:
    """Run the benches in turn; print each table and where its JSON is."""
    if unknown := sorted(set(wanted) - set(TOPICS)):
        sys.exit(f"no bench {', '.join(unknown)}; there are: {', '.join(TOPICS)}")
    for topic in wanted or TOPICS:
        report = importlib.import_module(f"tests.bench.{topic}").main()
        file = report.write(RESULTS)
        print(f"{report.table()}\n{file.relative_to(ROOT)}\n", flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1:])
