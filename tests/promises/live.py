"""Promises of the live layer: what happens is on every open page at once, once, and in order."""

from tests.promises.requirement import Requirement

_SPEC = "spec/console.md, 3"


def _says(text: str, source: str = _SPEC) -> Requirement:
    return Requirement(text, source=source)


PROMISES = {
    "UI-32": _says(
        "All live things of a browser come over one stream, however many tabs are open."
    ),
    "UI-33": _says("A stream that is refused says why by its status, and how long to stay away."),
    "UI-34": _says("One event is one frame for one viewer, with everything that it changes."),
    "UI-35": _says(
        "A frame may speak of what the frame before it made, even when both come together."
    ),
    "UI-36": _says(
        "Text that grows is shown as it grows; what is stored in the end is what counts."
    ),
    "UI-37": _says("Places in the log are told only when everything before them is final."),
    "UI-38": _says("Each page says as of which event it was drawn, so that nothing is lost after."),
    "UI-39": _says("Who missed a little is told it again; who missed much draws the page anew."),
    "UI-40": _says("A stream tells what you may hear of now, and nothing after your rights ended."),
    "UI-41": _says(
        "A frame is drawn once for all who may see the same, and holds no session's own."
    ),
    "UI-42": _says(
        "Programs get the same events as pages, as JSON, under the same ids and rights."
    ),
    "UI-43": _says(
        "The stream keeps its place across every kind of failure and comes back by itself."
    ),
    "UI-44": _says(
        "What comes late never replaces what is newer, and focus is not lost by an update."
    ),
    "UI-45": _says("No update takes a draft, a selection or an opened block from the person."),
    "UI-46": _says("After a gap all parts of a page are drawn as of one moment."),
    "UI-47": _says(
        "A message one sends is there at once, once, and says when it could not be sent."
    ),
    "UI-48": _says(
        "A page says when it may be out of date or signed out, and stops as soon as it is not."
    ),
    "UI-49": _says(
        "Title, favicon and notifications follow what waits; notifications are asked for first."
    ),
    "UI-50": _says(
        "Where a browser shares no worker, one tab hears for all and the next takes over."
    ),
    "UI-51": _says("Proxies that hold, cut or split bytes delay updates and lose none."),
    "UI-82": _says(
        "Whoever may decide is told when something needs their assent.", "spec/console.md, 5.6"
    ),
    "CON-1": _says("Drops show no message twice and rebuild no list.", "spec/console.md, 8.1"),
    "CON-2": _says("A stream that is opened anew goes on at its place.", "spec/console.md, 8.1"),
    "CON-3": _says("Two tabs both get what flows through a drop.", "spec/console.md, 8.1"),
    "CON-4": _says(
        "What ended while the browser was away is shown after its return.", "spec/console.md, 8.1"
    ),
    "CON-5": _says(
        "After an outage the page goes on, not the connection alone.", "spec/console.md, 8.1"
    ),
    "CON-6": _says("A quiet stream stays one open request.", "spec/console.md, 8.1"),
    "CON-7": _says("A fragment that comes twice makes no second stream.", "spec/console.md, 8.1"),
    "CON-8": _says("What came by the stream is updated by the stream.", "spec/console.md, 8.1"),
    "CON-9": _says(
        "A connection that died in silence is replaced as soon as the page is looked at.",
        "spec/console.md, 8.1",
    ),
    "CON-10": _says(
        "A reply that ended in a hidden tab stands there whole.", "spec/console.md, 8.1"
    ),
    "CON-11": _says("Reconnecting settles without leaving the page.", "spec/console.md, 8.1"),
    "CON-12": _says(
        "A reload in the middle of a thought goes on with what comes.", "spec/console.md, 8.1"
    ),
    "CON-13": _says("A stream that went silent is replaced.", "spec/console.md, 8.1"),
    "CON-14": _says(
        "The word about reconnecting goes when all works again.", "spec/console.md, 8.1"
    ),
    "CON-15": _says("A page from the browser's cache is live at once.", "spec/console.md, 8.1"),
    "CON-16": _says("Twelve tabs are one stream, and all of them work.", "spec/console.md, 8.1"),
    "CON-17": _says("Different pages in several tabs share one stream.", "spec/console.md, 8.1"),
    "CON-18": _says("Bytes held back by a proxy are said to be delayed.", "spec/console.md, 8.1"),
    "CON-19": _says(
        "Text arrives piece by piece where the way allows it, and is right where it does not.",
        "spec/console.md, 8.1",
    ),
    "CON-20": _says("A session that ended is asked about once.", "spec/console.md, 8.1"),
    "CON-21": _says(
        "Signed out, a browser asks at most once for each return to a tab.", "spec/console.md, 8.1"
    ),
    "CON-22": _says(
        "A message sent after signing out elsewhere is kept and sent once.", "spec/console.md, 8.1"
    ),
    "CON-82": _says(
        "What happens within a second is announced in order, all of it.", "spec/console.md, 8.3"
    ),
    "CON-92": _says("No page asks for permission by itself.", "spec/console.md, 8.3"),
    "CON-93": _says("A click on a notification uses the open tab.", "spec/console.md, 8.3"),
    "CON-94": _says(
        "One message is one notification, however many tabs are hidden.", "spec/console.md, 8.3"
    ),
    "CON-97": _says(
        "With the last unread thing title and favicon are clean.", "spec/console.md, 8.3"
    ),
    "CON-106": _says("Of states that come together the last is shown.", "spec/console.md, 8.4"),
    "CON-107": _says(
        "An answer that is late does not overwrite what the stream said since.",
        "spec/console.md, 8.4",
    ),
    "CON-108": _says(
        "What happened between page and stream is there without a redraw.", "spec/console.md, 8.4"
    ),
    "CON-109": _says(
        "A redraw keeps drafts, open blocks and messages on their way.", "spec/console.md, 8.4"
    ),
    "CON-110": _says(
        "What happens during a redraw is shown once, however often it has to be tried.",
        "spec/console.md, 8.4",
    ),
    "CON-111": _says(
        "Whoever signs in after somebody sees nothing of theirs, nor the other way round.",
        "spec/console.md, 8.4",
    ),
    "CON-112": _says("Without a shared worker three tabs are one stream.", "spec/console.md, 8.4"),
    "CON-113": _says(
        "Growing text is right whatever comes twice, late or not at all, and stays text.",
        "spec/console.md, 8.4",
    ),
    "CON-114": _says(
        "Whoever is put out of a group sees nothing of it any more, on open pages too.",
        "spec/console.md, 8.4",
    ),
}
