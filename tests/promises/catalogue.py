"""What we promise about definitions of commands: how they are published, and who sees them."""

from tests.promises.requirement import Requirement

PROMISES = {
    "CMD-1": Requirement(
        "A rule that does not compile, or reads what is not there, is never published.",
        source="spec/commands.md, 1",
    ),
    "CMD-2": Requirement(
        "A readiness check says in both languages what keeps a command from being published.",
        source="spec/commands.md, 1",
    ),
    "CMD-22": Requirement(
        "Everybody's catalogue is exactly what they may call, and says to administrators why not.",
        source="spec/commands.md, 8",
    ),
    "CMD-23": Requirement(
        "The description of a command tells nothing of how it works inside, or of other tenants.",
        source="spec/commands.md, 8",
    ),
    "CMD-F17": Requirement(
        "A revoked role takes its commands within five seconds, a new one brings them at once.",
        source="spec/commands.md, 11",
    ),
    "CMD-F19": Requirement(
        "Two commands whose names are one for a program are not both published.",
        source="spec/commands.md, 11",
    ),
    "CMD-F22": Requirement(
        "A data scope the product does not know gives no access.",
        source="spec/commands.md, 11",
    ),
    "CMD-F24": Requirement(
        "However many commands are not permitted, all that are can be seen.",
        source="spec/commands.md, 11",
    ),
}
