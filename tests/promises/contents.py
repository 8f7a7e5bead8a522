"""Promises about what is written, copied, dropped, searched and exported, and how it streams."""

from tests.promises.requirement import Requirement

_FAULTS = "spec/console.md, 8.3"


def _says(text: str, source: str = _FAULTS) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "UI-94": _says("Enter that ends a composition acts in no field.", "spec/console.md, 6.3"),
    "CON-63": _says("Enter of an input method only puts the text in, in every field."),
    "CON-65": _says("Who follows stays at the end, whatever grows, ends or comes."),
    "CON-66": _says("Who reads elsewhere is not moved when a reply ends."),
    "CON-70": _says("Everything stands after a reload where it stood."),
    "CON-74": _says("A tab that slept sends; what it missed appears above."),
    "CON-77": _says("One types fluently among ten thousand messages and a thought that streams."),
    "CON-78": _says("Code that streams redraws nothing else and leaves a selection alone."),
    "CON-79": _says("The copy button of finished code stays while the rest streams."),
    "CON-80": _says("A thought of two thousand pieces is never spoken, its reply once."),
    "CON-81": _says("Sent, replied, refused and approval needed are said once each."),
    "CON-86": _says("What was typed reaches the model and programs as it was typed."),
    "CON-87": _says("Copying without permission offers another way, and says so."),
    "CON-91": _says("The keyboard of a phone covers neither composer nor buttons."),
    "CON-95": _says("A notification leads to the message of its own conversation."),
    "CON-99": _says("No cell of an export is a formula."),
    "CON-100": _says("A spreadsheet reads the Chinese of an export."),
    "CON-101": _says("A Chinese word, one character and a whole sentence are found."),
    "CON-104": _says("A file dropped on the page opens nothing, and the draft stays."),
}
