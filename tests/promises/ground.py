"""Promises of the ground: database, archive, settings, keys, start."""

from tests.promises.requirement import Requirement

PROMISES = {
    "KERNEL-1": Requirement(
        "What a caller was told is stored is stored; what failed left nothing.",
        source="DESIGN.md, 3",
    ),
    "KERNEL-2": Requirement(
        "A backup made while the server runs restores whole, into either kind of database.",
        source="issue 2, What to build",
    ),
    "KERNEL-3": Requirement(
        "Settings are known, checked and never printed; a typing error stops the start.",
        source="spec/security.md, 11 (SEC-80)",
    ),
    "KERNEL-4": Requirement(
        "Two processes that start together upgrade an empty database once.",
        source="issue 2, What to build",
    ),
    "KERNEL-5": Requirement(
        "Killed in the middle of edits, it opens again with all it acknowledged, each on record.",
        source="issue 2, Done means 7",
    ),
    "SEC-80": Requirement(
        "One master key, readable by its owner only, opens every other secret.",
        source="spec/security.md, 11",
    ),
    "SEC-82": Requirement(
        "Old keys open for their time after a rotation; the newest signs.",
        source="spec/security.md, 11",
    ),
    "SEC-88": Requirement(
        "Health says up or not, numbers answer neighbours only, the API document names no tenant.",
        source="spec/security.md, 6",
    ),
}
