"""What we promise about governing a workspace by commands."""

from tests.promises.requirement import Requirement

PROMISES = {
    "CMD-1": Requirement(
        "What runs is the newest published version; an earlier one comes back as the next.",
        source="spec/commands.md, 1",
    ),
    "CMD-20": Requirement(
        "A secret in the trail can be compared, not read, under a key of the workspace's own.",
        source="spec/commands.md, 7",
    ),
    "CMD-25": Requirement(
        "Commands that govern the workspace are for people with a fresh sign-in: no agent finds "
        "or runs one, whatever its user may.",
        source="spec/commands.md, 10",
    ),
    "CMD-F17": Requirement(
        "A role that is given counts at the next call, and so does one that is taken.",
        source="spec/commands.md, 11",
    ),
    "CMD-F18": Requirement(
        "Another tenant's id is as unknown as one that nobody has, whichever field names it.",
        source="spec/commands.md, 11",
    ),
    "SEC-2": Requirement(
        "No token of an agent makes a person, or does what takes one.", source="spec/security.md, 0"
    ),
    "SEC-38": Requirement(
        "What changes rights asks for a sign-in of the last five minutes, through every door.",
        source="spec/security.md, 5",
    ),
}
