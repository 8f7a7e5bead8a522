"""Promises about what an attacker tries against people, rights and secrets."""

from tests.promises.requirement import Requirement

_DECIDES = "spec/security.md, 0"
_MODEL = "spec/security.md, 1"
_TOKENS = "spec/security.md, 4"
_THREATS = "spec/security.md, 12"
_FAULTS = "spec/security.md, 13"

PROMISES = {
    "SEC-4": Requirement("Nothing a request says of itself is believed.", _DECIDES),
    "SEC-10": Requirement(
        "A tenant always keeps an active owner, and shipped roles stay as they are.", _MODEL
    ),
    "SEC-33": Requirement(
        "Nothing of somebody who was disabled is written after that, and enabling them again "
        "brings nothing back that had ended.",
        _TOKENS,
    ),
    "SEC-52": Requirement(
        "Text of others is shown as text, and no attribute of htmx comes alive in it.",
        "spec/security.md, 6",
    ),
    "SEC-T3": Requirement(
        "No token decides what takes a person, through whichever door.", _THREATS
    ),
    "SEC-T14": Requirement("What is not yours does not exist.", _THREATS),
    "SEC-T19": Requirement("No name, text or search term is ever live in a page.", _THREATS),
    "SEC-T20": Requirement("What others write about themselves is shown as text.", _THREATS),
    "SEC-T33": Requirement("No request sets a column that its form does not offer.", _THREATS),
    "SEC-T34": Requirement(
        "Filters, orders and places in lists are values, never a language.", _THREATS
    ),
    "SEC-T39": Requirement("An agent cannot raise itself or its person.", _THREATS),
    "SEC-T41": Requirement(
        "Disabling somebody in the middle of everything they do ends all of it.", _THREATS
    ),
    "SEC-P35": Requirement("A form in disguise is not taken for one of ours.", _FAULTS),
    "SEC-P42": Requirement("Every id is asked for with the eyes of whoever asks.", _FAULTS),
    "SEC-P45": Requirement("A restriction holds for every kind of credential.", _FAULTS),
    "SEC-P63": Requirement("No agent changes what it is allowed to do.", _FAULTS),
    "SEC-P64": Requirement("No request writes the digest of a password.", _FAULTS),
    "SEC-P65": Requirement("Nothing moves to another tenant by naming it.", _FAULTS),
    "SEC-P66": Requirement("What belongs to somebody else is not found by its id.", _FAULTS),
    "SEC-P67": Requirement("No setting turns the filter of tenants off.", _FAULTS),
}
