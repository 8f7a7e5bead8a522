"""What we promise about the administration of people, roles and agents."""

from tests.promises.requirement import Requirement

PROMISES = {
    "SEC-10": Requirement(
        "A workspace keeps at least one active owner, and organisations move with all below them.",
        source="spec/security.md, 1",
    ),
    "SEC-9": Requirement(
        "Every change of somebody's rights makes what was issued before it void or look again.",
        source="spec/security.md, 1",
    ),
    "SEC-31": Requirement(
        "Disabling a person or an agent stops everything of theirs, at once.",
        source="spec/security.md, 4",
    ),
    "SEC-33": Requirement(
        "What was stopped stays stopped when a person or an agent is enabled again.",
        source="spec/security.md, 4",
    ),
    "SEC-38": Requirement(
        "Whoever changes people, roles, agents or applications has just proved who they are.",
        source="spec/security.md, 5",
    ),
    "SEC-43": Requirement(
        "A demo workspace is made once, in an empty database, and its passwords are told once.",
        source="spec/security.md, 5",
    ),
    "SEC-T14": Requirement(
        "No id of another tenant, of another person or of a removed thing opens anything.",
        source="spec/security.md, 12",
    ),
    "SEC-T34": Requirement(
        "Filters, sorts and cursors take what is listed and nothing else.",
        source="spec/security.md, 12",
    ),
    "UI-25": Requirement(
        "Every form of the administration works without script.", source="spec/console.md, 2.1"
    ),
    "UI-26": Requirement(
        "A thing that is not yours does not exist, word for word.", source="spec/console.md, 2.1"
    ),
    "UI-31": Requirement(
        "An empty list says what would be here and offers the next act.",
        source="spec/console.md, 2.5",
    ),
}
