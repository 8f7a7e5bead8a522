"""What the product promises: one line each, and where the promise was made.

Each area writes its own in `tests/promises/<area>.py`; here they become one list.
`test_architecture.py` holds both directions: a promise without a test says what it waits for, and
a test cannot carry an id that is not here.
"""

import importlib
from pathlib import Path

from tests.promises.requirement import Requirement

REQUIREMENTS: dict[str, Requirement] = {}
for path in sorted((Path(__file__).parent / "promises").glob("*.py")):
    if path.stem != "requirement":
        for id_, requirement in importlib.import_module(
            f"tests.promises.{path.stem}"
        ).PROMISES.items():
            known = REQUIREMENTS.get(id_)
            if known is None or known.waits_for:
                REQUIREMENTS[id_] = requirement
