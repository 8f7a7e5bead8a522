"""What a bench says: a table with ratio, least, median and processor time; JSON beside it."""

import json
import os
import platform
import statistics
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One subject: seconds an operation took in each round, and processor seconds it cost."""

    name: str
    taken_s: list[float]
    cpu_s: list[float]

    @property
    def median_s(self) -> float:
        """The middle of the rounds."""
        return statistics.median(self.taken_s)


@dataclass(frozen=True, slots=True)
class Report:
    """All subjects of a topic, measured in one interleaved run against the row named `floor`."""

    topic: str
    says: str
    rows: list[Row]
    floor: str
    more: dict[str, float] = field(default_factory=dict)

    def table(self) -> str:
        """The report for people."""
        head = f"{'':<24}{'ratio':>8}{'min ms':>12}{'median ms':>12}{'CPU µs/op':>14}"
        lines = [
            f"{row.name:<24}{self.ratio(row):>8.2f}{min(row.taken_s) * 1e3:>12.2f}"
            f"{row.median_s * 1e3:>12.2f}{statistics.median(row.cpu_s) * 1e6:>14,.0f}"
            for row in self.rows
        ]
        more = [f"{name}: {value:g}" for name, value in self.more.items()]
        rounds = len(self.rows[0].taken_s)
        title = f"{self.topic}: {self.says} ({rounds} rounds)"
        return "\n".join([title, head, *lines, *more])

    def ratio(self, row: Row) -> float:
        """How many times the floor this row takes."""
        [floor] = [each for each in self.rows if each.name == self.floor]
        return row.median_s / floor.median_s

    def write(self, folder: Path) -> Path:
        """Keep it as JSON in `folder`; gives the file."""
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{self.topic}.json"
        content = {
            "topic": self.topic,
            "says": self.says,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "machine": {
                "python": platform.python_version(),
                "processor": platform.machine(),
                "cores": os.cpu_count(),
            },
            "floor": self.floor,
            "rows": [
                {
                    "name": row.name,
                    "ratio": round(self.ratio(row), 3),
                    "median_s": row.median_s,
                    "taken_s": row.taken_s,
                    "cpu_s": row.cpu_s,
                }
                for row in self.rows
            ],
            "more": self.more,
        }
        file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        return file
