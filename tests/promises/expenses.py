"""What we promise about expenses."""

from tests.promises.requirement import Requirement

COMMANDS = "spec/commands.md"

PROMISES = {
    "CMD-25": Requirement(
        "The packs that ship do what their table says: who may, in which state, with which undo.",
        source=f"{COMMANDS}, 10",
    ),
    "CMD-3": Requirement(
        "Every read goes through the caller's filter; a record outside it does not exist.",
        source=f"{COMMANDS}, 2",
    ),
    "CMD-4": Requirement(
        "Twenty stages in one written order; a refusal names its stage and its reason.",
        source=f"{COMMANDS}, 3",
    ),
    "CMD-12": Requirement(
        "Where a definition names approvers, somebody else assents: not the requester, nor who "
        "stands in a hard conflict of duties.",
        source=f"{COMMANDS}, 6",
    ),
    "CMD-F10": Requirement(
        "Two calls at once on one record: one is done, the other told; on two records both are.",
        source=f"{COMMANDS}, 11",
    ),
    "CMD-F18": Requirement(
        "Another tenant's id is as unknown as one nobody has, in whatever field it stands.",
        source=f"{COMMANDS}, 11",
    ),
}
