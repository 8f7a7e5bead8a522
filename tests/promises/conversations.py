"""Promises of the conversation pages."""

from tests.promises.requirement import Requirement

_SPEC = "spec/console.md, 1"
_FAULTS = "spec/console.md, 8.3"
_AUN = "spec/aun.md, 1.1"


def _says(text: str, source: str = _SPEC) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "UI-1": _says("A message is sending, sent, delivered or seen; silence is never an error."),
    "UI-2": _says("One can always write, whatever others do or do not do."),
    "UI-3": _says("A message may have any number of replies, linked and grouped, in one order."),
    "UI-4": _says("An agent can begin a conversation; the list and the counts follow at once."),
    "UI-6": _says("What a sender says of its own tools is a picture with nothing to press."),
    "UI-7": _says("What a group's filter kept from an agent says so, and says nothing else."),
    "UI-8": _says("An agent is described as free to answer or not; presence judges no message."),
    "UI-26": _says("A conversation that is not yours does not exist."),
    "UI-28": _says("A conversation opens at what is unread; a draft waits where it was left."),
    "UI-31": _says("An empty list says what would be there, and offers the next step."),
    "UI-47": _says("An own message shows at once, is stored once, and can be tried again."),
    "UI-57": _says("The text of a message is rendered once, when it is stored."),
    "UI-58": _says("Foreign text never becomes a part of the page."),
    "UI-88": _says("Older messages are loaded in pages of fifty."),
    "UI-89": _says("Messages are a log with headings; each new one is announced once."),
    "CON-62": _says("Enter that ends a composition sends nothing.", _FAULTS),
    "CON-64": _says("Who reads further up is not moved, and sees how many are new.", _FAULTS),
    "CON-69": _says("The order of messages is the same live and after a reload.", _FAULTS),
    "CON-71": _says("A reported result without its call is shown, and waits for nothing.", _FAULTS),
    "CON-72": _says("An own message is one bubble in each tab.", _FAULTS),
    "CON-73": _says("A message that comes in three ways is one element.", _FAULTS),
    "CON-75": _says("Two who write at once both keep what they wrote.", _FAULTS),
    "CON-76": _says("A long conversation shows fifty messages, and sends as always.", _FAULTS),
    "CON-82": _says("Several messages in a second are announced in order, none lost.", _FAULTS),
    "CON-85": _says("Angle brackets and entities are shown as they were typed.", _FAULTS),
    "CON-88": _says("A long address or line of code never widens a phone's page.", _FAULTS),
    "CON-89": _says("Each block of text has its own direction; code runs left to right.", _FAULTS),
    "CON-90": _says("Each conversation keeps its own draft until it is sent.", _FAULTS),
    "CON-96": _says("What is read in one tab is read in all.", _FAULTS),
    "CON-97": _says("When the last message is read, title and icon are clean.", _FAULTS),
    "CON-102": _says("A message that nobody works on is drawn at once, in order.", _FAULTS),
    "CON-103": _says(
        "A conversation an agent begins is in list, count and title at once.", _FAULTS
    ),
    "CON-105": _says("Going back shows a fresh, live page on which one can write.", _FAULTS),
    "AUN-11": _says("A message without a reply looks like every other.", _AUN),
    "AUN-12": _says("Many replies to one message are shown; none of them is the answer.", _AUN),
    "AUN-13": _says("A message nobody asked for is a message like any other.", _AUN),
}
