"""Promises of how the console looks, reads and behaves on every page."""

from tests.promises.requirement import Requirement

PROMISES = {
    "UI-11": Requirement(
        "No page tells the hidden cause of an error.", source="spec/console.md, 1"
    ),
    "UI-25": Requirement(
        "Every form works without script: it posts, and a full page follows.",
        source="spec/console.md, 2.1",
    ),
    "UI-26": Requirement(
        "What is not yours does not exist: the same page as for an unknown address.",
        source="spec/console.md, 2.1",
    ),
    "UI-27": Requirement(
        "One navigation, at the side or at the bottom of a phone, shows what you may open.",
        source="spec/console.md, 2.2",
    ),
    "UI-30": Requirement(
        "An id occurs once on a page.",
        source="spec/console.md, 2.4",
    ),
    "UI-31": Requirement(
        "An empty list says what would be there and offers the next act.",
        source="spec/console.md, 2.5",
    ),
    "UI-52": Requirement(
        "htmx is the release we examined, configured in one place.", source="spec/console.md, 4.1"
    ),
    "UI-53": Requirement(
        "No page uses inline script or style, nor the risky features of htmx.",
        source="spec/console.md, 4.1",
    ),
    "UI-54": Requirement(
        "Every page has the one policy of what may run in it; consent alone adds a target.",
        source="spec/console.md, 4.2",
    ),
    "UI-55": Requirement(
        "What changes something comes from our own pages, with the token of the session.",
        source="spec/console.md, 4.2",
    ),
    "UI-58": Requirement(
        "Foreign text is shown as typed and never becomes markup.", source="spec/console.md, 4.3"
    ),
    "UI-60": Requirement(
        "Invisible and direction-changing characters in names and ids are drawn as chips.",
        source="spec/console.md, 4.3",
    ),
    "UI-61": Requirement(
        "A message is copied as it was written, or selected, and the page says which.",
        source="spec/console.md, 4.3",
    ),
    "UI-84": Requirement(
        "Every colour has its promised contrast, in the light and in the dark.",
        source="spec/console.md, 6.1",
    ),
    "UI-85": Requirement(
        "Controls are large enough to hit, by mouse and by finger, and focus is always visible.",
        source="spec/console.md, 6.1",
    ),
    "UI-86": Requirement(
        "Colour never carries a meaning alone; red is for danger and failure.",
        source="spec/console.md, 6.1",
    ),
    "UI-90": Requirement(
        "Everything works by keyboard; errors are summed up, focused, and tied to their fields.",
        source="spec/console.md, 6.3",
    ),
    "UI-91": Requirement(
        "At 320 px or with text of 200 % nothing is lost and no page scrolls sideways.",
        source="spec/console.md, 6.3",
    ),
    "UI-96": Requirement(
        "English and Chinese are complete, and the reader's choice is followed.",
        source="spec/console.md, 6.4",
    ),
    "UI-97": Requirement(
        "Times and numbers are said as the reader's language and zone say them.",
        source="spec/console.md, 6.4",
    ),
    "UI-101": Requirement(
        "Dark is a theme of its own, checked like the light one.", source="spec/console.md, 6.5"
    ),
    "UI-104": Requirement(
        "The style sheet stays below 25 KB and the scripts small.", source="spec/console.md, 9"
    ),
    "UI-105": Requirement(
        "Browser tests use the Chromium of the machine, or the one that is named.",
        source="spec/console.md, 10.1",
    ),
    "UI-107": Requirement(
        "Pages are free of WCAG 2.2 AA faults in both themes, both languages and on a phone.",
        source="spec/console.md, 10.6",
    ),
    "SEC-35": Requirement(
        "Every form that posts, and every request of a script, carries the session's token.",
        source="spec/security.md, 5",
    ),
}
