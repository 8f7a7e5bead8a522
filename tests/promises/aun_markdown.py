"""Promises about the text of messages."""

from tests.promises.requirement import Requirement

PAGE = "spec/console.md, 4.3"

PROMISES = {
    "SEC-52": Requirement(
        "Markdown of others becomes harmless HTML; nothing in it runs or asks for anything.",
        source="spec/security.md, 6",
    ),
    "UI-56": Requirement(
        "Of a message's markdown only plain tags and three kinds of links stay; images are links.",
        source=PAGE,
    ),
    "UI-57": Requirement(
        "A message is rendered once, when it is stored, below the headings of the page.",
        source=PAGE,
    ),
    "UI-59": Requirement("A link of foreign text names its host, in punycode.", source=PAGE),
    "CON-68": Requirement("Half a tag in a reply is text.", source="spec/console.md, 8.3"),
    "CON-83": Requirement("Markup in a message is inert.", source="spec/console.md, 8.3"),
    "CON-84": Requirement(
        "A link that is not a web address is no link.", source="spec/console.md, 8.3"
    ),
    "CON-85": Requirement(
        "What looks like markup is shown as typed.", source="spec/console.md, 8.3"
    ),
}
